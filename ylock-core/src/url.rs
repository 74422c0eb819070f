//! The URLs that name an engine, its store and its options.

use std::fmt;
use std::net::Ipv6Addr;

use percent_encoding::percent_decode_str;

use crate::error::{Error, ErrorKind, Result};
use crate::options::{Definition, OptionValue, Options};

/// A text that is never shown: not in a log, an error or a `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Hides `text`.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the text itself, for the one place that must send it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// One server of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Host {
    /// Name or address.
    pub name: String,
    /// Port, where the URL gives one.
    pub port: Option<u16>,
}

impl Host {
    /// Creates a server with this name or address, and its port, if it is not the usual one of its store.
    ///
    /// # Examples
    /// ```
    /// # use ylock::url::Host;
    /// let servers = [Host::new("10.0.0.1", None), Host::new("10.0.0.2", 2182)];
    /// assert_eq!(servers.map(|server| server.address(2181)), ["10.0.0.1:2181", "10.0.0.2:2182"]);
    /// ```
    pub fn new(name: impl Into<String>, port: impl Into<Option<u16>>) -> Self {
        Self { name: name.into(), port: port.into() }
    }

    /// Returns `host:port`, as drivers want it, with brackets where the host is an address with colons.
    pub fn address(&self, default_port: u16) -> String {
        self.at(default_port).to_string()
    }

    /// Returns host and port.
    pub fn at(&self, default_port: u16) -> Address {
        Address::new(&*self.name, self.port.unwrap_or(default_port))
    }
}

impl OptionValue for Host {
    fn from_text(text: &str) -> std::result::Result<Self, String> {
        read_host(text).map_err(|_| "not a host, host:port or [::1]:port".to_owned())
    }
}

/// Host and port of a server, as `host:port`, with brackets where the host is an address with colons.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct Address {
    /// Name or address.
    pub host: String,
    /// Port.
    pub port: u16,
}

impl Address {
    /// Creates an address of these parts.
    pub fn new(host: impl Into<String>, port: u16) -> Self {
        Self { host: host.into(), port }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

/// A URL of the form `scheme://user:password@host1,host2:port/path?option=value`, as stores with several hosts need it.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct EngineUrl {
    /// The engine.
    pub scheme: String,
    /// The user to log in as.
    pub user: Option<String>,
    /// The password.
    pub password: Option<Secret>,
    /// The servers, in order.
    pub hosts: Vec<Host>,
    /// The path: the part after the hosts, without the first slash.
    pub path: String,
    /// The options, in order.
    pub options: Vec<(String, String)>,
}

impl EngineUrl {
    /// Reads a URL.
    ///
    /// # Errors
    /// [`ErrorKind::Config`]; the message never contains the user's part of the URL.
    pub fn parse(url: &str) -> Result<Self> {
        let (scheme, rest) = url.split_once("://").ok_or_else(|| {
            wrong("a URL begins with the engine, such as cassandra://host1,host2,host3/keyspace or memory://")
        })?;
        no_login_in_pieces(rest)?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (login, hosts) = match authority.rsplit_once('@') {
            Some((login, hosts)) => (Some(login), hosts),
            None => (None, authority),
        };
        let (user, password) = match login {
            Some(login) => read_login(login)?,
            None => (None, None),
        };
        Ok(Self {
            scheme: scheme.to_owned(),
            user,
            password,
            hosts: read_hosts(hosts)?,
            path: decode(path, "the path")?,
            options: read_options(query)?,
        })
    }

    /// Returns the same URL with a password that is kept elsewhere, such as in the environment or a file. If the URL names no user, it gets
    /// the user without a name: otherwise the password would not be used, and the connection made without a login.
    #[must_use]
    pub fn with_password(self, password: Secret) -> Self {
        Self { user: self.user.or_else(|| Some(String::new())), password: Some(password), ..self }
    }

    /// Returns the same URL with this option, which replaces an earlier value.
    #[must_use]
    pub fn with_option(mut self, name: &str, value: &str) -> Self {
        self.options.retain(|(known, _)| known != name);
        self.options.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Returns the value of an option, if it is given.
    pub fn option(&self, name: &str) -> Option<&str> {
        self.options.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Hands each option to `set` that not every engine has; `set` returns whether the name is one of `known`.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for an unknown name, and the errors of `set`.
    pub fn set_options(
        &self,
        known: &[Definition],
        mut set: impl FnMut(&str, &str) -> Result<bool>,
    ) -> Result<()> {
        let common = Options::definitions();
        for (name, value) in &self.options {
            if !common.iter().any(|option| option.name == name) && !set(name, value)? {
                let known = common.iter().chain(known).map(|option| option.name);
                return Err(unknown_option(name, &known.collect::<Vec<_>>()));
            }
        }
        Ok(())
    }
}

/// Hides the values of options that are passwords, too.
impl fmt::Debug for EngineUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |(name, value): &(String, String)| match name.contains("password") {
            true => format!("{name}=***"),
            false => format!("{name}={value}"),
        };
        f.debug_struct("EngineUrl")
            .field("scheme", &self.scheme)
            .field("user", &self.user)
            .field("password", &self.password)
            .field("hosts", &self.hosts)
            .field("path", &self.path)
            .field("options", &self.options.iter().map(shown).collect::<Vec<_>>())
            .finish()
    }
}

/// Refuses an `@` behind the hosts: a password with a bare `/` or `?` would be read as port, path and option, and the errors about these
/// would show it.
fn no_login_in_pieces(rest: &str) -> Result<()> {
    let behind_hosts = rest.find(['/', '?']).map_or("", |end| &rest[end..]);
    if !behind_hosts.contains('@') {
        return Ok(());
    }
    Err(wrong(
        "an @ stands behind the hosts of the URL: in a user, a password or an option write / as %2F, ? as %3F, @ as %40",
    ))
}

fn read_login(login: &str) -> Result<(Option<String>, Option<Secret>)> {
    let (user, password) = match login.split_once(':') {
        Some((user, password)) => (user, Some(Secret(decode(password, "the password")?))),
        None => (login, None),
    };
    Ok((Some(decode(user, "the user")?), password))
}

fn read_hosts(hosts: &str) -> Result<Vec<Host>> {
    if hosts.is_empty() {
        return Ok(Vec::new());
    }
    hosts.split(',').map(read_host).collect()
}

fn read_host(host: &str) -> Result<Host> {
    let (name, port) = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, "")) => (address, None),
        Some((address, port)) => (address, Some(port.strip_prefix(':').unwrap_or(""))),
        None if host.parse::<Ipv6Addr>().is_ok() => (host, None),
        None => match host.split_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (host, None),
        },
    };
    if name.is_empty() {
        return Err(wrong("a host of the URL is empty"));
    }
    if name.contains(char::is_whitespace) {
        return Err(wrong(&format!("host {name:?} of the URL has a blank in it")));
    }
    let port = match port {
        Some(port) => match port.parse() {
            Ok(port) if port > 0 => Some(port),
            _ => return Err(wrong(&format!("host {name}: {port:?} is not a port"))),
        },
        None => None,
    };
    Ok(Host::new(decode(name, "a host")?, port))
}

fn read_options(query: &str) -> Result<Vec<(String, String)>> {
    let mut options: Vec<(String, String)> = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair
            .split_once('=')
            .ok_or_else(|| wrong(&format!("option {pair:?} has no value: write {pair}=…")))?;
        let (name, value) = (decode(name, "an option")?, decode(value, "an option")?);
        if options.iter().any(|(earlier, _)| *earlier == name) {
            return Err(wrong(&format!("option {name} is given twice")));
        }
        options.push((name, value));
    }
    Ok(options)
}

fn decode(text: &str, what: &str) -> Result<String> {
    if !is_percent_encoded(text) {
        return Err(wrong(&format!(
            "{what} of the URL has a % without two hexadecimal digits: write % as %25"
        )));
    }
    percent_decode_str(text)
        .decode_utf8()
        .map(Into::into)
        .map_err(|_| wrong(&format!("{what} of the URL is not UTF-8 after decoding its percent signs")))
}

/// Returns the text in which some bytes were written as a percent sign and two hexadecimal digits, for engines. `None` if a percent sign is followed
/// by something else, or the bytes are not UTF-8.
pub fn percent_decoded(text: &str) -> Option<String> {
    let decoded = is_percent_encoded(text).then(|| percent_decode_str(text).decode_utf8())?;
    decoded.ok().map(Into::into)
}

fn is_percent_encoded(text: &str) -> bool {
    let is_code =
        |after: &str| after.len() >= 2 && after.bytes().take(2).all(|byte| byte.is_ascii_hexdigit());
    text.split('%').skip(1).all(is_code)
}

fn wrong(message: &str) -> Error {
    Error::new(ErrorKind::Config, message)
}

/// Returns the error for an unknown option; it names the nearest of `known`.
pub(crate) fn unknown_option(name: &str, known: &[&str]) -> Error {
    let mut message = format!("unknown option {name:?}");
    let near = known
        .iter()
        .map(|known| (strsim::jaro_winkler(name, known), known))
        .filter(|(likeness, _)| *likeness > 0.75)
        .max_by(|a, b| a.0.total_cmp(&b.0));
    match near {
        Some((_, near)) => message.push_str(&format!("; did you mean {near:?}?")),
        None => message.push_str(&format!("; known are {}", known.join(", "))),
    }
    Error::new(ErrorKind::Config, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_hosts_ports_login_and_options() {
        let url = EngineUrl::parse("cassandra://me:p%40ss@a,b:9043,[::1]:9044/ks?lease=10s&fairness=strict")
            .unwrap();
        assert_eq!(url.scheme, "cassandra");
        assert_eq!(url.user.as_deref(), Some("me"));
        assert_eq!(url.password.as_ref().unwrap().reveal(), "p@ss");
        assert_eq!(url.hosts[0], Host::new("a", None));
        assert_eq!(url.hosts[1], Host::new("b", 9043));
        assert_eq!(url.hosts[2], Host::new("::1", 9044));
        assert_eq!(url.path, "ks");
        assert_eq!(url.options, [("lease".into(), "10s".into()), ("fairness".into(), "strict".into())]);
    }

    #[test]
    fn the_value_of_an_option_may_be_a_host() {
        for (text, host, port) in [
            ("a", "a", 5432),
            ("a:1", "a", 1),
            ("[::1]:2", "::1", 2),
            ("::1", "::1", 5432),
            ("[::1]", "::1", 5432),
        ] {
            assert_eq!(Host::from_text(text).unwrap().at(5432), Address::new(host, port), "{text}");
        }
        for wrong in ["", ":1", "a:x", "a:70000", "[]", "a:b:1", "[::1]2", "::1]:2"] {
            assert!(Host::from_text(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn no_secret_is_shown() {
        for url in ["redis://u:hunter2@h", "redis+sentinel://h/s?sentinel_password=hunter2"] {
            let url = EngineUrl::parse(url).unwrap();
            assert!(!format!("{url:?}").contains("hunter2"));
        }
        let error = EngineUrl::parse("redis://u:hunter2@h:notaport").unwrap_err();
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }

    #[test]
    fn what_is_kept_elsewhere_takes_the_place_of_what_the_url_says() {
        let url = EngineUrl::parse("redis://h?lease=1s&max_wait=1s").unwrap().with_option("lease", "2s");
        assert_eq!((url.option("lease"), url.options.len()), (Some("2s"), 2));
        let url = url.with_password(Secret::new("x"));
        assert_eq!(url.user.as_deref(), Some(""), "a password without a user would not be used");
        assert_eq!(
            EngineUrl::parse("x://me@h").unwrap().with_password(Secret::new("x")).user.as_deref(),
            Some("me")
        );
    }

    #[test]
    fn bad_urls_say_what_is_bad() {
        for (url, part) in [
            ("nonsense", "begins with the engine"),
            ("x://h:0", "port"),
            ("x://a,,b", "empty"),
            ("x://h?lease", "no value"),
            ("x://h?lease=1s&lease=2s", "twice"),
            ("x://h/%ff", "UTF-8"),
            ("x://h/%zz", "%25"),
            ("x://h?max_wait=1s%", "%25"),
            ("x://a b", "blank"),
        ] {
            let error = EngineUrl::parse(url).unwrap_err();
            assert!(error.to_string().contains(part), "{url}: {error}");
        }
    }

    #[test]
    fn an_unknown_option_names_the_near_one() {
        assert!(unknown_option("leese", &["lease", "wait"]).to_string().contains("\"lease\""));
        assert!(unknown_option("zzz", &["lease", "wait"]).to_string().contains("lease, wait"));
    }
}
