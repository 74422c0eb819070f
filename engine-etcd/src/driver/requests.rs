//! From the algorithm's requests to the messages, and from the messages to its answers.

use super::errors;
use super::messages::{
    Answered, Asked, Compare, DeleteRangeRequest, KeyValue, PutRequest, RangeRequest, RequestOp,
    ResponseHeader, ResponseOp, Target, TxnRequest, TxnResponse,
};
use crate::algorithm::store::{
    Condition, Done, Entry, Fault, Header, Look, Outcome, Put, Seen, Step, Transaction,
};

/// What a comparison and an order are about, as etcd numbers it.
const CREATED: i32 = 1;
const CHANGED: i32 = 2;
const SORT_BY_CREATION: i32 = 2;
const DESCENDING: i32 = 2;

impl From<Transaction> for TxnRequest {
    fn from(transaction: Transaction) -> Self {
        let steps = |steps: Vec<Step>| steps.into_iter().map(RequestOp::from).collect();
        Self {
            compare: transaction.when.into_iter().map(Compare::from).collect(),
            success: steps(transaction.then),
            failure: steps(transaction.otherwise),
        }
    }
}

impl From<Condition> for Compare {
    fn from(condition: Condition) -> Self {
        match condition {
            Condition::MadeAt(keys, revision) => Self {
                target: CREATED,
                key: keys.begin,
                target_union: Some(Target::CreateRevision(revision)),
                range_end: keys.end.unwrap_or_default(),
            },
            Condition::ChangedAt(key, revision) => Self {
                target: CHANGED,
                key,
                target_union: Some(Target::ModRevision(revision)),
                range_end: Vec::new(),
            },
        }
    }
}

impl From<Step> for RequestOp {
    fn from(step: Step) -> Self {
        let request = match step {
            Step::Put(Put { key, value, lease }) => Asked::Put(PutRequest {
                key,
                value,
                lease: lease.unwrap_or(0),
                ignore_lease: lease.is_none(),
            }),
            Step::Delete(key) => Asked::DeleteRange(DeleteRangeRequest { key }),
            Step::Look(look) => Asked::Range(range(look)),
        };
        Self { request: Some(request) }
    }
}

fn range(look: Look) -> RangeRequest {
    RangeRequest {
        key: look.keys.begin,
        range_end: look.keys.end.unwrap_or_default(),
        limit: look.most,
        sort_order: if look.newest_first { DESCENDING } else { 0 },
        sort_target: if look.newest_first { SORT_BY_CREATION } else { 0 },
        keys_only: !look.values,
        // Both bounds are among the revisions that are shown; 0 is no bound.
        min_create_revision: look.made_after.map_or(0, |revision| revision + 1),
        max_create_revision: look.made_before.map_or(0, |revision| revision - 1),
    }
}

pub(super) fn outcome(answer: TxnResponse) -> Result<Outcome, Fault> {
    let done = answer.responses.into_iter().map(done).collect::<Option<Vec<_>>>();
    let done = done.ok_or_else(|| Fault::Unknown(errors::unexpected("the server left answers out")))?;
    Ok(Outcome { header: header(answer.header), held: answer.succeeded, done })
}

fn done(answer: ResponseOp) -> Option<Done> {
    Some(match answer.response? {
        Answered::Put(_) => Done::Put,
        Answered::DeleteRange(deleted) => Done::Deleted(deleted.deleted),
        Answered::Range(range) => {
            Done::Looked(Seen { entries: range.kvs.into_iter().map(Entry::from).collect(), more: range.more })
        }
    })
}

impl From<KeyValue> for Entry {
    fn from(stored: KeyValue) -> Self {
        let KeyValue { key, create_revision, mod_revision, value, lease } = stored;
        Self { key, value, made: create_revision, changed: mod_revision, lease }
    }
}

pub(super) fn header(header: Option<ResponseHeader>) -> Header {
    let header = header.unwrap_or_default();
    Header { cluster: header.cluster_id, member: header.member_id, revision: header.revision }
}
