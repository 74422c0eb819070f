//! One session: its requests, each of which may be answered late or never, and everything that lives and dies with it.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ylock_core::StoreToken;
use ylock_core::environment::{Environment, Moment};
use zookeeper_client::{
    Acls, Client, CreateMode, CreateOptions, MultiWriteError, MultiWriteResult, MultiWriter, OneshotWatcher,
    Stat,
};

use super::errors::{Fault, ends_session};
use super::heart::Heart;
use crate::claims::Claims;
use crate::node::{Name, Tag};
use crate::options::Access;
use crate::place::Place;

/// See the [module](self).
pub(crate) struct Session {
    client: Client,
    /// Which one of this client it is.
    pub(crate) number: u64,
    pub(crate) environment: Arc<dyn Environment>,
    pub(crate) base: String,
    /// What this client has in the store, or may have.
    pub(crate) claims: Claims,
    access: Access,
    request_timeout: Duration,
    heart: Heart,
    over: AtomicBool,
}

/// A contender's node that was just made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Made {
    pub(crate) name: Name,
    /// Nothing from servers that do not tell it.
    pub(crate) token: Option<StoreToken>,
}

/// Something that fires once, when a node changes or the session ends.
pub(crate) type Told = OneshotWatcher;

impl Session {
    pub(super) fn new(
        client: Client,
        number: u64,
        environment: Arc<dyn Environment>,
        options: &crate::ZookeeperOptions,
    ) -> Self {
        Self {
            client,
            number,
            environment,
            base: options.base().to_owned(),
            claims: Claims::default(),
            access: options.access(),
            request_timeout: options.request_timeout(),
            heart: Heart::default(),
            over: AtomicBool::new(false),
        }
    }

    pub(crate) fn now(&self) -> Moment {
        self.environment.now()
    }

    /// How long the servers keep it without a sign of life.
    pub(crate) fn timeout(&self) -> Duration {
        self.client.session_timeout()
    }

    /// The longest lease that can be given: nine tenths of it, the validity, are three quarters of the session.
    pub(crate) fn longest_lease(&self) -> Duration {
        self.timeout() * 5 / 6
    }

    /// How long one request may take.
    pub(crate) fn request_timeout(&self) -> Duration {
        self.request_timeout
    }

    /// Whether it has ended. What this says when nobody answers comes long after validity is over, and decides nothing but when
    /// to make another session.
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire) || self.client.state().is_terminated()
    }

    pub(crate) fn end(&self) {
        self.over.store(true, Ordering::Release);
        // Who looks after it lets go of it.
        self.claims.wake.notify_one();
    }

    /// Just before the last write was sent that was confirmed: leases count from here.
    pub(crate) fn confirmed(&self) -> Moment {
        self.heart.confirmed()
    }

    /// See [`heart`](super::heart). Answers when it was sent.
    pub(crate) async fn beat(&self) -> Result<Moment, Fault> {
        self.heart.beat(|| self.now(), || self.check()).await
    }

    async fn check(&self) -> Result<(), Fault> {
        let once = || async {
            let mut writer = self.client.new_multi_writer();
            writer.add_check_version(&self.base, -1)?;
            self.multi(writer).await.map(drop).map_err(Fault::from)
        };
        match once().await {
            // Somebody removed everything. Only a write that was done is a heartbeat.
            Err(Fault::NoNode) => {
                self.make(&self.base).await?;
                once().await
            }
            result => result,
        }
    }

    /// Makes a node and those above it, unless they are there.
    pub(crate) async fn make(&self, path: &str) -> Result<(), Fault> {
        // Whoever may not make it may still use it.
        if self.count(path).await?.is_some() {
            return Ok(());
        }
        self.write(self.client.mkdir(path, &self.with(CreateMode::Persistent))).await
    }

    /// Makes the node of a lock and a contender in it, in one transaction: the contender is alone then. `NodeExists` if there is one.
    pub(crate) async fn make_both(
        &self,
        place: &Place,
        key: &[u8],
        tag: &Tag,
        content: &[u8],
    ) -> Result<Made, Fault> {
        let mut writer = self.client.new_multi_writer();
        writer.add_create(&place.lock, key, &self.with(CreateMode::Container))?;
        writer.add_create(
            &place.child(&tag.prefix()),
            content,
            &self.with(CreateMode::EphemeralSequential),
        )?;
        let results = self.multi(writer).await.map_err(Fault::from)?;
        let mut made = made(tag, &results)?;
        // Servers before 3.8.2 do not tell it of the contender, but of the node that they made in the same transaction.
        made.token = made.token.or_else(|| results.iter().find_map(token_of_result));
        Ok(made)
    }

    /// Makes a contender, at the end of the queue.
    pub(crate) async fn join(&self, place: &Place, tag: &Tag, content: &[u8]) -> Result<Made, Fault> {
        let (path, options) = (place.child(&tag.prefix()), self.with(CreateMode::EphemeralSequential));
        let (stat, place) = self.write(self.client.create(&path, content, &options)).await?;
        let place = i32::try_from(place.into_i64()).unwrap_or(i32::MAX);
        Ok(Made { name: Name { tag: *tag, place }, token: token_of(&stat) })
    }

    /// Makes a contender and removes another one of this client, in one transaction.
    pub(crate) async fn replace(
        &self,
        place: &Place,
        old: &Name,
        tag: &Tag,
        content: &[u8],
    ) -> Result<Made, Fault> {
        let mut writer = self.client.new_multi_writer();
        writer.add_create(
            &place.child(&tag.prefix()),
            content,
            &self.with(CreateMode::EphemeralSequential),
        )?;
        writer.add_delete(&place.child(&old.to_string()), None)?;
        let results = self.multi(writer).await.map_err(Fault::from)?;
        made(tag, &results)
    }

    /// Gives a contender another name and content at the same place, in one transaction.
    pub(crate) async fn rename(
        &self,
        place: &Place,
        old: &Name,
        new: &Name,
        content: &[u8],
    ) -> Result<(), Fault> {
        let mut writer = self.client.new_multi_writer();
        writer.add_create(&place.child(&new.to_string()), content, &self.with(CreateMode::Ephemeral))?;
        writer.add_delete(&place.child(&old.to_string()), None)?;
        self.multi(writer).await.map(drop).map_err(Fault::from)
    }

    /// Removes a contender and the node of its lock. `NotEmpty` if somebody else is there.
    pub(crate) async fn remove_both(&self, place: &Place, name: &Name) -> Result<(), Fault> {
        let mut writer = self.client.new_multi_writer();
        writer.add_delete(&place.child(&name.to_string()), None)?;
        writer.add_delete(&place.lock, None)?;
        self.multi(writer).await.map(drop).map_err(Fault::from)
    }

    pub(crate) async fn remove(&self, path: &str) -> Result<(), Fault> {
        self.write(self.client.delete(path, None)).await
    }

    pub(crate) async fn write_content(&self, path: &str, content: &[u8], version: i32) -> Result<(), Fault> {
        self.write(self.client.set_data(path, content, Some(version))).await.map(drop)
    }

    /// The names of a lock's contenders; none if there is no such lock.
    pub(crate) async fn list(&self, place: &Place) -> Result<Vec<String>, Fault> {
        or_none(self.timed(self.client.list_children(&place.lock)).await)
    }

    /// The same, not older than this call.
    pub(crate) async fn list_now(&self, place: &Place) -> Result<Vec<String>, Fault> {
        // Both are sent at once. The server answers them in order, the second from what it has when it has caught up.
        let (caught_up, list) = (self.client.sync(&place.lock), self.client.list_children(&place.lock));
        self.timed(caught_up).await?;
        or_none(self.timed(list).await)
    }

    /// The same, and something that fires when it changes.
    pub(crate) async fn list_and_watch(&self, place: &Place) -> Result<(Vec<String>, Told), Fault> {
        self.timed(self.client.list_and_watch_children(&place.lock)).await
    }

    /// The token that a contender has from the transaction that made its node. `None` if it is not there.
    pub(crate) async fn token(&self, path: &str) -> Result<Option<StoreToken>, Fault> {
        let stat = self.timed(self.client.check_stat(path)).await?;
        Ok(stat.and_then(|stat| token_of(&stat)))
    }

    /// Content, version and token of a contender.
    pub(crate) async fn read(&self, path: &str) -> Result<(Vec<u8>, i32, Option<StoreToken>), Fault> {
        let (content, stat) = self.timed(self.client.get_data(path)).await?;
        Ok((content, stat.version, token_of(&stat)))
    }

    /// The content of a contender, and something that fires when it changes or is gone. Leaves no watch behind if it is gone already.
    pub(crate) async fn read_and_watch(&self, path: &str) -> Result<(Vec<u8>, Told), Fault> {
        let (content, _, told) = self.timed(self.client.get_and_watch_data(path)).await?;
        Ok((content, told))
    }

    /// How many children a node has. `None` if it is not there.
    pub(crate) async fn count(&self, path: &str) -> Result<Option<i32>, Fault> {
        Ok(self.timed(self.client.check_stat(path)).await?.map(|stat| stat.num_children))
    }

    async fn multi(&self, mut writer: MultiWriter<'_>) -> Result<Vec<MultiWriteResult>, MultiWriteError> {
        let sent = self.now();
        let answer = tokio::select! {
            biased;
            answer = writer.commit() => answer,
            () = self.environment.sleep(self.request_timeout) => Err(Fault::Timeout.into()),
        };
        match &answer {
            Ok(_) => self.heart.confirm(sent),
            Err(MultiWriteError::RequestFailed { source }) => self.look_at(source),
            Err(_) => {}
        }
        answer
    }

    async fn write<T>(&self, request: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
        let sent = self.now();
        let answer = self.timed(request).await;
        if answer.is_ok() {
            self.heart.confirm(sent);
        }
        answer
    }

    async fn timed<T>(&self, request: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
        let answer = tokio::select! {
            biased;
            answer = request => answer,
            () = self.environment.sleep(self.request_timeout) => Err(Fault::Timeout),
        };
        answer.inspect_err(|fault| self.look_at(fault))
    }

    fn look_at(&self, fault: &Fault) {
        if ends_session(fault) {
            self.end();
        }
    }

    fn with(&self, mode: CreateMode) -> CreateOptions<'static> {
        mode.with_acls(match self.access {
            Access::Open => Acls::anyone_all(),
            Access::Creator => Acls::creator_all(),
        })
    }
}

fn or_none(answer: Result<Vec<String>, Fault>) -> Result<Vec<String>, Fault> {
    match answer {
        Err(Fault::NoNode) => Ok(Vec::new()),
        answer => answer,
    }
}

fn made(tag: &Tag, results: &[MultiWriteResult]) -> Result<Made, Fault> {
    let contender = results.iter().find_map(|result| match result {
        MultiWriteResult::Create { path, stat } => {
            let name = path.rsplit('/').next().and_then(|name| Name::read(name).ok())?;
            (name.tag == *tag).then_some(Made { name, token: token_of(stat) })
        }
        _ => None,
    });
    contender.ok_or_else(|| Fault::UnexpectedError("the server did not say what it made".to_owned()))
}

fn token_of_result(result: &MultiWriteResult) -> Option<StoreToken> {
    match result {
        MultiWriteResult::Create { stat, .. } => token_of(stat),
        _ => None,
    }
}

/// The number of the transaction that made the node: it grows from one transaction to the next, over all nodes and for ever.
fn token_of(stat: &Stat) -> Option<StoreToken> {
    u64::try_from(stat.czxid).ok().and_then(StoreToken::new)
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("number", &self.number)
            .field("claims", &self.claims)
            .finish_non_exhaustive()
    }
}
