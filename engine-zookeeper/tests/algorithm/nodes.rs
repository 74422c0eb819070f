//! The nodes that the servers have in common, and the watches on them.

use std::collections::BTreeMap;

use tokio::sync::oneshot;
use ylock_core::StoreToken;
use ylock_engine_zookeeper::algorithm::store::{Contender, Created, Fault, WatchEvent};

/// All nodes, by their paths, and the number of the last transaction.
#[derive(Debug, Default)]
pub(crate) struct Nodes {
    nodes: BTreeMap<String, Node>,
    last: u64,
    /// What watches have not been told yet, while the servers that tell them are behind.
    untold: Option<Vec<(oneshot::Sender<bool>, bool)>>,
}

#[derive(Debug, Default)]
struct Node {
    content: Vec<u8>,
    version: i64,
    /// The session that the node goes with.
    session: Option<u64>,
    /// The transaction that made the node.
    made: u64,
    /// The place of the next child.
    next: i64,
    /// The watches on the node, and on its children, each with its session.
    watches: [Watches; 2],
}

type Watches = Vec<(u64, oneshot::Sender<bool>)>;

/// What a watch is on.
#[derive(Clone, Copy)]
pub(crate) enum On {
    Node,
    Children,
}

impl Nodes {
    pub(crate) fn has(&self, path: &str) -> bool {
        self.nodes.contains_key(path)
    }

    /// Makes the next transactions have larger numbers than this one.
    pub(crate) fn go_on_from(&mut self, number: u64) {
        self.last = number;
    }

    /// Begins the next transaction: all that it makes has one number.
    pub(crate) fn transaction(&mut self) -> &mut Self {
        self.last += 1;
        self
    }

    pub(crate) fn make(&mut self, path: &str, content: &[u8], session: Option<u64>) -> Result<(), Fault> {
        if self.has(path) {
            return Err(Fault::NodeExists);
        }
        let above = parent(path);
        if !above.is_empty() && !self.has(above) {
            return Err(Fault::NoNode);
        }
        let node = Node { content: content.to_vec(), session, made: self.last, ..Node::default() };
        self.nodes.insert(path.to_owned(), node);
        self.tell(above, On::Children);
        Ok(())
    }

    /// Makes a contender at the end of the queue.
    pub(crate) fn join(
        &mut self,
        lock: &str,
        name: &str,
        content: &[u8],
        session: u64,
    ) -> Result<Created, Fault> {
        let node = self.nodes.get_mut(lock).ok_or(Fault::NoNode)?;
        let place = node.next;
        node.next += 1;
        self.make(&format!("{lock}/{name}{place:010}"), content, Some(session))?;
        Ok(Created { place, token: StoreToken::new(self.last) })
    }

    pub(crate) fn write(&mut self, path: &str, content: &[u8], version: i64) -> Result<(), Fault> {
        let node = self.nodes.get_mut(path).ok_or(Fault::NoNode)?;
        if node.version != version {
            return Err(Fault::BadVersion);
        }
        (node.content, node.version) = (content.to_vec(), version + 1);
        self.tell(path, On::Node);
        Ok(())
    }

    pub(crate) fn remove(&mut self, path: &str) -> Result<(), Fault> {
        if self.has(path) && !self.names(path)?.is_empty() {
            return Err(Fault::NotEmpty);
        }
        let node = self.nodes.remove(path).ok_or(Fault::NoNode)?;
        let [own, children] = node.watches;
        self.fire(own, true);
        self.fire(children, false);
        self.tell(parent(path), On::Children);
        Ok(())
    }

    /// Removes what a session has, in one transaction. Its watches end.
    pub(crate) fn end(&mut self, session: u64) {
        let watches = self.nodes.values_mut().flat_map(|node| &mut node.watches);
        watches.for_each(|watches| watches.retain(|(watching, _)| *watching != session));
        let own = self.nodes.iter().filter(|(_, node)| node.session == Some(session));
        let own: Vec<_> = own.map(|(path, _)| path.clone()).collect();
        own.iter().for_each(|path| self.remove(path).expect("a contender has no children"));
    }

    /// Returns the names of a node's children.
    pub(crate) fn names(&self, path: &str) -> Result<Vec<String>, Fault> {
        if !self.has(path) {
            return Err(Fault::NoNode);
        }
        let below = format!("{path}/");
        let names = self.nodes.keys().filter_map(|path| path.strip_prefix(&below));
        Ok(names.filter(|name| !name.contains('/')).map(str::to_owned).collect())
    }

    pub(crate) fn read(&self, path: &str) -> Result<Contender, Fault> {
        let node = self.nodes.get(path).ok_or(Fault::NoNode)?;
        let token = StoreToken::new(node.made);
        Ok(Contender { content: node.content.clone(), version: node.version, token })
    }

    pub(crate) fn watch(&mut self, path: &str, on: On, session: u64) -> Result<WatchEvent, Fault> {
        let (fires, told) = oneshot::channel();
        self.nodes.get_mut(path).ok_or(Fault::NoNode)?.watches[on as usize].push((session, fires));
        Ok(Box::pin(async move { told.await.unwrap_or(false) }))
    }

    /// Tells the watches that something else than a removal has happened.
    fn tell(&mut self, path: &str, on: On) {
        let Some(node) = self.nodes.get_mut(path) else { return };
        let watches = std::mem::take(&mut node.watches[on as usize]);
        self.fire(watches, false);
    }

    /// Makes watches be told of changes no earlier than when a server answers the next heartbeat: it is behind until then.
    pub(crate) fn tell_late(&mut self) {
        self.untold = Some(Vec::new());
    }

    /// Tells what has not been told.
    pub(crate) fn tell_now(&mut self) {
        for (told, was_removal) in self.untold.take().into_iter().flatten() {
            let _ = told.send(was_removal);
        }
    }

    fn fire(&mut self, watches: Watches, was_removal: bool) {
        for (_, told) in watches {
            match &mut self.untold {
                Some(untold) => untold.push((told, was_removal)),
                // The watch may have been taken back.
                None => {
                    let _ = told.send(was_removal);
                }
            }
        }
    }
}

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(above, _)| above)
}
