//! The operations, each with names, paths and versions that are there or not.

use futures_util::future::join3;
use ylock_simulation::chance::Chance;

use super::game::{Game, Session};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    MakeBoth,
    Join,
    Replace,
    Rename,
    RemoveBoth,
    Remove,
    Write,
    Mkdir,
    Check,
    CatchUp,
    Sync,
    List,
    ListAndWatch,
    Read,
    ReadAndWatch,
    Token,
    Count,
    /// All contenders go, the last one with its lock.
    Clear,
    /// The last contender goes and another one comes, with a request between.
    Empty,
    End,
}

use Operation::{
    CatchUp, Check, Clear, Count, Empty, End, Join, List, ListAndWatch, MakeBoth, Mkdir, Read, ReadAndWatch,
    Remove, RemoveBoth, Rename, Replace, Sync, Token, Write,
};

/// How often each of them comes.
const SHARES: [(Operation, u64); 19] = [
    (MakeBoth, 4),
    (Join, 4),
    (Replace, 2),
    (Rename, 3),
    (RemoveBoth, 2),
    (Remove, 3),
    (Write, 3),
    (Mkdir, 1),
    (Check, 1),
    (CatchUp, 1),
    (Sync, 1),
    (List, 1),
    (ListAndWatch, 3),
    (Read, 1),
    (ReadAndWatch, 3),
    (Token, 1),
    (Count, 1),
    (Clear, 1),
    (Empty, 1),
];

impl Operation {
    pub(crate) fn any(chance: &mut Chance) -> Self {
        // A new session takes a while.
        if chance.happens(0.02) {
            return End;
        }
        let mut number = chance.below(SHARES.iter().map(|(_, share)| share).sum());
        let is_it = |(_, share): &&(Self, u64)| {
            let is_it = number < *share;
            number = number.saturating_sub(*share);
            is_it
        };
        SHARES.iter().find(is_it).map_or(End, |(operation, _)| *operation)
    }
}

impl Game {
    pub(crate) async fn perform(&mut self, operation: Operation, index: usize, lock: &str, names: &[String]) {
        self.step.say("session", (&self.sessions[index].id, operation));
        match operation {
            // The first session stays.
            End => self.end(index.max(1)).await,
            Clear => self.clear(index, lock, names).await,
            Empty => self.empty(index, lock, names).await,
            MakeBoth | Join | Replace => self.make(operation, index, lock, names).await,
            Rename => self.rename(index, lock, names).await,
            RemoveBoth | Remove => self.remove(operation, index, lock, names).await,
            Write => self.write(index, lock, names).await,
            Mkdir => self.mkdir(index, lock, names).await,
            List | ListAndWatch => self.list(operation, index, lock, names).await,
            _ => self.read(operation, index, lock, names).await,
        }
    }

    /// Returns a name that the lock has, or one that it does not have.
    fn name(&mut self, names: &[String]) -> String {
        if names.is_empty() || self.chance.below(8) == 0 {
            return "nothing-0000000001".to_owned();
        }
        names[self.chance.below(names.len() as u64) as usize].clone()
    }

    /// Returns the path of a contender, or one that is none.
    fn path(&mut self, lock: &str, names: &[String]) -> String {
        let name = self.name(names);
        match self.chance.below(10) {
            0 | 1 => lock.to_owned(),
            2 => self.base.clone(),
            3 => format!("{lock}/{name}/below"),
            4 => format!("{}/nothing/l0", self.base),
            _ => format!("{lock}/{name}"),
        }
    }

    /// Returns the path of a lock, or one that is none.
    fn lock(&mut self, lock: &str, names: &[String]) -> String {
        if self.chance.below(6) == 0 { self.path(lock, names) } else { lock.to_owned() }
    }

    /// Returns the beginning of a name of this session.
    fn prefix(&mut self, index: usize) -> String {
        let mode = ["w", "r"][self.chance.below(2) as usize];
        format!("{}-{mode}-", self.sessions[index].id)
    }

    fn content(&mut self) -> Vec<u8> {
        self.chance.below(1_000).to_string().into_bytes()
    }

    async fn make(&mut self, operation: Operation, index: usize, lock: &str, names: &[String]) {
        let (lock, old) = (self.lock(lock, names), self.name(names));
        let (prefix, content) = (self.prefix(index), self.content());
        let store = &self.sessions[index].store;
        let created = match operation {
            MakeBoth => store.make_both(&lock, b"the key", &prefix, &content).await,
            Join => store.join(&lock, &prefix, &content).await,
            _ => store.replace(&lock, &old, &prefix, &content).await,
        };
        let what = format!("{operation:?} {prefix} at {}, for {old}", self.short(&lock));
        self.step.created(&what, created);
    }

    /// Returns the version of a node, or another one.
    async fn version(&mut self, index: usize, path: &str) -> i64 {
        let node = self.sessions[index].store.read(path).await;
        let version = node.as_ref().map_or(0, |node| node.version);
        self.step.read("it has", node);
        version + [0, 0, 0, 0, 0, 1, -1][self.chance.below(7) as usize]
    }

    /// Mostly to the same place, sometimes to a later one, which a contender that joins may find taken then.
    async fn rename(&mut self, index: usize, lock: &str, names: &[String]) {
        let (lock, old, other) = (self.lock(lock, names), self.name(names), self.name(names));
        let version = self.version(index, &format!("{lock}/{old}")).await;
        let (prefix, content) = (self.prefix(index), self.content());
        let place: i64 = old.rsplit('-').next().and_then(|place| place.parse().ok()).unwrap_or(0);
        let later = [0, 0, 0, 0, 1, 2, 5][self.chance.below(7) as usize];
        let new = match self.chance.below(8) {
            // Of a name that begins otherwise the end of a session would not wait.
            0 if names.contains(&other) => other,
            _ => format!("{prefix}{:010}", place + later),
        };
        let renamed = self.sessions[index].store.rename(&lock, (&old, version), &new, &content).await;
        let what = format!("rename {old} version {version} to {new} at {}", self.short(&lock));
        self.step.answer(&what, renamed);
    }

    async fn remove(&mut self, operation: Operation, index: usize, lock: &str, names: &[String]) {
        if operation == RemoveBoth {
            let (lock, name) = (self.lock(lock, names), self.name(names));
            let removed = self.sessions[index].store.remove_both(&lock, &name).await;
            let what = format!("remove {} and {name}", self.short(&lock));
            return self.step.answer(&what, removed);
        }
        let path = self.path(lock, names);
        if names.len() == 1 && path == format!("{lock}/{}", names[0]) {
            return self.empty(index, lock, names).await;
        }
        let removed = self.sessions[index].store.remove(&path).await;
        let what = format!("remove {}", self.short(&path));
        self.step.answer(&what, removed);
    }

    async fn clear(&mut self, index: usize, lock: &str, names: &[String]) {
        let store = self.sessions[index].store.clone();
        let Some((last, others)) = names.split_last() else {
            return self.step.answer("remove the empty lock", store.remove(lock).await);
        };
        for name in others {
            // A node with something below it stays.
            let _ = store.remove(&format!("{lock}/{name}/below")).await;
            self.step.answer(name, store.remove(&format!("{lock}/{name}")).await);
        }
        let _ = store.remove(&format!("{lock}/{last}/below")).await;
        self.step.answer("clear", store.remove_both(lock, last).await);
    }

    /// Sends everything at once, so that the lock stands empty for no longer than the server needs.
    async fn empty(&mut self, index: usize, lock: &str, names: &[String]) {
        let Some((last, others)) = names.split_last() else { return };
        let Session { store, .. } = self.sessions[index].clone();
        for name in others {
            self.step.answer(name, store.remove(&format!("{lock}/{name}")).await);
        }
        let (prefix, between) = (self.prefix(index), self.chance.below(4));
        let asks = async {
            match between {
                0 => format!("{:?}", store.count(lock).await),
                1 => format!("{:?}", store.list(lock).await),
                2 => format!("{:?}", store.remove(lock).await),
                _ => format!(
                    "{:?}",
                    store.make_both(lock, b"", &prefix, b"").await.map(|created| created.place)
                ),
            }
        };
        let path = format!("{lock}/{last}");
        self.step.stood_empty = true;
        let (removed, between, joined) =
            join3(store.remove(&path), asks, store.join(lock, &prefix, b"again")).await;
        self.step.answer("the last one goes", removed);
        self.step.say("between", between);
        self.step.created("one comes again", joined);
    }

    async fn write(&mut self, index: usize, lock: &str, names: &[String]) {
        let path = self.path(lock, names);
        let version = self.version(index, &path).await;
        let content = self.content();
        let written = self.sessions[index].store.write_content(&path, &content, version).await;
        let what = format!("write {} version {version}", self.short(&path));
        self.step.answer(&what, written);
    }

    async fn mkdir(&mut self, index: usize, lock: &str, names: &[String]) {
        let name = self.name(names);
        let path = match self.chance.below(5) {
            0 => format!("{lock}/{name}/below"),
            1 => format!("{lock}/{name}/below/deeper"),
            2 => format!("{lock}/stays"),
            3 => format!("{}/one/two/three", self.base),
            _ => lock.to_owned(),
        };
        let made = self.sessions[index].store.mkdir(&path).await;
        let what = format!("mkdir {}", self.short(&path));
        self.step.answer(&what, made);
    }

    async fn list(&mut self, operation: Operation, index: usize, lock: &str, names: &[String]) {
        let lock = self.lock(lock, names);
        let (store, what) = (self.sessions[index].store.clone(), format!("list {}", self.short(&lock)));
        let sorted = |mut names: Vec<String>| {
            names.sort();
            names
        };
        if operation == List {
            return self.step.answer(&what, store.list(&lock).await.map(sorted));
        }
        match store.list_and_watch(&lock).await {
            Ok((names, event)) => {
                self.step.say(&what, sorted(names));
                self.watch(index, what, event);
            }
            Err(fault) => self.step.answer(&what, Err::<(), _>(fault)),
        }
    }

    async fn read(&mut self, operation: Operation, index: usize, lock: &str, names: &[String]) {
        let path = self.path(lock, names);
        let store = self.sessions[index].store.clone();
        let what = format!("{operation:?} {}", self.short(&path));
        match operation {
            Check => self.step.answer(&what, store.check(&path).await),
            CatchUp => self.step.answer(&what, store.catch_up(&path).await),
            Sync => self.step.answer(&what, store.sync(&path).await),
            Read => self.step.read(&what, store.read(&path).await),
            Token => self.step.told(&what, store.token(&path).await),
            Count => self.step.answer(&what, store.count(&path).await),
            _ => match store.read_and_watch(&path).await {
                Ok((content, event)) => {
                    self.step.say(&what, content);
                    self.watch(index, what, event);
                }
                Err(fault) => self.step.answer(&what, Err::<(), _>(fault)),
            },
        }
    }
}
