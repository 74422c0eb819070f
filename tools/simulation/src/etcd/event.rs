//! The messages, and what else happens at a moment.

use std::fmt;
use std::sync::Arc;

use ylock_engine_etcd::algorithm::store::{Fault, Granted, KeyEvent, Outcome, Step, Transaction};

use super::member::Watch;
use super::{ConnectionId, LeaseId, MemberId};

/// What a log has an entry of.
#[derive(Clone, Debug)]
pub(super) enum Change {
    /// The first entry of a leader.
    Nothing,
    Transact(Arc<Transaction>),
    Grant(LeaseId, i64),
    Revoke(LeaseId),
}

/// An entry of a log.
#[derive(Debug)]
pub(super) struct Logged {
    /// The term of the leader that made it.
    pub(super) term: u64,
    pub(super) change: Change,
    /// The request that asked for it; none if the leader itself did, or if no client waits for an answer.
    pub(super) origin: Option<Origin>,
}

/// The request of a client, and the member that answers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Origin {
    pub(super) member: MemberId,
    pub(super) connection: ConnectionId,
    pub(super) request: u64,
}

/// A request of a client.
#[derive(Clone, Debug)]
pub(super) enum Ask {
    Transact(Arc<Transaction>),
    Grant(i64),
    /// The engine asks for none, but a mistake may.
    KeepAlive(LeaseId),
    Revoke(LeaseId),
    Watch {
        number: i64,
        key: Vec<u8>,
        changes: bool,
    },
}

/// The answer to a request that was not refused.
#[derive(Clone, Debug)]
pub(super) enum Reply {
    Carried(Outcome),
    Granted(Granted),
    Revoked,
    /// With the revision after which the watch tells.
    Watches(i64),
}

/// A message of a member to a client.
#[derive(Clone, Debug)]
pub(super) enum Told {
    Accepted,
    /// There is no member here, or the connection is closed.
    Closed,
    Answer(u64, Result<Reply, Fault>),
    /// A watch has seen its key change, or go.
    Changed(i64, KeyEvent),
    /// A watch has ended.
    Cancelled(i64),
}

/// A message of a client to a member.
#[derive(Clone, Debug)]
pub(super) enum Frame {
    Dial,
    Ask(u64, Ask),
    Unwatch(i64),
    HangsUp,
}

/// A message between two members, of which one leads.
#[derive(Clone, Debug)]
pub(super) enum Word {
    // From the leader.
    /// With the number of entries before it.
    Append(usize, Arc<Logged>),
    Commit(usize),
    /// With the number of the last question whether it still leads.
    Beat(u64),
    /// So many entries must be applied before a look is answered.
    ReadAt(u64, usize),
    Prolonged(u64, i64),
    // To the leader.
    Has(usize),
    Beaten(u64),
    Propose(Change, Option<Origin>),
    ReadIndex(u64),
    Prolong(u64, LeaseId),
}

/// What happens.
#[derive(Debug)]
pub(super) enum Event {
    Arrives(ConnectionId, Frame),
    /// A request arrives that its client gave up long since, in the cluster of this number.
    Late(MemberId, u64, Ask),
    ToClient(ConnectionId, Told),
    Watches(Origin, i64, Watch),
    /// A watch tells of something.
    Tells(ConnectionId, Told),
    Between {
        from: MemberId,
        to: MemberId,
        memberships: (u64, u64),
        word: Word,
    },
    Applies(MemberId, u64, usize),
    Ticks(MemberId, u64),
    MayEnd(MemberId, u64, LeaseId),
    LosesLeader(MemberId, u64),
    Election,
    Rebuilt,
}

impl Ask {
    /// Returns whether a late copy could do anything.
    pub(super) fn writes(&self) -> bool {
        match self {
            Self::Transact(transaction) => writes(transaction),
            Self::Grant(_) | Self::KeepAlive(_) | Self::Revoke(_) => true,
            Self::Watch { .. } => false,
        }
    }
}

/// Returns whether a transaction may change anything.
pub(super) fn writes(transaction: &Transaction) -> bool {
    let mut steps = transaction.then.iter().chain(&transaction.otherwise);
    steps.any(|step| !matches!(step, Step::Look(_)))
}

/// As the trace shows it: without contents.
impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("nothing"),
            Self::Grant(lease, seconds) => write!(f, "grant {lease:x} {seconds} s"),
            Self::Revoke(lease) => write!(f, "revoke {lease:x}"),
            Self::Transact(transaction) => {
                write!(f, "if {} then", transaction.when.len())?;
                show(&transaction.then, f)?;
                f.write_str(" else")?;
                show(&transaction.otherwise, f)
            }
        }
    }
}

fn show(steps: &[Step], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    steps.iter().try_for_each(|step| match step {
        Step::Put(put) => write!(f, " put {}", String::from_utf8_lossy(&put.key)),
        Step::Delete(key) => write!(f, " delete {}", String::from_utf8_lossy(key)),
        Step::Look(look) => write!(f, " look {}", String::from_utf8_lossy(&look.keys.begin)),
    })
}
