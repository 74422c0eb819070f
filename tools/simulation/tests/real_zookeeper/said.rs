//! What the servers said, in a form in which both sides can be compared.

use std::collections::BTreeSet;
use std::fmt::Debug;

use ylock_core::StoreToken;
use ylock_engine_zookeeper::algorithm::store::{Contender, Created, Fault};

/// The steps that a difference is shown with.
const BEFORE: usize = 8;

/// One step: what was asked, and what was answered.
#[derive(Clone, Debug, Default)]
pub(crate) struct Step {
    said: Vec<String>,
    tokens: Vec<u64>,
    /// True if a lock was empty for a moment: from time to time the real server removes such locks.
    pub(crate) stood_empty: bool,
}

/// The first difference.
pub(crate) struct Difference {
    pub(crate) words: String,
    pub(crate) stood_empty: bool,
}

impl Step {
    pub(crate) fn say(&mut self, what: &str, answer: impl Debug) {
        self.said.push(format!("{what}: {answer:?}"));
    }

    /// Notes an answer without its tokens, which are compared by their order.
    pub(crate) fn created(&mut self, what: &str, answer: Result<Created, Fault>) {
        if let Ok(created) = &answer {
            self.token(created.token);
        }
        self.answer(what, answer.map(|created| (created.place, created.token.is_some())));
    }

    pub(crate) fn read(&mut self, what: &str, answer: Result<Contender, Fault>) {
        if let Ok(contender) = &answer {
            self.token(contender.token);
        }
        let shown = |contender: Contender| {
            (String::from_utf8_lossy(&contender.content).into_owned(), contender.version)
        };
        self.answer(what, answer.map(shown));
    }

    pub(crate) fn told(&mut self, what: &str, answer: Result<Option<StoreToken>, Fault>) {
        self.token(answer.clone().ok().flatten());
        self.answer(what, answer.map(|token| token.is_some()));
    }

    pub(crate) fn answer(&mut self, what: &str, answer: Result<impl Debug, Fault>) {
        self.say(what, answer.map_err(|fault| kind(&fault)));
    }

    pub(crate) fn times(&self, answer: &str) -> usize {
        self.said.iter().filter(|said| said.contains(answer)).count()
    }

    fn token(&mut self, token: Option<StoreToken>) {
        self.tokens.extend(token.map(StoreToken::get));
    }
}

/// Returns a fault without the words of the one who found it.
fn kind(fault: &Fault) -> String {
    let words = format!("{fault:?}");
    words.split('(').next().unwrap_or_default().to_owned()
}

/// Returns the place of each token among all tokens of its side: the numbers themselves differ, other clients use the real server too.
fn ranks(steps: &[Step]) -> Vec<Vec<usize>> {
    let all: BTreeSet<u64> = steps.iter().flat_map(|step| step.tokens.iter().copied()).collect();
    let all: Vec<_> = all.into_iter().collect();
    let ranks = |step: &Step| {
        let rank = |token: &u64| all.binary_search(token).unwrap_or(usize::MAX);
        step.tokens.iter().map(rank).collect()
    };
    steps.iter().map(ranks).collect()
}

pub(crate) fn compare(real: &[Step], simulated: &[Step]) -> Result<(), Difference> {
    let ranks = [ranks(real), ranks(simulated)];
    for (number, (of_real, of_simulated)) in real.iter().zip(simulated).enumerate() {
        let [real_ranks, simulated_ranks] = [&ranks[0][number], &ranks[1][number]];
        if of_real.said != of_simulated.said || real_ranks != simulated_ranks {
            let before = &real[number.saturating_sub(BEFORE)..number];
            let before: Vec<_> = before.iter().map(|step| step.said.join("; ")).collect();
            let words = format!(
                "step {number}, after\n{}\nthe real server: {:#?}, tokens {real_ranks:?}\nthe simulated one: {:#?}, tokens {simulated_ranks:?}",
                before.join("\n"),
                of_real.said,
                of_simulated.said
            );
            return Err(Difference { words, stood_empty: of_real.stood_empty });
        }
    }
    assert_eq!(real.len(), simulated.len(), "steps");
    Ok(())
}
