//! The only part of this engine that knows the crates `tonic` and `prost`: one connection to one member of the cluster at a time, on which
//! everything is sent. It is made again, to the next member, when that one does not answer; nothing is sent again by itself.

mod connect;
mod diagnose;
mod errors;
mod live;
mod messages;
mod requests;
#[cfg(feature = "tls")]
mod tls;
#[cfg(not(feature = "tls"))]
#[path = "no_tls.rs"]
mod tls;
mod watches;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::uri::PathAndQuery;
use prost::Message;
use tonic::client::Grpc;
use tonic_prost::ProstCodec;
use ylock_core::Result;
use ylock_core::connection::{Live, SharedConnection, Timeouts, driven};
use ylock_core::engine::Diagnostics;
use ylock_core::environment::{Answer, Environment, Moment};

use self::connect::Connector;
use self::live::Member;
use self::messages::{GrantRequest, GrantResponse, RevokeRequest, RevokeResponse};
use self::messages::{TxnRequest, TxnResponse};
use crate::algorithm::store::{Fault, Granted, Outcome, Pending, Store, Transaction, Watching};
use crate::options::EtcdOptions;

const TRANSACT: &str = "/etcdserverpb.KV/Txn";
const GRANT: &str = "/etcdserverpb.Lease/LeaseGrant";
const REVOKE: &str = "/etcdserverpb.Lease/LeaseRevoke";

/// The members of a cluster, of which one is used at a time.
pub(crate) struct Servers {
    environment: Arc<dyn Environment>,
    connector: Arc<Connector>,
    request_timeout: Duration,
    shared: Arc<SharedConnection<Member>>,
    /// The member to try first when a connection is made.
    member: Arc<AtomicUsize>,
}

impl Servers {
    pub(crate) fn of(options: &EtcdOptions, environment: &Arc<dyn Environment>) -> Result<Self> {
        let timeouts = Timeouts { connect: options.connect_timeout(), request: options.request_timeout() };
        Ok(Self {
            environment: Arc::clone(environment),
            connector: Arc::new(Connector::of(options, environment)?),
            request_timeout: options.request_timeout(),
            shared: Arc::new(SharedConnection::new(environment, timeouts)),
            // Clients of one cluster do not all begin with the same member.
            member: Arc::new(AtomicUsize::new(environment.random() as usize)),
        })
    }

    /// Waits until there is a connection.
    pub(crate) async fn connected(&self) -> Result<()> {
        self.live(self.connector.first_patience()).await.map(drop)
    }

    /// Returns the connection, or makes one, and waits for each member for as long as `patience`. Which is not long where locks are held: a member that
    /// hangs must not cost them their leases.
    async fn live(&self, patience: Duration) -> Result<Live<Member>> {
        let connect = || -> Answer<Result<()>> {
            let (connector, shared) = (Arc::clone(&self.connector), Arc::clone(&self.shared));
            let member = Arc::clone(&self.member);
            Box::pin(async move {
                shared.put(connector.connect(&member, patience).await?);
                Ok(())
            })
        };
        self.shared.get_within(patience * self.connector.count(), connect).await
    }

    /// Sends a request and waits for its answer, for as long as one may take. If the login has ended, the request has had no effect, and is sent once
    /// more with another login: after a while without requests that is so for every client.
    async fn ask<T, F>(&self, request: impl Fn(Live<Member>) -> F + Send + Sync) -> Result<T, Fault>
    where
        F: Future<Output = Result<T, tonic::Status>> + Send,
        T: Send,
    {
        let until = self.environment.now().plus(self.request_timeout);
        let first = self.ask_once(&request, until).await?;
        let answer = match first {
            Err(status) if errors::is_end_of_login(&status) => self.ask_once(&request, until).await?,
            answer => answer,
        };
        answer.map_err(|status| errors::classify(&status).0)
    }

    /// Sends a request and waits for its answer until then. A connection over which it did not come is given up.
    async fn ask_once<T, F>(
        &self,
        request: impl Fn(Live<Member>) -> F + Send,
        until: Moment,
    ) -> Result<Result<T, tonic::Status>, Fault>
    where
        F: Future<Output = Result<T, tonic::Status>> + Send,
        T: Send,
    {
        let live = match self.shared.here() {
            Some(live) => live,
            None => Box::pin(self.live_in_time(until)).await?,
        };
        let used = live.clone();
        let answer = driven(self.shared.elsewhere(&live), request(live));
        let answer = tokio::select! {
            // An answer that is there counts, also after a pause of the process.
            biased;
            answer = answer => answer.map_err(Fault::Unknown)?,
            () = self.environment.sleep(until.since(self.environment.now())) => {
                self.give_up(&used);
                return Err(Fault::Unknown(errors::unavailable("the server did not answer in time")));
            }
        };
        if answer.as_ref().is_err_and(|status| errors::classify(status).1) {
            self.give_up(&used);
        }
        Ok(answer)
    }

    /// Returns a connection, if there is one until then.
    async fn live_in_time(&self, until: Moment) -> Result<Live<Member>, Fault> {
        let patience = self.request_timeout.min(self.connector.first_patience());
        tokio::select! {
            biased;
            live = self.live(patience) => live.map_err(Fault::Refused),
            () = self.environment.sleep(until.since(self.environment.now())) => {
                Err(Fault::Refused(errors::unavailable("no member of the cluster can be reached")))
            }
        }
    }

    /// Goes on with the next member.
    fn give_up(&self, live: &Live<Member>) {
        if self.shared.forget(live) {
            self.member.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Sends a request that has one answer.
    async fn unary<A, B>(&self, path: &'static str, message: A) -> Result<B, Fault>
    where
        A: Message + Default + Clone + 'static,
        B: Message + Default + 'static,
    {
        self.ask(|live: Live<Member>| {
            let message = live.way.request(message.clone());
            async move {
                let mut grpc = Grpc::new(live.way.channel.clone());
                grpc.ready().await.map_err(errors::not_ready)?;
                let codec = ProstCodec::<A, B>::default();
                let answer = grpc.unary(message, PathAndQuery::from_static(path), codec).await?;
                Ok(answer.into_inner())
            }
        })
        .await
    }
}

impl Store for Servers {
    fn transact(&self, transaction: Transaction) -> Pending<'_, Outcome> {
        Box::pin(async move {
            let answer: TxnResponse = self.unary(TRANSACT, TxnRequest::from(transaction)).await?;
            requests::outcome(answer)
        })
    }

    fn grant(&self, seconds: i64) -> Pending<'_, Granted> {
        Box::pin(async move {
            let answer: GrantResponse = self.unary(GRANT, GrantRequest { ttl: seconds, id: 0 }).await?;
            let header = requests::header(answer.header);
            Ok(Granted { header, lease: answer.id, seconds: answer.ttl })
        })
    }

    fn revoke(&self, lease: i64) -> Pending<'_, ()> {
        Box::pin(async move {
            match self.unary::<_, RevokeResponse>(REVOKE, RevokeRequest { id: lease }).await {
                Ok(_) | Err(Fault::LeaseGone) => Ok(()),
                Err(fault) => Err(fault),
            }
        })
    }

    fn diagnose(&self) -> futures_util::future::BoxFuture<'_, Diagnostics> {
        Box::pin(diagnose::diagnose(&self.connector, &*self.environment))
    }

    fn watch(&self, key: Vec<u8>, changes: bool) -> Pending<'_, Watching> {
        let environment = Arc::clone(&self.environment);
        Box::pin(self.ask(move |live: Live<Member>| {
            let (environment, key) = (Arc::clone(&environment), key.clone());
            async move { live.watches.watch(&live.way, &environment, key, changes).await }
        }))
    }
}

impl fmt::Debug for Servers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Servers").field("connector", &self.connector).finish_non_exhaustive()
    }
}
