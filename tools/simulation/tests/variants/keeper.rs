//! Mistakes that an engine can make under the keeper.

use std::sync::Arc;

use ylock_core::engine::{AcquisitionId, AtOnce, Engine, Grant, Holding, Release, Renewal, Request};
use ylock_core::{Key, Result, StoreToken};
use ylock_testkit::{Wrapped, Wrapper};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Defect {
    /// The lease counts from the answer, not from before the request.
    ValidFromAnswer,
    /// A renewal that finds out about a loss says that all is well.
    HidesTheLoss,
    /// One of a hundred requests is granted, even if another client is inside.
    GrantsToTwo,
    /// The store keeps a grant for half of the lease.
    LeaseEndsEarly,
    /// Every grant has the same token.
    RepeatsTokens,
    /// One of a hundred requests is never answered.
    NeverAnswers,
}

/// Makes this mistake with an engine.
pub(crate) fn broken(defect: Defect) -> impl Fn(Arc<dyn Engine>) -> Arc<dyn Engine> {
    move |inner| Arc::new(Wrapped(Broken { inner, defect }))
}

#[derive(Debug)]
struct Broken {
    inner: Arc<dyn Engine>,
    defect: Defect,
}

impl Broken {
    fn happens(&self, defect: Defect) -> bool {
        self.defect == defect && self.inner.environment().random().is_multiple_of(100)
    }

    /// The request as the store gets it.
    fn distort(&self, request: &Request) -> Request {
        let mut request = request.clone();
        if self.defect == Defect::LeaseEndsEarly {
            request.lease /= 2;
        }
        request
    }

    fn fabricate(&self, request: &Request) -> Grant {
        Grant::of(request, StoreToken::new(StoreToken::MAX), self.inner.environment().now(), false)
    }

    fn change(&self, grant: Grant, request: &Request) -> Grant {
        let grant = grant.with_lease(request.lease);
        match self.defect {
            Defect::ValidFromAnswer => grant.with_sent(self.inner.environment().now()),
            Defect::RepeatsTokens => {
                let sent = grant.sent;
                Grant::of(request, StoreToken::new(7), sent, grant.contended).after_waiting(grant.waited)
            }
            _ => grant,
        }
    }

    fn answer(&self, answer: Renewal) -> Renewal {
        let now = self.inner.environment().now();
        match (self.defect, answer) {
            (Defect::ValidFromAnswer, Renewal::Renewed { contended, .. }) => {
                Renewal::Renewed { sent: now, contended }
            }
            (Defect::HidesTheLoss, Renewal::Lost(_)) => Renewal::Renewed { sent: now, contended: false },
            _ => answer,
        }
    }
}

impl AtOnce for Broken {
    fn acquire(&self, request: &Request) -> Option<Result<Option<Grant>>> {
        if self.happens(Defect::GrantsToTwo) {
            return Some(Ok(Some(self.fabricate(request))));
        }
        let answer = self.inner.at_once()?.acquire(&self.distort(request))?;
        Some(answer.map(|granted| granted.map(|grant| self.change(grant, request))))
    }

    fn release(&self, key: &Key, id: AcquisitionId, next: Option<&Request>) -> Result<Release> {
        self.inner.at_once().expect("asked only where it answers at once").release(key, id, next)
    }
}

impl Wrapper for Broken {
    fn inner(&self) -> &dyn Engine {
        &*self.inner
    }

    fn name(&self) -> &'static str {
        "broken"
    }

    fn at_once(&self) -> Option<&dyn AtOnce> {
        self.inner.at_once().map(|_| self as _)
    }

    async fn acquire(&self, request: &Request) -> Result<Option<Grant>> {
        if self.happens(Defect::NeverAnswers) {
            std::future::pending::<()>().await;
        }
        if self.happens(Defect::GrantsToTwo) {
            return Ok(Some(self.fabricate(request)));
        }
        let granted = self.inner.acquire(&self.distort(request)).await?;
        Ok(granted.map(|grant| self.change(grant, request)))
    }

    async fn renew(&self, holdings: &[Holding]) -> Vec<Result<Renewal>> {
        let mut holdings = holdings.to_vec();
        if self.defect == Defect::LeaseEndsEarly {
            holdings.iter_mut().for_each(|holding| holding.grant.lease /= 2);
        }
        let answers = self.inner.renew(&holdings).await;
        answers.into_iter().map(|answer| answer.map(|answer| self.answer(answer))).collect()
    }
}
