//! From a URL to a client.

use ylock_core::options;
use ylock_core::url::EngineUrl;
use ylock_core::{ClientName, Error, ErrorKind, Options, Result, Ylock};

use crate::config::Config;

/// The engines that are compiled in, by their URL schemes.
const ENGINES: [(&str, bool); 4] = [
    ("memory", true),
    ("cassandra", cfg!(feature = "cassandra")),
    ("redis", cfg!(feature = "redis")),
    ("zookeeper", cfg!(feature = "zookeeper")),
];
/// Schemes of engines, and the Cargo features that switch them on.
const FEATURES: [(&str, &str); 4] =
    [("cassandra", "cassandra"), ("redis", "redis"), ("rediss", "redis-tls"), ("zookeeper", "zookeeper")];

/// Connects to the store that `url` names.
///
/// - `memory://`: a new, empty store inside this process, like [`Ylock::in_memory`].
/// - `cassandra://user:password@host1,host2:port/keyspace`, with the Cargo feature `cassandra`.
/// - `redis://user:password@host:port/database`, with the Cargo feature `redis`; `rediss://` for TLS, with `redis-tls`.
/// - `redis+sentinel://user:password@host1,host2:port/service/database`: the master that the Sentinels know by the name of the
///   service; and `redis+cluster://user:password@host1,host2:port`. They need the same features; `rediss+…` is for TLS.
/// - `zookeeper://user:password@host1,host2:port/path`, with the Cargo feature `zookeeper`.
///
/// The options `lease`, `fairness`, `hand_over`, `hand_over_time` and `wait` may follow after `?` with every engine; they
/// become the [`Options`] of the client. With `metrics=on` and the Cargo feature `metrics` the client is
/// measured by `MetricsLayer`; `client` [names](Ylock::with_name) it. An engine has options of its own beside them. Letters that have a meaning
/// in a URL, such as `@` in a password, are written with a percent sign.
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
    let Read { engine, options, name, measured } = Read::of(url)?;
    let client = engine.connect().await?.with_options(options).with_name(name.as_str())?;
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
    engine: Engine,
    options: Options,
    name: ClientName,
    measured: bool,
}

impl Read {
    fn of(mut url: EngineUrl) -> Result<Self> {
        let measured = take(&mut url, "metrics").map(|value| options::read("metrics", &value));
        let measured = measured.transpose()?.unwrap_or(false);
        if measured && !cfg!(feature = "metrics") {
            return Err(wrong(
                "metrics=on is not compiled in: switch on the Cargo feature \"metrics\" of ylock",
            ));
        }
        let name = take(&mut url, "client").map(ClientName::new).transpose()?.unwrap_or_default();
        let options = common_options(&url)?;
        Ok(Self { engine: Engine::of(&url, &options)?, options, name, measured })
    }
}

/// The engine that a URL names, with its options. These are boxed because they differ much in size.
enum Engine {
    Memory,
    #[cfg(feature = "cassandra")]
    Cassandra(Box<ylock_engine_cassandra::CassandraOptions>),
    #[cfg(feature = "redis")]
    Redis(Box<ylock_engine_redis::RedisOptions>),
    #[cfg(feature = "zookeeper")]
    Zookeeper(Box<ylock_engine_zookeeper::ZookeeperOptions>),
}

impl Engine {
    #[cfg_attr(
        not(any(feature = "cassandra", feature = "redis", feature = "zookeeper")),
        expect(unused_variables, reason = "the in-memory engine has no options of its own")
    )]
    fn of(url: &EngineUrl, options: &Options) -> Result<Self> {
        match engine_of(&url.scheme) {
            "memory" => in_memory(url),
            #[cfg(feature = "cassandra")]
            "cassandra" => ylock_engine_cassandra::CassandraOptions::from_url(url, options)
                .map(Box::new)
                .map(Self::Cassandra),
            #[cfg(feature = "redis")]
            "redis" | "rediss" => {
                ylock_engine_redis::RedisOptions::from_url(url, options).map(Box::new).map(Self::Redis)
            }
            #[cfg(feature = "zookeeper")]
            "zookeeper" => ylock_engine_zookeeper::ZookeeperOptions::from_url(url, options)
                .map(Box::new)
                .map(Self::Zookeeper),
            _ => Err(no_such_engine(&url.scheme)),
        }
    }

    /// Connects the engine. Its future is boxed: with every engine compiled in, a future that contains one of each is too deep for the
    /// compiler's default limits.
    async fn connect(self) -> Result<Ylock> {
        Ok(match self {
            Self::Memory => Ylock::in_memory(),
            #[cfg(feature = "cassandra")]
            Self::Cassandra(options) => {
                Ylock::new(Box::pin(ylock_engine_cassandra::CassandraEngine::connect(&options)).await?)
            }
            #[cfg(feature = "redis")]
            Self::Redis(options) => {
                Ylock::new(Box::pin(ylock_engine_redis::RedisEngine::connect(&options)).await?)
            }
            #[cfg(feature = "zookeeper")]
            Self::Zookeeper(options) => {
                Ylock::new(Box::pin(ylock_engine_zookeeper::ZookeeperEngine::connect(&options)).await?)
            }
        })
    }
}

/// Takes an option of the client itself out of the URL: no engine sees it.
fn take(url: &mut EngineUrl, name: &str) -> Option<String> {
    let place = url.options.iter().position(|(known, _)| known == name)?;
    Some(url.options.remove(place).1)
}

#[cfg(feature = "metrics")]
fn with_metrics(client: &Ylock) -> Ylock {
    client.with(ylock_metrics::MetricsLayer::new())
}

#[cfg(not(feature = "metrics"))]
fn with_metrics(client: &Ylock) -> Ylock {
    client.clone()
}

/// Returns the part of a scheme that names the engine. With Redis, the part after a plus says how the servers form one store.
fn engine_of(scheme: &str) -> &str {
    match scheme.split_once('+') {
        Some((engine @ ("redis" | "rediss"), _)) => engine,
        _ => scheme,
    }
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

fn in_memory(url: &EngineUrl) -> Result<Engine> {
    if url.user.is_some() || !url.hosts.is_empty() || !url.path.is_empty() {
        return Err(wrong(
            "memory:// has no user, host or path: it is a new, empty store inside this process",
        ));
    }
    url.set_options(&[], |_, _| Ok(false)).map_err(|error| error.with_engine("memory"))?;
    Ok(Engine::Memory)
}

fn no_such_engine(scheme: &str) -> Error {
    let there = ENGINES.iter().filter(|(_, compiled_in)| *compiled_in);
    let there = there.map(|(name, _)| format!("{name}://")).collect::<Vec<_>>().join(" and ");
    if let Some((_, feature)) = FEATURES.iter().find(|(known, _)| *known == engine_of(scheme)) {
        return wrong(format!(
            "{scheme}:// is not compiled in: switch on the Cargo feature {feature:?} of ylock"
        ));
    }
    let hint = nearest(scheme).map(|near| format!("; did you mean {near}://?")).unwrap_or_default();
    wrong(format!("no engine has the scheme {scheme:?}{hint} (compiled in: {there})"))
}

/// Returns the scheme that was probably meant, if one is similar.
fn nearest(scheme: &str) -> Option<&'static str> {
    let scheme = scheme.to_lowercase();
    let likeness = |name: &str| strsim::jaro_winkler(&scheme, name);
    let names = ENGINES.map(|(name, _)| name).into_iter().chain(FEATURES.map(|(scheme, _)| scheme));
    names.max_by(|a, b| likeness(a).total_cmp(&likeness(b))).filter(|near| likeness(near) > 0.8)
}

fn wrong(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Config, message)
}
