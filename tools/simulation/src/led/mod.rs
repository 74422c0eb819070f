//! Servers of which one leads: what goes wrong with them, and how they elect. What they do for clients is theirs.

mod elections;

pub(crate) use elections::{Coming, Elects, Part, Reach};

use std::sync::Arc;

use crate::world::Actor;

/// Servers of which one leads, as a run makes trouble for them.
pub(crate) trait Led: Send + Sync {
    /// Returns the server that leads, as the others see it.
    fn leader(self: Arc<Self>) -> Option<usize>;

    /// Takes a server down. What it has stays on its disk.
    fn stop(self: Arc<Self>, server: usize, is_noticed: bool);

    /// Starts a server again.
    fn start(self: Arc<Self>, server: usize);

    /// Cuts a server off from the others, but not from its clients.
    fn cut(self: Arc<Self>, server: usize, is_noticed: bool);

    /// Stops the process of a server: what arrives waits for it.
    fn suspend(self: Arc<Self>, server: usize, is_noticed: bool);

    /// Lets a server reach the others again, and its process go on.
    fn heal(self: Arc<Self>, server: usize);

    /// Makes the leader step down.
    fn depose(self: Arc<Self>);

    /// Ends all trouble.
    fn calm_down(self: Arc<Self>);

    /// Ends the runtimes in which a client process has made its connections.
    fn end_runtimes(self: Arc<Self>, actor: Actor);
}

/// What has such servers.
pub(crate) trait Group: Send + Sync {
    type Servers: Elects;

    /// Does something with the servers, and sees to what follows of it.
    fn with<T>(self: &Arc<Self>, work: impl FnOnce(&mut Self::Servers) -> T) -> T;

    /// As in [`Led`]. Does nothing where connections live on the client's own thread.
    fn end_runtimes(self: &Arc<Self>, _actor: Actor) {}
}

impl<G: Group> Led for G {
    fn leader(self: Arc<Self>) -> Option<usize> {
        self.with(|servers| servers.leader())
    }

    fn stop(self: Arc<Self>, server: usize, is_noticed: bool) {
        self.with(|servers| {
            servers.world().note(|| format!("server {server} is down"));
            servers.goes_down(server, is_noticed);
        });
    }

    fn start(self: Arc<Self>, server: usize) {
        self.with(|servers| servers.comes_up(server));
    }

    fn cut(self: Arc<Self>, server: usize, is_noticed: bool) {
        self.with(|servers| {
            servers.world().note(|| format!("server {server} is cut off"));
            servers.reach_mut(server).is_cut = true;
            if is_noticed {
                // By the others. This one goes on until it misses them.
                servers.lose(server);
            }
        });
    }

    fn suspend(self: Arc<Self>, server: usize, is_noticed: bool) {
        self.with(|servers| {
            servers.world().note(|| format!("server {server} does not run"));
            servers.reach_mut(server).is_suspended = true;
            if is_noticed {
                servers.lose(server);
            }
        });
    }

    fn heal(self: Arc<Self>, server: usize) {
        self.with(|servers| {
            servers.heal(server);
            servers.resume(server);
        });
    }

    fn depose(self: Arc<Self>) {
        self.with(|servers| {
            let Some(leader) = servers.leader() else { return };
            servers.world().note(|| format!("server {leader} steps down"));
            servers.looks(leader);
            servers.lose(leader);
        });
    }

    fn calm_down(self: Arc<Self>) {
        self.with(|servers| {
            servers.calms();
            for server in 0..servers.count() {
                servers.heal(server);
                servers.resume(server);
                servers.comes_up(server);
            }
        });
    }

    fn end_runtimes(self: Arc<Self>, actor: Actor) {
        Group::end_runtimes(&self, actor);
    }
}
