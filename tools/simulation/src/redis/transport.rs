//! The way of a client to the server: streams of bytes.

use std::future::pending;
use std::io;
use std::sync::Arc;

use async_trait::async_trait;
use ylock_engine_redis::transport::{Stream, Transport};

use super::server::Server;
use crate::world::sleep;

/// A client's way to a server.
#[derive(Debug)]
pub struct Dialer(Arc<Server>);

impl Dialer {
    /// Creates the way of a client to this server.
    pub fn to(server: &Arc<Server>) -> Self {
        Self(Arc::clone(server))
    }
}

#[async_trait]
impl Transport for Dialer {
    async fn open(&self, _: &str, _: u16) -> io::Result<Box<dyn Stream>> {
        let (end, time) = self.0.dial();
        let Some(time) = time else { return pending().await };
        sleep(&self.0.world, time).await;
        match self.0.inner().accept(end.number) {
            true => Ok(Box::new(end)),
            false => Err(io::ErrorKind::ConnectionRefused.into()),
        }
    }
}
