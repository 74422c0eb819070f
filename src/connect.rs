//! From a URL to a client.

use std::pin::Pin;

use ylock_core::options;
use ylock_core::url::EngineUrl;
use ylock_core::{ClientName, Error, ErrorKind, Options, Result, Ylock};

use crate::config::Config;
use crate::known::check_names;

/// An engine, as URLs name it.
pub(crate) struct Engine {
    /// The schemes of its URLs, each with the Cargo feature that it needs.
    pub(crate) schemes: &'static [(&'static str, &'static str)],
    /// Whether a scheme may go on after a plus, and say there how the servers form one store.
    pub(crate) has_kinds: bool,
    /// `None` if the engine is not compiled in.
    pub(crate) compiled: Option<Compiled>,
}

#[derive(Debug)]
pub(crate) struct Compiled {
    read: ReadUrl,
    /// The options that the engine does not share with all others.
    pub(crate) options: fn() -> Vec<options::Definition>,
}

/// Checks what can be checked without the store.
pub(crate) type ReadUrl = fn(&EngineUrl, &Options) -> Result<Connecting>;

/// A client that connects when it is polled. Boxed: with every engine compiled in, a future that contains one of each is too deep for the
/// compiler's default limits.
pub(crate) type Connecting = Pin<Box<dyn Future<Output = Result<Ylock>> + Send>>;

/// What is compiled in of the crate `$krate`.
macro_rules! compiled {
    ($feature:literal, $krate:ident, $engine:ident, $options:ident) => {{
        #[cfg(not(feature = $feature))]
        {
            None
        }
        #[cfg(feature = $feature)]
        {
            fn read(url: &EngineUrl, options: &Options) -> Result<Connecting> {
                let options = $krate::$options::from_url(url, options)?;
                Ok(Box::pin(async move { Ok(Ylock::new($krate::$engine::connect(&options).await?)) }))
            }
            Some(Compiled { read, options: $krate::$options::definitions })
        }
    }};
}

/// All engines: no other place in this crate lists them, apart from what each of them exports.
pub(crate) static ENGINES: [Engine; 7] = [
    Engine {
        schemes: &[("memory", "")],
        has_kinds: false,
        compiled: Some(Compiled { read: in_memory, options: Vec::new }),
    },
    Engine {
        schemes: &[("cassandra", "cassandra")],
        has_kinds: false,
        compiled: compiled!("cassandra", ylock_engine_cassandra, CassandraEngine, CassandraOptions),
    },
    Engine {
        schemes: &[("etcd", "etcd")],
        has_kinds: false,
        compiled: compiled!("etcd", ylock_engine_etcd, EtcdEngine, EtcdOptions),
    },
    Engine {
        schemes: &[("file", "file")],
        has_kinds: false,
        compiled: compiled!("file", ylock_engine_file, FileEngine, FileOptions),
    },
    Engine {
        schemes: &[("postgres", "postgres"), ("postgresql", "postgres")],
        has_kinds: false,
        compiled: compiled!("postgres", ylock_engine_postgres, PostgresEngine, PostgresOptions),
    },
    Engine {
        schemes: &[("redis", "redis"), ("rediss", "redis-tls")],
        has_kinds: true,
        compiled: compiled!("redis", ylock_engine_redis, RedisEngine, RedisOptions),
    },
    Engine {
        schemes: &[("zookeeper", "zookeeper")],
        has_kinds: false,
        compiled: compiled!("zookeeper", ylock_engine_zookeeper, ZookeeperEngine, ZookeeperOptions),
    },
];

/// Connects to the store that `url` names.
///
/// - `memory://`: a new, empty store inside this process, like [`Ylock::in_memory`].
/// - `cassandra://user:password@host1,host2:port/keyspace`, with the Cargo feature `cassandra`.
/// - `etcd://user:password@host1,host2:port/prefix`, with the Cargo feature `etcd`.
/// - `file:///folder`, with the Cargo feature `file`: for the processes of one host.
/// - `postgres://user:password@host1,host2:port/database`, with the Cargo feature `postgres`; `postgresql://` is the same.
/// - `redis://user:password@host:port/database`, with the Cargo feature `redis`; `rediss://` for TLS, with `redis-tls`.
/// - `redis+sentinel://user:password@host1,host2:port/service/database`: the master that the Sentinels know by the name of the
///   service; and `redis+cluster://user:password@host1,host2:port`. They need the same features; `rediss+…` is for TLS.
/// - `zookeeper://user:password@host1,host2:port/path`, with the Cargo feature `zookeeper`.
///
/// The options `lease`, `fairness`, `hand_over`, `hand_over_time`, `wait` and `max_hold` may follow
/// after `?` with every engine; they become the [`Options`] of the client. With `metrics=on` and
/// the Cargo feature `metrics` the client is measured by `MetricsLayer`; `client`
/// [names](Ylock::with_name) it. An engine has options of its own beside them. Letters that have a
/// meaning in a URL, such as `@` in a password, are written with a percent sign.
///
/// # Errors
/// [`Config`](ErrorKind::Config) if something in the URL is wrong or needs a Cargo feature, and the engine's error if
/// its store cannot be reached. No error shows the password.
///
/// # Examples
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock::Result<()> {
/// let ylock = ylock::connect("memory://?lease=5s&fairness=strict").await?;
/// # ylock.close().await; Ok(()) }
/// ```
pub async fn connect(url: &str) -> Result<Ylock> {
    connect_to(EngineUrl::parse(url)?).await
}

/// Connects to the store that `url` names, which the program has parsed, or put together, before.
///
/// # Errors
/// As [`connect`].
///
/// # Examples
/// A password that is kept elsewhere:
/// ```
/// use ylock::url::{EngineUrl, Secret};
/// # fn password() -> String { "from a file".to_owned() }
/// # async fn example() -> ylock::Result<()> {
/// let url = EngineUrl::parse("redis://locks@cache/0?lease=5s")?.with_password(Secret::new(password()));
/// let ylock = ylock::connect_to(url).await?;
/// # ylock.close().await; Ok(()) }
/// ```
pub async fn connect_to(url: EngineUrl) -> Result<Ylock> {
    let Read { connecting, options, name, measured } = Read::of(url)?;
    let client = connecting.await?.with_options(options).with_name(name.as_str())?;
    Ok(if measured { with_metrics(&client) } else { client })
}

/// Connects to the store that a configuration names.
///
/// # Errors
/// As [`connect`].
pub async fn connect_with(config: &Config) -> Result<Ylock> {
    connect_to(config.to_url()).await
}

/// Checks everything of a URL that can be checked without the store.
pub(crate) fn check(url: EngineUrl) -> Result<()> {
    Read::of(url).map(|_| ())
}

/// The contents of a URL.
struct Read {
    connecting: Connecting,
    options: Options,
    name: ClientName,
    measured: bool,
}

impl Read {
    fn of(mut url: EngineUrl) -> Result<Self> {
        let (engine, compiled) = engine_of(&url.scheme)?;
        check_names(&url, engine, &(compiled.options)())?;
        let measured = take(&mut url, "metrics").map(|value| options::read("metrics", &value));
        let measured = measured.transpose()?.unwrap_or(false);
        if measured && !cfg!(feature = "metrics") {
            return Err(wrong(
                "metrics=on is not compiled in: switch on the Cargo feature \"metrics\" of ylock",
            ));
        }
        let name = take(&mut url, "client").map(ClientName::new).transpose()?.unwrap_or_default();
        let options = common_options(&url)?;
        Ok(Self { connecting: (compiled.read)(&url, &options)?, options, name, measured })
    }
}

/// Takes an option of the client itself out of the URL: no engine sees it.
fn take(url: &mut EngineUrl, name: &str) -> Option<String> {
    let place = url.options.iter().position(|(known, _)| known == name)?;
    Some(url.options.remove(place).1)
}

#[cfg(feature = "metrics")]
fn with_metrics(client: &Ylock) -> Ylock {
    client.layer(ylock_metrics::MetricsLayer::new())
}

#[cfg(not(feature = "metrics"))]
fn with_metrics(client: &Ylock) -> Ylock {
    client.clone()
}

/// Returns the options that mean the same with every engine. The others are left to the engine.
fn common_options(url: &EngineUrl) -> Result<Options> {
    let mut options = Options::default();
    for (name, value) in &url.options {
        options.set(name, value)?;
    }
    options.check()?;
    Ok(options)
}

fn in_memory(url: &EngineUrl, _: &Options) -> Result<Connecting> {
    if url.user.is_some() || !url.hosts.is_empty() || !url.path.is_empty() {
        return Err(wrong(
            "memory:// has no user, host or path: it is a new, empty store inside this process",
        ));
    }
    Ok(Box::pin(async { Ok(Ylock::in_memory()) }))
}

/// Returns the name of the engine that URLs with this scheme are for, and what is compiled in of it.
pub(crate) fn engine_of(scheme: &str) -> Result<(&'static str, &'static Compiled)> {
    let (name, is_kind) = scheme.split_once('+').map_or((scheme, false), |(name, _)| (name, true));
    for engine in ENGINES.iter().filter(|engine| engine.has_kinds || !is_kind) {
        let Some((_, feature)) = engine.schemes.iter().find(|(known, _)| *known == name) else { continue };
        let not_compiled = || {
            wrong(format!("{scheme}:// is not compiled in: switch on the Cargo feature {feature:?} of ylock"))
        };
        return Ok((engine.schemes[0].0, engine.compiled.as_ref().ok_or_else(not_compiled)?));
    }
    Err(no_such_engine(scheme))
}

fn no_such_engine(scheme: &str) -> Error {
    let there = ENGINES.iter().filter(|engine| engine.compiled.is_some());
    let there = there.map(|engine| format!("{}://", engine.schemes[0].0)).collect::<Vec<_>>().join(" and ");
    let hint = nearest(scheme).map(|near| format!("; did you mean {near}://?")).unwrap_or_default();
    wrong(format!("no engine has the scheme {scheme:?}{hint} (compiled in: {there})"))
}

/// Returns the scheme that was probably meant, if one is similar.
fn nearest(scheme: &str) -> Option<&'static str> {
    let scheme = scheme.to_lowercase();
    let likeness = |name: &str| strsim::jaro_winkler(&scheme, name);
    let names = ENGINES.iter().flat_map(|engine| engine.schemes).map(|(name, _)| *name);
    names.max_by(|a, b| likeness(a).total_cmp(&likeness(b))).filter(|near| likeness(near) > 0.8)
}

fn wrong(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Config, message)
}
