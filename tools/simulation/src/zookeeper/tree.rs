//! The nodes that one server has: what transactions make of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ylock_core::StoreToken;
use ylock_engine_zookeeper::algorithm::store::{Contender, Created, Fault};

use super::SessionId;
use super::step::{Edit, Kind, Step};

/// All nodes, and the sessions that have begun and not ended.
#[derive(Clone, Debug, Default)]
pub(super) struct Tree {
    nodes: BTreeMap<Arc<str>, Arc<Node>>,
    sessions: BTreeSet<SessionId>,
    /// The number of the last transaction.
    last: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Node {
    content: Arc<[u8]>,
    version: i64,
    /// The session that the node goes with.
    owner: Option<SessionId>,
    /// True if the node is removed when it has been empty for some time.
    is_container: bool,
    /// The transaction that made the node, the last one that wrote to it, and the last one that made or removed a child.
    made: u64,
    written: u64,
    changed: u64,
    /// The number of children that were ever made, numbered or not: the place of the next one that is numbered.
    next: i64,
    children: i32,
}

/// What a watch is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum On {
    Node,
    Children,
}

/// A change that watches tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Written,
    Removed,
    Children,
}

impl Change {
    /// Returns whether a watch of this kind tells it.
    pub(super) fn fires(self, on: On) -> bool {
        match self {
            Self::Written => on == On::Node,
            Self::Removed => true,
            Self::Children => on == On::Children,
        }
    }
}

pub(super) type Changes = Vec<(Arc<str>, Change)>;

impl Tree {
    /// Returns the number of the last transaction that is in here.
    pub(super) fn last(&self) -> u64 {
        self.last
    }

    pub(super) fn sessions(&self) -> impl Iterator<Item = SessionId> {
        self.sessions.iter().copied()
    }

    /// Makes one transaction. Returns what watches have to tell of it.
    pub(super) fn apply(&mut self, zxid: u64, edits: &[Edit]) -> Changes {
        let mut changes = Changes::new();
        edits.iter().for_each(|edit| self.edit(zxid, edit, &mut changes));
        self.last = zxid;
        changes
    }

    fn edit(&mut self, zxid: u64, edit: &Edit, changes: &mut Changes) {
        match edit {
            Edit::Create { path, content, owner, is_container } => {
                let node = Node {
                    content: Arc::clone(content),
                    version: 0,
                    owner: *owner,
                    is_container: *is_container,
                    made: zxid,
                    written: zxid,
                    changed: zxid,
                    next: 0,
                    children: 0,
                };
                self.nodes.insert(Arc::clone(path), Arc::new(node));
                self.change_above(zxid, path, 1, 1, changes);
            }
            Edit::Delete(path) => {
                self.nodes.remove(path);
                changes.push((Arc::clone(path), Change::Removed));
                self.change_above(zxid, path, -1, 0, changes);
            }
            Edit::Write(path, content) => {
                if let Some(node) = self.nodes.get_mut(path) {
                    let node = Arc::make_mut(node);
                    (node.content, node.written) = (Arc::clone(content), zxid);
                    node.version += 1;
                    changes.push((Arc::clone(path), Change::Written));
                }
            }
            Edit::Begin(session) => drop(self.sessions.insert(*session)),
            Edit::End(session) => drop(self.sessions.remove(session)),
        }
    }

    fn change_above(&mut self, zxid: u64, path: &str, children: i32, places: i64, changes: &mut Changes) {
        let above = parent(path);
        if let Some(node) = self.nodes.get_mut(above) {
            let node = Arc::make_mut(node);
            node.changed = zxid;
            node.children += children;
            node.next += places;
            changes.push((above.into(), Change::Children));
        }
    }

    /// Makes a transaction of these steps, as far as none fails. Returns what every server has to change, and the answer.
    pub(super) fn plan(
        &mut self,
        zxid: u64,
        session: SessionId,
        steps: &[Step],
    ) -> (Vec<Edit>, Result<Vec<Created>, Fault>) {
        let before = (steps.len() > 1).then(|| self.clone());
        let (mut edits, mut made) = (Vec::new(), Vec::new());
        for step in steps {
            match self.plan_step(zxid, session, step, &mut made) {
                Ok(Some(edit)) => {
                    self.edit(zxid, &edit, &mut Changes::new());
                    edits.push(edit);
                }
                Ok(None) => {}
                Err(fault) => {
                    if let Some(before) = before {
                        *self = before;
                    }
                    self.last = zxid;
                    return (Vec::new(), Err(fault));
                }
            }
        }
        self.last = zxid;
        (edits, Ok(made))
    }

    fn plan_step(
        &self,
        zxid: u64,
        session: SessionId,
        step: &Step,
        made: &mut Vec<Created>,
    ) -> Result<Option<Edit>, Fault> {
        match step {
            Step::Check(path) => self.node(path).map(|_| None),
            Step::Create(path, content, kind) => {
                self.plan_node(zxid, session, (path, content, *kind), made).map(Some)
            }
            Step::Delete(path) => match self.node(path)?.children {
                0 => Ok(Some(Edit::Delete(path.as_str().into()))),
                _ => Err(Fault::NotEmpty),
            },
            Step::Write(path, content, version) => {
                let is_right = self.node(path)?.version == *version;
                let write = || Edit::Write(path.as_str().into(), content.as_slice().into());
                is_right.then(|| Some(write())).ok_or(Fault::BadVersion)
            }
        }
    }

    fn plan_node(
        &self,
        zxid: u64,
        session: SessionId,
        (path, content, kind): (&str, &[u8], Kind),
        made: &mut Vec<Created>,
    ) -> Result<Edit, Fault> {
        let above = parent(path);
        let above = if above.is_empty() { None } else { Some(self.node(above)?) };
        let (place, is_numbered) = (above.map_or(0, |above| above.next), kind == Kind::Numbered);
        let path = if is_numbered { format!("{path}{place:010}") } else { path.to_owned() };
        if self.nodes.contains_key(path.as_str()) {
            return Err(Fault::NodeExists);
        }
        if above.is_some_and(|above| above.owner.is_some()) {
            return Err(Fault::NoChildren);
        }
        if is_numbered {
            made.push(Created { place, token: StoreToken::new(zxid) });
        }
        let owner = matches!(kind, Kind::Ephemeral | Kind::Numbered).then_some(session);
        let is_container = kind == Kind::Container;
        Ok(Edit::Create { path: path.into(), content: content.into(), owner, is_container })
    }

    /// Returns what is to be changed when a session ends: all that it has goes in one transaction.
    pub(super) fn end(&self, session: SessionId) -> Vec<Edit> {
        let own = self.nodes.iter().filter(|(_, node)| node.owner == Some(session));
        own.map(|(path, _)| Edit::Delete(Arc::clone(path))).chain([Edit::End(session)]).collect()
    }

    /// Returns the containers that had children and have none.
    pub(super) fn empty_containers(&self) -> Vec<String> {
        let empty =
            self.nodes.iter().filter(|(_, node)| node.is_container && node.children == 0 && node.next > 0);
        empty.map(|(path, _)| (**path).to_owned()).collect()
    }

    fn node(&self, path: &str) -> Result<&Node, Fault> {
        self.nodes.get(path).map(|node| &**node).ok_or(Fault::NoNode)
    }

    pub(super) fn read(&self, path: &str) -> Result<Contender, Fault> {
        let node = self.node(path)?;
        let token = StoreToken::new(node.made);
        Ok(Contender { content: node.content.to_vec(), version: node.version, token })
    }

    /// Returns the names of a node's children.
    pub(super) fn names(&self, path: &str) -> Result<Vec<String>, Fault> {
        self.node(path)?;
        let below = format!("{path}/");
        let first: Arc<str> = below.as_str().into();
        let all = self.nodes.range(first..).map_while(|(path, _)| path.strip_prefix(below.as_str()));
        Ok(all.filter(|name| !name.contains('/')).map(str::to_owned).collect())
    }

    /// Returns how many children a node has, and the transaction that made it; nothing if it is not there.
    pub(super) fn stat(&self, path: &str) -> Option<(i32, u64)> {
        self.node(path).ok().map(|node| (node.children, node.made))
    }

    /// Returns what a watch has to tell that was set before this transaction and then lost with its connection.
    pub(super) fn change_since(&self, path: &str, on: On, seen: u64) -> Option<Change> {
        match (self.node(path), on) {
            (Err(_), _) => Some(Change::Removed),
            (Ok(node), On::Node) => (node.written > seen).then_some(Change::Written),
            (Ok(node), On::Children) => (node.changed > seen).then_some(Change::Children),
        }
    }

    /// Returns the paths below the buckets: locks and contenders.
    pub(super) fn locks(&self) -> Vec<String> {
        // The last runs of jobs stay, for a day at least.
        let is_lock = |path: &&Arc<str>| path.matches('/').count() >= 3 && !path.contains("/runs/");
        let all = self.nodes.keys().filter(is_lock);
        all.map(|path| (**path).to_owned()).collect()
    }
}

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(above, _)| above)
}
