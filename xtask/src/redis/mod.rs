//! Runs real Redis servers, on ports that were free when they started: one alone, a cluster, and a master that Sentinels
//! watch.

mod answer;
mod cluster;
mod sentinels;
mod server;
mod single;

use self::{cluster::Cluster, sentinels::Sentinels, single::Single};
use crate::{places::Places, store::Stores};

pub(crate) fn stores(places: &Places) -> Stores {
    let root = places.root();
    Stores::new(
        places,
        vec![
            Box::new(Single::new(root.join("redis"))),
            Box::new(Cluster::new(root.join("redis-cluster"))),
            Box::new(Sentinels::new(root.join("redis-sentinels"))),
        ],
    )
}
