//! The way of a client to the server: streams of bytes.

use std::future::pending;
use std::io;
use std::sync::Arc;

use async_trait::async_trait;
use ylock_engine_redis::transport::{Stream, Transport};

use super::servers::Servers;
use crate::world::sleep;

/// A client's way to the servers.
#[derive(Debug)]
pub struct Dialer(Arc<Servers>);

impl Dialer {
    /// Creates the way of a client to these servers.
    pub fn to(servers: &Arc<Servers>) -> Self {
        Self(Arc::clone(servers))
    }
}

#[async_trait]
impl Transport for Dialer {
    async fn open(&self, host: &str, _: u16) -> io::Result<Box<dyn Stream>> {
        let server = self.0.at(host).ok_or(io::ErrorKind::NotFound)?;
        let (end, time) = server.dial();
        let Some(time) = time else { return pending().await };
        sleep(&server.world, time).await;
        match server.inner().accept(end.number) {
            true => Ok(Box::new(end)),
            false => Err(io::ErrorKind::ConnectionRefused.into()),
        }
    }
}
