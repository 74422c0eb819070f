//! The first calls of a session, which take longest: the server compiles each function anew for each session.
//!
//! A request that came first could take longer than a request may on a server that is busy. Its connection would be forgotten, and the next one begin as
//! cold: for as long as the server is busy no request would be answered. So a connection calls the functions once in the time for connecting.

use futures_util::future::join;
use tokio_postgres::Client;
use ylock_core::environment::Moment;

use super::connector::Connector;
use super::errors;
use crate::functions::quoted;

/// The calls: one gets in, another waits, and gets in when the first has left.
const CALLS: [&str; 7] = [
    "acquire({key}, {one}, 'w', 1000000, true, true, null, 1000000, {one}, null, '', false)",
    "acquire({key}, {two}, 'w', 1000000, true, true, null, 1000000, {two}, 0, '', false)",
    "renew({key}, {one}, 'w', 1000000, null, null, null, null, null, null, null, false)",
    "renew_many(array[{key}], array[{one}], array['w'], array[1000000])",
    "release({key}, {one}, 0, null, null, null, null, null, null, null, null, false)",
    "acquire({key}, {two}, 'w', 1000000, true, true, null, 1000000, {two}, 0, '', false)",
    "release({key}, {two}, 0, null, null, null, null, null, null, null, null, false)",
];

/// Calls the functions that hold and pass on a lock, in a transaction that is rolled back, with a key that no other client has.
///
/// Nothing that goes wrong here is an error of the connection: what is wrong with a function, or with the connection, the next request tells. One that is
/// not warm in time is kept: another one would begin as cold.
pub(super) async fn run(connector: &Connector, client: &Client, until: Moment) {
    let [key, one, two] = [(); 3].map(|()| connector.environment().random());
    let calls = statements(&connector.namespace, key, one, two);
    let ended = async {
        // After an error the transaction waits for its end.
        let (_, ended) = join(client.batch_execute(&calls), client.batch_execute("rollback")).await;
        ended.map_err(errors::classify)
    };
    let _ = connector.until(until, ended).await;
}

fn statements(namespace: &str, key: u64, one: u64, two: u64) -> String {
    let uuid = |number: u64| format!("'{:032x}'::uuid", number);
    let mut text = String::from("begin");
    for call in CALLS {
        let call = call
            .replace("{key}", &format!("decode('{key:016x}', 'hex')"))
            .replace("{one}", &uuid(one))
            .replace("{two}", &uuid(two));
        text.push_str(&format!("; select {}.{call}", quoted(namespace)));
    }
    text
}
