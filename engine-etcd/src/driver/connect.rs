//! What connects: to one member after the other, until one of them can be used.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::uri::PathAndQuery;
use prost::Message;
use tonic::client::Grpc;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::{Channel, Endpoint};
use tonic_prost::ProstCodec;
use ylock_core::environment::Environment;
use ylock_core::options::Login;
use ylock_core::url::Host;
use ylock_core::{Error, ErrorKind, Result};

use super::errors;
use super::live::{Member, Way};
use super::messages::{AuthenticateRequest, AuthenticateResponse, StatusRequest, StatusResponse};
use super::tls::Encryption;
use super::watches::Watches;
use crate::options::{DEFAULT_PORT, EtcdOptions};

const AUTHENTICATE: &str = "/etcdserverpb.Auth/Authenticate";
const STATUS: &str = "/etcdserverpb.Maintenance/Status";

/// The first versions of their lines that do not say of a revoked lease that it was renewed.
const GOOD: [[u32; 3]; 3] = [[3, 4, 38], [3, 5, 23], [3, 6, 5]];

/// How long a server is asked why it has ended a connection; one that has no reason to end it says nothing.
const EXPLANATION: Duration = Duration::from_secs(1);

/// What connects to the members of a cluster; see the [module](self).
pub(super) struct Connector {
    environment: Arc<dyn Environment>,
    hosts: Vec<Host>,
    login: Option<Login>,
    encryption: Encryption,
    allow_old: bool,
    connect_timeout: Duration,
    pub(super) request_timeout: Duration,
}

impl Connector {
    pub(super) fn of(options: &EtcdOptions, environment: &Arc<dyn Environment>) -> Result<Self> {
        Ok(Self {
            environment: Arc::clone(environment),
            hosts: options.hosts().to_vec(),
            login: options.login().cloned(),
            encryption: Encryption::of(options)?,
            allow_old: options.allow_old(),
            connect_timeout: options.connect_timeout(),
            request_timeout: options.request_timeout(),
        })
    }

    /// Returns how long a member may take if all are to be tried while a client connects for the first time.
    pub(super) fn first_patience(&self) -> Duration {
        self.connect_timeout / self.count()
    }

    /// Returns how many members there are.
    pub(super) fn count(&self) -> u32 {
        u32::try_from(self.hosts.len()).unwrap_or(u32::MAX).max(1)
    }

    /// Connects to a member. Each is tried once, for as long as `patience`, from `member` on, which then names the one that is used.
    pub(super) async fn connect(&self, member: &AtomicUsize, patience: Duration) -> Result<Member> {
        let first = member.load(Ordering::Relaxed);
        let mut failed: Option<Error> = None;
        for at in 0..self.hosts.len() {
            let number = first.wrapping_add(at);
            let host = &self.hosts[number % self.hosts.len()];
            let attempt = self.connect_to(host);
            // One that hangs leaves time for the others.
            let connected = tokio::select! {
                biased;
                connected = attempt => connected,
                () = self.environment.sleep(patience) => Err(errors::unavailable(format!(
                    "the member at {} did not answer in time", host.address(DEFAULT_PORT)
                ))),
            };
            match connected {
                Ok(connected) => {
                    member.store(number, Ordering::Relaxed);
                    return Ok(connected);
                }
                // What is wrong with the options or the login is said, and not that the next member cannot be reached.
                Err(error) if failed.as_ref().is_none_or(|known| known.kind() != ErrorKind::Config) => {
                    failed = Some(error);
                }
                Err(_) => {}
            }
        }
        Err(failed.unwrap_or_else(|| errors::config("no host is given")))
    }

    async fn connect_to(&self, host: &Host) -> Result<Member> {
        let address = host.address(DEFAULT_PORT);
        let (way, status) = match self.greet(&address).await {
            Err(error) if error.kind() == ErrorKind::Unavailable => {
                return Err(self.explain(error, host).await);
            }
            greeted => greeted?,
        };
        self.check(&status, &address)?;
        Ok(Member { way, watches: Arc::new(Watches::default()) })
    }

    /// Connects to a member, and returns what it tells of itself.
    async fn greet(&self, address: &str) -> Result<(Way, StatusResponse)> {
        let way = self.way_to(address).await?;
        let status = status(&way).await?;
        Ok((way, status))
    }

    /// Returns the error of a connection that could not be made, or over which the first request got no answer, with the server's reason if it has one.
    async fn explain(&self, error: Error, host: &Host) -> Error {
        let reason = tokio::select! {
            biased;
            reason = self.encryption.why_ended(host) => reason,
            () = self.environment.sleep(EXPLANATION) => None,
        };
        match reason {
            Some(reason) => reason.with_source(error),
            None => error,
        }
    }

    async fn way_to(&self, address: &str) -> Result<Way> {
        let channel = self.endpoint(address)?.connect().await.map_err(|error| {
            errors::unavailable(format!("the member at {address} cannot be reached")).with_source(error)
        })?;
        let token = match &self.login {
            Some(login) => Some(self.log_in(&channel, login).await?),
            None => None,
        };
        Ok(Way { channel, token })
    }

    /// Returns what a member tells of itself, by a connection of its own.
    pub(super) async fn status_of(&self, address: &str) -> Result<StatusResponse> {
        Ok(self.greet(address).await?.1)
    }

    /// Returns the addresses of the members.
    pub(super) fn addresses(&self) -> impl Iterator<Item = String> + '_ {
        self.hosts.iter().map(|host| host.address(DEFAULT_PORT))
    }

    /// Returns the user that the client logs in as.
    pub(super) fn user(&self) -> Option<&str> {
        self.login.as_ref().map(|login| login.user.as_str())
    }

    pub(super) fn is_encrypted(&self) -> bool {
        self.encryption.is_on()
    }

    fn endpoint(&self, address: &str) -> Result<Endpoint> {
        let scheme = if self.encryption.is_on() { "https" } else { "http" };
        let endpoint = Endpoint::from_shared(format!("{scheme}://{address}"))
            .map_err(|error| errors::config(format!("{address} is no address")).with_source(error))?;
        // A request must not wait until the one before it is acknowledged. Silence is noticed by requests: leases are made all the time, and
        // servers close connections that ping more often than every five seconds.
        let endpoint = endpoint.tcp_nodelay(true).connect_timeout(self.connect_timeout);
        self.encryption.of_endpoint(endpoint)
    }

    async fn log_in(&self, channel: &Channel, login: &Login) -> Result<MetadataValue<Ascii>> {
        let request =
            AuthenticateRequest { name: login.user.clone(), password: login.password.reveal().to_owned() };
        let answer: AuthenticateResponse = ask(channel, AUTHENTICATE, tonic::Request::new(request)).await?;
        answer.token.parse().map_err(|_| errors::unexpected("the server answered a login with something odd"))
    }

    /// Checks whether locks can be kept by this member.
    fn check(&self, status: &StatusResponse, address: &str) -> Result<()> {
        if status.is_learner {
            return Err(errors::unavailable(format!("the member at {address} is a learner")));
        }
        if !self.allow_old && is_old(&status.version) {
            return Err(errors::config(format!(
                "etcd {} at {address} is too old: it may answer that a lease was renewed which was revoked. 3.4.38, 3.5.23, 3.6.5 and later \
                 do not; allow_old=on uses it all the same",
                status.version
            )));
        }
        Ok(())
    }
}

async fn status(way: &Way) -> Result<StatusResponse> {
    ask(&way.channel, STATUS, way.request(StatusRequest {})).await
}

/// Asks a question that changes nothing.
async fn ask<A, B>(channel: &Channel, path: &'static str, request: tonic::Request<A>) -> Result<B>
where
    A: Message + Default + 'static,
    B: Message + Default + 'static,
{
    let mut grpc = Grpc::new(channel.clone());
    let answer = async {
        grpc.ready().await.map_err(errors::not_ready)?;
        grpc.unary(request, PathAndQuery::from_static(path), ProstCodec::<A, B>::default()).await
    };
    answer.await.map(tonic::Response::into_inner).map_err(|status| errors::of_question(&status))
}

/// Returns whether a server may say of a revoked lease that it was renewed. What cannot be read is not taken for old.
pub(super) fn is_old(version: &str) -> bool {
    let numbers: Option<Vec<u32>> =
        version.split(['.', '-', '+']).take(3).map(|number| number.parse().ok()).collect();
    let Some([major, minor, patch]) = numbers.and_then(|numbers| <[u32; 3]>::try_from(numbers).ok()) else {
        return false;
    };
    match GOOD.iter().find(|good| good[..2] == [major, minor]) {
        Some(good) => patch < good[2],
        None => [major, minor, patch] < GOOD[0],
    }
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector")
            .field("hosts", &self.addresses().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_of_versions_has_a_first_good_one() {
        for old in
            ["3.3.27", "3.4.23", "3.4.37", "3.5.0", "3.5.22", "3.6.0", "3.6.4", "3.6.0-alpha.0", "2.3.8"]
        {
            assert!(is_old(old), "{old}");
        }
        for good in
            ["3.4.38", "3.4.40", "3.5.23", "3.6.5", "3.6.16", "3.7.0", "4.0.0", "3.7.0-rc.1", "", "odd"]
        {
            assert!(!is_old(good), "{good}");
        }
    }
}
