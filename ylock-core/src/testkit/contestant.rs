//! One contender, straight at the engine, for tests of what the keeper relies on.

use std::sync::Arc;

use crate::client_name::ClientName;
use crate::engine::{AcquisitionId, Engine, Grant, Holding, Patience, Release, Renewal, Request};
use crate::key::Key;
use crate::mode::Mode;
use crate::options::Fairness;
use crate::owner::Owner;

use super::stage::Stage;
use super::waiting::within;

/// One contender, straight at the engine.
pub(crate) struct Contestant {
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) request: Request,
    stage: Stage,
}

impl Contestant {
    pub(crate) async fn new(stage: &Stage, mode: Mode, patience: Patience) -> Self {
        let engine = stage.harness().engine().await;
        let request = Request {
            key: Key::new(stage.group(), "the lock").unwrap(),
            id: AcquisitionId::new(&*engine.environment()),
            mode,
            owner: Owner::new(),
            client: ClientName::default(),
            lease: stage.lease(),
            patience,
            fairness: Fairness::Fair,
            ticket: None,
        };
        Self { engine, request, stage: stage.clone() }
    }

    /// Tries, with a new identity.
    pub(crate) async fn tries(&mut self) -> Option<Grant> {
        self.request.id = AcquisitionId::new(&*self.engine.environment());
        self.acquires().await
    }

    pub(crate) async fn acquires(&self) -> Option<Grant> {
        let acquired = self.engine.acquire(&self.request);
        within(self.stage.lapse(), "the engine answers", acquired).await.unwrap()
    }

    pub(crate) async fn renews(&self, grant: &Grant) -> Renewal {
        let holding = Holding { grant: grant.clone(), next: None };
        let mut answers = self.engine.renew(&[holding]).await;
        assert_eq!(answers.len(), 1, "one answer per holding");
        answers.remove(0).unwrap()
    }

    pub(crate) async fn releases(&self, id: AcquisitionId) -> Release {
        self.engine.release(&self.request.key, id, None).await.unwrap()
    }
}

pub(crate) async fn pair(stage: &Stage, mode: Mode) -> (Contestant, Contestant) {
    (Contestant::new(stage, mode, Patience::Try).await, Contestant::new(stage, mode, Patience::Try).await)
}
