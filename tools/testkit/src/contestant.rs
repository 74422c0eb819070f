//! One contender, straight at the engine, for tests of what the keeper relies on.

use std::sync::Arc;
use std::time::Duration;

use ylock_core::engine::{AcquisitionId, Engine, Grant, Holding, Patience, Release, Renewal, Request};
use ylock_core::{ClientName, Key, Mode, Owner};

use super::fixture::Fixture;
use super::patient::Patient;
use super::waiting::within;
use super::wrapper::Wrapped;

/// One contender, straight at the engine.
pub(crate) struct Contestant {
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) request: Request,
    fixture: Fixture,
}

impl Contestant {
    pub(crate) async fn new(fixture: &Fixture, mode: Mode, patience: Patience) -> Self {
        Self::with_lease(fixture, mode, patience, fixture.lease()).await
    }

    /// Creates one whose lease does not end within a case, although no renewal is sent.
    pub(crate) async fn long_lived(fixture: &Fixture, mode: Mode, patience: Patience) -> Self {
        Self::with_lease(fixture, mode, patience, fixture.long_lease()).await
    }

    async fn with_lease(fixture: &Fixture, mode: Mode, patience: Patience, lease: Duration) -> Self {
        let engine = fixture.harness().engine_for(lease).await;
        let engine: Arc<dyn Engine> = Arc::new(Wrapped(Patient(engine)));
        let request = Request::new(
            Key::new(fixture.group(), "the lock").unwrap(),
            AcquisitionId::new(&*engine.environment()),
            mode,
            Owner::new(),
            ClientName::default(),
            lease,
        )
        .with_patience(patience);
        Self { engine, request, fixture: fixture.clone() }
    }

    /// Tries, with a new identity.
    pub(crate) async fn tries(&mut self) -> Option<Grant> {
        self.request.id = AcquisitionId::new(&*self.engine.environment());
        self.acquires().await
    }

    pub(crate) async fn acquires(&self) -> Option<Grant> {
        let acquired = self.engine.acquire(&self.request);
        within(self.fixture.lapse(), "the engine answers", acquired).await.unwrap()
    }

    pub(crate) async fn renews(&self, grant: &Grant) -> Renewal {
        let holding = Holding::new(grant.clone(), None);
        let mut answers = self.engine.renew(&[holding]).await;
        assert_eq!(answers.len(), 1, "one answer per holding");
        answers.remove(0).unwrap()
    }

    pub(crate) async fn releases(&self, id: AcquisitionId) -> Release {
        self.engine.release(&self.request.key, id, None).await.unwrap()
    }
}

pub(crate) async fn pair(fixture: &Fixture, mode: Mode) -> (Contestant, Contestant) {
    (Contestant::new(fixture, mode, Patience::Try).await, Contestant::new(fixture, mode, Patience::Try).await)
}
