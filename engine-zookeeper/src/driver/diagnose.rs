//! What each server tells of itself: by a connection of its own and the word `srvr`, the only one that servers answer unless they are told
//! otherwise.

use std::io;

use futures_util::future::join_all;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use ylock_core::engine::ServerReport;
use ylock_core::environment::Environment;
use ylock_core::options::Tls;

use crate::options::ZookeeperOptions;

/// An answer is shorter than this.
const LONGEST: u64 = 4096;

/// Asks all servers at once.
pub(super) async fn servers(options: &ZookeeperOptions, environment: &dyn Environment) -> Vec<ServerReport> {
    join_all(options.addresses().map(|address| of_server(address, options, environment))).await
}

async fn of_server(
    address: String,
    options: &ZookeeperOptions,
    environment: &dyn Environment,
) -> ServerReport {
    // What an encrypted connection would have to say is not asked: a server that listens there is all that is found out.
    let is_encrypted = options.tls() != Tls::Off;
    let asked = environment.now();
    let answer = tokio::select! {
        biased;
        answer = ask(&address, !is_encrypted) => answer,
        () = environment.sleep(options.request_timeout()) => Err(io::ErrorKind::TimedOut.into()),
    };
    let mut facts = match answer {
        Ok(answer) => read(address, &answer),
        Err(error) => return ServerReport::failed(address, error.to_string()),
    };
    facts.round_trip = Some(environment.now().since(asked));
    // Of a connector that the program has handed over nothing is known.
    facts.encrypted = options.handed_over().is_none().then_some(is_encrypted);
    facts.login = options.login().map(|login| login.user.clone());
    facts
}

async fn ask(address: &str, will_answer: bool) -> io::Result<String> {
    let mut server = TcpStream::connect(address).await?;
    let mut answer = String::new();
    if will_answer {
        server.write_all(b"srvr").await?;
        server.take(LONGEST).read_to_string(&mut answer).await?;
    }
    Ok(answer)
}

/// Reads an answer; one of other words than these tells nothing.
fn read(address: String, answer: &str) -> ServerReport {
    if answer.contains("not currently serving requests") {
        return ServerReport::failed(
            address,
            "it serves no requests now: it has no contact with a majority of the servers",
        );
    }
    let line = |name| answer.lines().find_map(|line: &str| line.strip_prefix(name)).map(str::trim);
    let mut facts = ServerReport::new(address);
    facts.version =
        line("Zookeeper version:").and_then(|version| Some(version.split([',', '-']).next()?.to_owned()));
    facts.role = line("Mode:").map(str::to_owned);
    facts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read() {
        let answer = "Zookeeper version: 3.8.4-9316c2a7a97e1666d8f4593f34dd6fc36ecc436c, built on 2024-02-12 22:16 UTC\nLatency min/avg/max: 0/0/0\nMode: leader\n";
        let facts = read("a:1".to_owned(), answer);
        assert_eq!((facts.version.as_deref(), facts.role.as_deref()), (Some("3.8.4"), Some("leader")));
    }

    #[test]
    fn a_server_that_will_not_say_is_there_all_the_same() {
        let facts = read("a:1".to_owned(), "srvr is not executed because it is not in the whitelist.\n");
        assert_eq!(facts, ServerReport::new("a:1"));
        let facts = read("a:1".to_owned(), "This ZooKeeper instance is not currently serving requests\n");
        assert!(facts.fault.is_some());
    }
}
