//! One life of the connection.

use std::sync::Arc;

use tonic::Request;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::Channel;
use ylock_core::connection::Connected;

use super::watches::Watches;

/// A member without a leader answers no request that has this: it would go on answering watches, with nothing to tell.
const WITH_LEADER: &str = "hasleader";

/// The way to a member, logged in.
#[derive(Clone)]
pub(super) struct Way {
    pub(super) channel: Channel,
    pub(super) token: Option<MetadataValue<Ascii>>,
}

/// A connection that can be used.
#[derive(Clone)]
pub(super) struct Member {
    pub(super) way: Way,
    pub(super) watches: Arc<Watches>,
}

impl Connected for Member {
    /// Its watches end: those that wait for them look for themselves.
    fn ended(&self) {
        self.watches.end();
    }
}

impl Way {
    /// Returns a message as a request of this connection.
    pub(super) fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        request.metadata_mut().insert(WITH_LEADER, MetadataValue::from_static("true"));
        if let Some(token) = &self.token {
            request.metadata_mut().insert("token", token.clone());
        }
        request
    }
}
