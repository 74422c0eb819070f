//! Chooses the node that a request goes to.

use std::sync::Arc;
use std::time::Duration;

use scylla::cluster::{ClusterState, NodeRef};
use scylla::errors::RequestAttemptError;
use scylla::policies::load_balancing::{DefaultPolicy, FallbackPlan, LoadBalancingPolicy, RoutingInfo};
use scylla::routing::Shard;

use super::errors;
use super::nodes::Nodes;
use crate::options::{CassandraOptions, Consistency};

/// The driver's own choice, but nodes that have not answered lately come last.
#[derive(Debug)]
pub(super) struct Balancing {
    inner: Arc<dyn LoadBalancingPolicy>,
    nodes: Arc<Nodes>,
    requests: Requests,
}

/// What the requests have to do with doubts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Requests {
    /// They raise doubts and try a doubted node again. Only reads do: they are sent to a second node too when it does not answer, so that no caller has
    /// to wait for it.
    Reads,
    /// They raise doubts.
    Writes,
    /// They raise none: a page may take long, and be refused for what it asks, on a node that is well.
    Pages,
}

type Target<'a> = (NodeRef<'a>, Option<Shard>);

impl Balancing {
    pub(super) fn of_reads(options: &CassandraOptions, nodes: &Arc<Nodes>) -> Arc<dyn LoadBalancingPolicy> {
        Self::of(Requests::Reads, options, nodes)
    }

    pub(super) fn of_writes(options: &CassandraOptions, nodes: &Arc<Nodes>) -> Arc<dyn LoadBalancingPolicy> {
        Self::of(Requests::Writes, options, nodes)
    }

    pub(super) fn of_pages(options: &CassandraOptions, nodes: &Arc<Nodes>) -> Arc<dyn LoadBalancingPolicy> {
        Self::of(Requests::Pages, options, nodes)
    }

    fn of(
        requests: Requests,
        options: &CassandraOptions,
        nodes: &Arc<Nodes>,
    ) -> Arc<dyn LoadBalancingPolicy> {
        Arc::new(Self { inner: preferring_replicas(options), nodes: Arc::clone(nodes), requests })
    }

    fn is_avoided(&self, target: &Target<'_>) -> bool {
        let node = target.0.host_id;
        match self.requests {
            Requests::Reads => self.nodes.is_doubted_by_a_probe(node),
            Requests::Writes | Requests::Pages => self.nodes.is_doubted(node),
        }
    }

    fn asks(&self, target: &Target<'_>) {
        if self.requests != Requests::Pages {
            self.nodes.asked(target.0.host_id);
        }
    }

    fn hears(&self, node: NodeRef<'_>, refused: bool) {
        if self.requests != Requests::Pages {
            self.nodes.answered(node.host_id, refused);
        }
    }
}

impl LoadBalancingPolicy for Balancing {
    fn pick<'a>(&'a self, request: &'a RoutingInfo, cluster: &'a ClusterState) -> Option<Target<'a>> {
        let preferred = self.inner.pick(request, cluster)?;
        let picked = if self.is_avoided(&preferred) {
            let others = self.nodes.order(self.inner.fallback(request, cluster), |(node, _)| node.host_id);
            others.into_iter().next().unwrap_or(preferred)
        } else {
            preferred
        };
        self.asks(&picked);
        Some(picked)
    }

    fn fallback<'a>(&'a self, request: &'a RoutingInfo, cluster: &'a ClusterState) -> FallbackPlan<'a> {
        let plan = self.nodes.order(self.inner.fallback(request, cluster), |(node, _)| node.host_id);
        // The driver takes the next one when it is about to send to it.
        Box::new(plan.into_iter().inspect(|target| self.asks(target)))
    }

    fn on_request_success(&self, _: &RoutingInfo, _: Duration, node: NodeRef<'_>) {
        self.hears(node, false);
    }

    fn on_request_failure(
        &self,
        _: &RoutingInfo,
        _: Duration,
        node: NodeRef<'_>,
        error: &RequestAttemptError,
    ) {
        self.hears(node, errors::is_refusal(error));
    }

    fn name(&self) -> String {
        "ylock".to_owned()
    }
}

/// Returns the driver's policy that asks a replica of the key first, so that the coordinator's own answer counts; one of the named data
/// centre if there is one.
fn preferring_replicas(options: &CassandraOptions) -> Arc<dyn LoadBalancingPolicy> {
    let builder = DefaultPolicy::builder().token_aware(true);
    let Some(datacenter) = options.datacenter() else {
        return builder.build();
    };
    // A local quorum of another data centre would not be a quorum of this one.
    let elsewhere = options.consistency() == Consistency::Quorum;
    builder.prefer_datacenter(datacenter.to_owned()).permit_dc_failover(elsewhere).build()
}
