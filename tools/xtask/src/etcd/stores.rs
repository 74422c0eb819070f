//! The kinds of servers: one member alone, and a cluster of three.

use anyhow::Result;

use super::{member::Member, program::program};
use crate::{
    places::Places,
    store::{Process, Store, addresses, free_ports},
};

#[derive(Debug)]
pub(super) struct Single {
    places: Places,
    member: Member,
}

#[derive(Debug)]
pub(super) struct Cluster {
    places: Places,
}

impl Single {
    pub(super) fn new(places: &Places) -> Self {
        Self { places: places.clone(), member: Member::new(places.root().join("etcd")) }
    }
}

impl Store for Single {
    fn name(&self) -> &'static str {
        "etcd"
    }

    fn variable(&self) -> &'static str {
        "YLOCK_TEST_ETCD"
    }

    fn processes(&self) -> Vec<Process> {
        vec![self.member.process().clone()]
    }

    fn start(&self) -> Result<()> {
        let [port, peer] = free_ports();
        self.member.start(&program(&self.places)?, port, 0, &[peer])
    }

    fn check(&self) -> Result<()> {
        self.member.check()
    }

    fn address(&self) -> Result<String> {
        addresses(&self.processes())
    }
}

impl Cluster {
    pub(super) fn new(places: &Places) -> Self {
        Self { places: places.clone() }
    }

    fn members(&self) -> [Member; 3] {
        let folder = self.places.root().join("etcd-cluster");
        [0, 1, 2].map(|number| Member::new(folder.join(format!("member{number}"))))
    }
}

impl Store for Cluster {
    fn name(&self) -> &'static str {
        "etcd cluster"
    }

    fn variable(&self) -> &'static str {
        "YLOCK_TEST_ETCD_CLUSTER"
    }

    fn processes(&self) -> Vec<Process> {
        self.members().map(|member| member.process().clone()).to_vec()
    }

    fn start(&self) -> Result<()> {
        let program = program(&self.places)?;
        let [a, b, c, peers @ ..] = free_ports::<6>();
        for (number, (member, port)) in self.members().iter().zip([a, b, c]).enumerate() {
            member.start(&program, port, number, &peers)?;
        }
        Ok(())
    }

    fn check(&self) -> Result<()> {
        self.members().iter().try_for_each(Member::check)
    }

    fn address(&self) -> Result<String> {
        addresses(&self.processes())
    }
}
