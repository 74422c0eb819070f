//! The clients that want the same locks.

use ylock::Ylock;

/// How many tasks there are, and how many clients they have.
pub(crate) const TASKS: usize = 32;
pub(crate) const CLIENTS: usize = 8;

pub(crate) async fn connect(url: &str) -> Vec<Ylock> {
    let mut clients = vec![ylock::connect(url).await.expect("the store answers")];
    while clients.len() < CLIENTS {
        // In memory each connection would be a store of its own.
        let next = if url.starts_with("memory") {
            clients[0].clone()
        } else {
            ylock::connect(url).await.expect("it answers")
        };
        clients.push(next);
    }
    clients
}

pub(crate) async fn close(clients: Vec<Ylock>) {
    for client in clients {
        client.close().await;
    }
}
