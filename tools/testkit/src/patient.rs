//! An engine whose store may be slow: what it has not answered is asked again.

use std::future::Future;
use std::slice;
use std::sync::Arc;

use ylock_core::engine::{
    AcquisitionId, Engine, Grant, Holder, Holding, Inspection, KeyPage, Release, Renewal, Request,
};
use ylock_core::{Error, ErrorKind, Key, Result};

use super::wrapper::Wrapper;

/// How often something is asked in all.
const TIMES: usize = 5;

/// Asks an engine again what its store has not answered, as the keeper does: a case that asks once would fail where the machine is busy for
/// longer than a request may take. An acquisition that is asked for again goes on where it stood, a release may be repeated, and the other calls
/// come to the same.
#[derive(Debug)]
pub(crate) struct Patient(pub(crate) Arc<dyn Engine>);

/// Returns whether the store has not answered. What it has said is for the case to judge.
pub(crate) fn is_silence(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Indeterminate)
}

/// Asks again what the store has not answered, a few times in all: a busy machine is silent now and then, and a fault that makes it silent is so each time.
///
/// # Errors
/// What the store has said; or the last silence.
pub async fn answered<T, F: Future<Output = Result<T>>>(ask: impl Fn() -> F) -> Result<T> {
    for _ in 1..TIMES {
        match ask().await {
            Err(error) if is_silence(&error) => {}
            answer => return answer,
        }
    }
    ask().await
}

impl Wrapper for Patient {
    fn inner(&self) -> &dyn Engine {
        &*self.0
    }

    async fn acquire(&self, request: &Request) -> Result<Option<Grant>> {
        answered(|| self.0.acquire(request)).await
    }

    async fn renew(&self, holdings: &[Holding]) -> Vec<Result<Renewal>> {
        let mut answers = self.0.renew(holdings).await;
        for (holding, answer) in holdings.iter().zip(&mut answers) {
            for _ in 1..TIMES {
                if !answer.as_ref().is_err_and(is_silence) {
                    break;
                }
                *answer = self.0.renew(slice::from_ref(holding)).await.remove(0);
            }
        }
        answers
    }

    async fn release(&self, key: &Key, id: AcquisitionId, next: Option<&Request>) -> Result<Release> {
        answered(|| self.0.release(key, id, next)).await
    }

    async fn inspect(&self, key: &Key) -> Result<Inspection> {
        answered(|| self.0.inspect(key)).await
    }

    async fn may_be_free(&self, key: &Key) -> Result<bool> {
        answered(|| self.0.may_be_free(key)).await
    }

    async fn exact_holders(&self, key: &Key) -> Result<Vec<Holder>> {
        answered(|| self.0.exact_holders(key)).await
    }

    async fn keys(&self, group: Option<&str>, after: Option<&str>) -> Result<KeyPage> {
        answered(|| self.0.keys(group, after)).await
    }

    async fn revoke(&self, key: &Key, id: AcquisitionId) -> Result<bool> {
        answered(|| self.0.revoke(key, id)).await
    }
}
