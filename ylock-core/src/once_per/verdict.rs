//! What the last run says of the present period. Pure.

use crate::error::{Error, ErrorKind, Result};
use crate::job_run::JobRun;
use crate::period::Period;

/// What the last run says of the period of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// No run of this period, nor of a later one.
    ToDo,
    /// A run of this period was begun, and is not done.
    Unfinished,
    /// This period was run, or a later one.
    Over,
}

/// Judges. `begins` is the period of the call, `now` the one of this moment, both by the wall clock of this client.
///
/// # Errors
/// [`Config`](ErrorKind::Config) if the run is of a period that begins in more than one period from now: silence would mean that the job is not run
/// until the clock of this client has come there.
pub(super) fn judge(last: Option<&JobRun>, begins: i64, now: i64, period: Period) -> Result<Verdict> {
    let Some(last) = last.filter(|last| last.period_micros() >= begins) else { return Ok(Verdict::ToDo) };
    if last.period_micros() - now > period.micros() {
        return Err(ahead(last, now, period));
    }
    Ok(if last.period_micros() == begins && !last.is_done { Verdict::Unfinished } else { Verdict::Over })
}

fn ahead(last: &JobRun, now: i64, period: Period) -> Error {
    let (own, theirs) = (JobRun::begun(now, None, now, last.client.clone()).period(), last.period());
    let shown = |time| humantime::format_rfc3339_seconds(time).to_string();
    let message = format!(
        "the last run of this job, by client {:?}, is of a period that begins at {}, and by the clock of this client the present one began at {}: \
         one of the clocks is wrong, or they name different periods (this client: {:?}). The job is not run by clients whose clocks are behind \
         until the store has forgotten that run, {:?} after it was begun",
        last.client.as_str(),
        shown(theirs),
        shown(own),
        period.length(),
        period.kept(),
    );
    Error::new(ErrorKind::Config, message)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::client_name::ClientName;

    const PERIOD: Period = Period::of(Duration::from_micros(1_000));

    fn run(period: i64) -> JobRun {
        JobRun::begun(period, None, 0, ClientName::stored("web-3"))
    }

    fn judged(last: &JobRun, begins: i64, now: i64) -> Verdict {
        judge(Some(last), begins, now, PERIOD).unwrap()
    }

    #[test]
    fn a_period_is_run_once() {
        assert_eq!(judge(None, 5_000, 5_000, PERIOD).unwrap(), Verdict::ToDo);
        assert_eq!(judged(&run(4_000), 5_000, 5_000), Verdict::ToDo);
        assert_eq!(judged(&run(4_000).done(), 5_000, 5_000), Verdict::ToDo);
        assert_eq!(judged(&run(5_000), 5_000, 5_000), Verdict::Unfinished);
        assert_eq!(judged(&run(5_000).done(), 5_000, 5_000), Verdict::Over);
        // That of a later one is none of this call's.
        assert_eq!(judged(&run(6_000), 5_000, 5_000), Verdict::Over);
    }

    /// Replicas may name another length or another offset for a while, as while a new version is installed.
    #[test]
    fn periods_that_do_not_begin_together_are_told_apart_by_when_they_begin() {
        assert_eq!(judged(&run(5_500), 5_000, 5_000), Verdict::Over);
        assert_eq!(judged(&run(4_500), 5_000, 5_000), Verdict::ToDo);
    }

    #[test]
    fn a_run_far_ahead_is_an_error_and_one_that_came_while_the_caller_waited_is_not() {
        let error = judge(Some(&run(7_000)), 5_000, 5_000, PERIOD).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(error.to_string().contains("\"web-3\"") && error.to_string().contains("clocks"), "{error}");
        assert_eq!(judged(&run(7_000), 5_000, 6_000), Verdict::Over);
        assert_eq!(judged(&run(7_000), 1_000, 8_000), Verdict::Over);
    }
}
