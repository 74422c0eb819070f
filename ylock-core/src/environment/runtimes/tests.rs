use std::cell::RefCell;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

use super::*;

const SOON: Duration = Duration::from_secs(10);

fn current_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

fn multi_thread() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).thread_name("of the caller").enable_all().build().unwrap()
}

fn runtimes() -> Arc<Runtimes> {
    Arc::new(Runtimes::new(false))
}

fn entered(runtimes: &Arc<Runtimes>, runtime: &Runtime) {
    let _inside = runtime.enter();
    assert!(runtimes.enter());
}

fn count(runtimes: &Runtimes) -> usize {
    runtimes.known.load().len()
}

/// Lets the tasks of a runtime of one thread run.
async fn all_run() {
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
}

/// Waits until no task looks at the runtimes of the program. Returns whether that came soon.
fn ends_looking(runtimes: &Runtimes) -> bool {
    (0..SOON.as_millis()).any(|_| {
        std::thread::sleep(Duration::from_millis(1));
        !runtimes.is_looking.load(Ordering::Acquire)
    })
}

/// A future that tells on which thread it runs.
fn tells_its_thread() -> (BoxFuture, Receiver<Option<String>>) {
    let (sender, receiver) = channel();
    let name = || std::thread::current().name().map(str::to_owned);
    (Box::pin(async move { drop(sender.send(name())) }), receiver)
}

/// A future that is dropped, but never ends. Says when it was polled first, and hangs up when it is dropped.
fn never_ends() -> (BoxFuture, Receiver<()>) {
    waits_for(std::future::pending())
}

/// The same, which ends with this one.
fn waits_for(other: impl Future<Output = ()> + Send + 'static) -> (BoxFuture, Receiver<()>) {
    let (sender, receiver) = channel();
    let future = async move {
        let _ = sender.send(());
        other.await;
        drop(sender);
    };
    (Box::pin(future), receiver)
}

#[test]
fn a_task_that_was_not_polled_goes_on_on_a_thread_of_the_clients_own() {
    let (runtimes, ends) = (runtimes(), current_thread());
    let (future, told) = tells_its_thread();
    {
        let _inside = ends.enter();
        runtimes.spawn(future);
    }
    drop(ends);
    assert_eq!(told.recv_timeout(SOON).unwrap().as_deref(), Some("ylock"));
}

#[test]
fn a_task_that_was_polled_is_dropped_with_its_runtime() {
    let (runtimes, ends, lives) = (runtimes(), multi_thread(), multi_thread());
    entered(&runtimes, &lives);
    let (future, polled) = never_ends();
    {
        let _inside = ends.enter();
        runtimes.spawn(future);
    }
    polled.recv_timeout(SOON).unwrap();
    drop(ends);
    assert!(polled.recv_timeout(SOON).is_err(), "polled again, elsewhere");
}

/// A caller that is not inside `block_on` may never be so again.
#[test]
fn a_current_thread_runtime_of_the_caller_is_not_relied_on_from_outside_unless_its_clock_matters() {
    for prefers_callers in [false, true] {
        let (runtimes, callers) = (Arc::new(Runtimes::new(prefers_callers)), current_thread());
        entered(&runtimes, &callers);
        let (future, told) = tells_its_thread();
        runtimes.spawn(future);
        if prefers_callers {
            callers.block_on(all_run());
        }
        let thread = told.recv_timeout(SOON).unwrap();
        assert_eq!(thread.as_deref() == Some("ylock"), !prefers_callers, "{thread:?}");
    }
}

#[test]
fn what_is_on_the_thread_of_the_clients_own_has_left_it_when_a_caller_whose_clock_matters_goes_on() {
    let (runtimes, callers) = (Arc::new(Runtimes::new(true)), current_thread());
    let (future, polled) = never_ends();
    runtimes.spawn(future);
    polled.recv_timeout(SOON).unwrap();
    entered(&runtimes, &callers);
    assert_eq!(polled.try_recv(), Err(TryRecvError::Disconnected));
    assert!(runtimes.own.lock().is_none());
}

thread_local! {
    /// Hangs up when the thread ends.
    static THREAD: RefCell<Option<Sender<()>>> = const { RefCell::new(None) };
}

#[test]
fn the_thread_of_the_clients_own_ends_with_the_client_and_what_runs_on_it_too() {
    let runtimes = runtimes();
    let (sender, thread) = channel();
    let notes = async move { THREAD.with(|kept| *kept.borrow_mut() = Some(sender)) };
    runtimes.spawn(Box::pin(notes));
    let (future, polled) = never_ends();
    runtimes.spawn(future);
    polled.recv_timeout(SOON).unwrap();
    assert!(thread.try_recv().is_err());
    drop(runtimes);
    let hung_up = |end| matches!(end, Err(RecvTimeoutError::Disconnected));
    assert!(hung_up(polled.recv_timeout(SOON)), "the task is left");
    assert!(hung_up(thread.recv_timeout(SOON)), "the thread is left");
}

#[test]
fn a_task_that_panics_does_not_cost_its_runtime_the_trust_in_it() {
    let (runtimes, runtime) = (runtimes(), current_thread());
    let polls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&polls);
    runtime.block_on(async {
        runtimes.spawn(Box::pin(async move {
            counted.fetch_add(1, Ordering::SeqCst);
            std::panic::resume_unwind(Box::new("a task that is wrong"));
        }));
        while Arc::strong_count(&polls) > 1 {
            tokio::task::yield_now().await;
        }
    });
    assert_eq!((polls.load(Ordering::SeqCst), count(&runtimes)), (1, 1));
}

#[test]
fn a_thousand_runtimes_that_have_ended_leave_nothing() {
    let runtimes = runtimes();
    for number in 0..1_000 {
        let runtime = if number % 100 == 0 { multi_thread() } else { current_thread() };
        entered(&runtimes, &runtime);
        assert_eq!(count(&runtimes), 1);
        drop(runtime);
        assert_eq!(count(&runtimes), 0);
    }
}

/// Does something when it is dropped.
struct AtLast<F: FnMut()>(F);

impl<F: FnMut()> Drop for AtLast<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

#[test]
fn a_runtime_that_shuts_down_is_not_remembered_by_those_who_enter_then_and_runs_nothing_of_theirs() {
    for runtime in [current_thread(), multi_thread()] {
        let (runtimes, id) = (runtimes(), runtime.handle().id());
        entered(&runtimes, &runtime);
        let (future, told) = tells_its_thread();
        let (mut future, enters) = (Some(future), Arc::clone(&runtimes));
        let last = AtLast(move || {
            assert!(enters.enter());
            enters.spawn(future.take().unwrap());
        });
        let (polled, begun) = channel();
        let holds = async move {
            polled.send(()).unwrap();
            std::future::pending::<()>().await;
            drop(last);
        };
        drop(runtime.spawn(holds));
        runtime.block_on(all_run());
        begun.recv_timeout(SOON).unwrap();
        drop(runtime);
        assert_eq!(told.recv_timeout(SOON).unwrap().as_deref(), Some("ylock"));
        assert!(runtimes.known(id).is_none());
    }
}

#[test]
fn runtimes_that_come_and_go_at_once_are_all_remembered_and_all_forgotten() {
    const RUNTIMES: usize = 4;
    for _ in 0..100 {
        let (runtimes, barrier) = (runtimes(), Barrier::new(RUNTIMES));
        std::thread::scope(|scope| {
            for _ in 0..RUNTIMES {
                scope.spawn(|| {
                    let runtime = current_thread();
                    barrier.wait();
                    entered(&runtimes, &runtime);
                    barrier.wait();
                    assert_eq!(count(&runtimes), RUNTIMES);
                    barrier.wait();
                    drop(runtime);
                });
            }
        });
        assert_eq!(count(&runtimes), 0);
    }
}

/// Two threads of a runtime that found at the same time that it was not known.
#[test]
fn a_runtime_that_was_remembered_twice_is_known_until_it_ends() {
    let (runtimes, runtime) = (runtimes(), current_thread());
    for _ in 0..2 {
        runtimes.remember(runtime.handle().clone());
        // The task that watches for the end of the runtime hears when it is replaced.
        runtime.block_on(all_run());
        assert_eq!(count(&runtimes), 1);
    }
    drop(runtime);
    assert_eq!(count(&runtimes), 0);
}

#[test]
fn what_all_need_runs_where_no_work_of_the_program_can_block_it() {
    let (runtimes, main, job) = (runtimes(), multi_thread(), current_thread());
    for runtime in [&main, &job] {
        entered(&runtimes, runtime);
        let (future, thread) = tells_its_thread();
        runtime.block_on(async { runtimes.spawn_for_all(future) });
        assert_eq!(thread.recv_timeout(SOON).unwrap().as_deref(), Some("ylock"));
    }
}

/// Its clock may be paused, and the client's own thread would not know.
#[test]
fn what_all_need_runs_in_a_runtime_of_one_thread_if_its_clock_matters() {
    let (runtimes, callers) = (Arc::new(Runtimes::new(true)), current_thread());
    let (future, thread) = tells_its_thread();
    callers.block_on(async {
        runtimes.spawn_for_all(future);
        all_run().await;
    });
    assert_eq!(thread.recv_timeout(SOON).unwrap().as_deref(), std::thread::current().name());
    // One of several threads has no clock of its own.
    let (runtimes, callers) = (Arc::new(Runtimes::new(true)), multi_thread());
    let (future, thread) = tells_its_thread();
    callers.block_on(async { runtimes.spawn_for_all(future) });
    assert_eq!(thread.recv_timeout(SOON).unwrap().as_deref(), Some("ylock"));
}

/// Abandons what stands still, from a runtime of its own.
fn abandon(runtimes: &Arc<Runtimes>, which: Option<Option<Id>>) -> bool {
    const SHORT: Duration = Duration::from_millis(20);
    let other = current_thread();
    other.block_on(runtimes.abandon_standing(which, SHORT))
}

#[test]
fn a_runtime_that_is_not_driven_is_treated_as_if_it_had_ended() {
    let (runtimes, idle) = (runtimes(), current_thread());
    let (polled, begun) = never_ends();
    idle.block_on(async {
        runtimes.spawn(polled);
        all_run().await;
    });
    begun.try_recv().expect("it was polled");
    let ((waits, thread), (beside, connection)) = (tells_its_thread(), never_ends());
    {
        let _inside = idle.enter();
        runtimes.spawn(waits);
        runtimes.spawn_beside(beside);
    }
    assert!(abandon(&runtimes, None));
    assert_eq!(thread.recv_timeout(SOON).unwrap().as_deref(), Some("ylock"), "it goes on elsewhere");
    assert!(begun.recv_timeout(SOON).is_err(), "what was polled is dropped");
    assert!(connection.recv_timeout(SOON).is_err(), "what belongs to a connection ends with it");
    assert_eq!(count(&runtimes), 0);
    // A caller comes from it again.
    idle.block_on(async {
        assert!(runtimes.runs_here());
        all_run().await;
    });
    assert_eq!(count(&runtimes), 1);
}

#[test]
fn a_runtime_that_is_driven_keeps_what_it_has() {
    let (runtimes, driven, idle) = (runtimes(), multi_thread(), current_thread());
    let (future, polled) = never_ends();
    driven.block_on(async { runtimes.spawn(future) });
    polled.recv_timeout(SOON).unwrap();
    entered(&runtimes, &idle);
    assert!(!abandon(&runtimes, Some(Some(driven.handle().id()))), "only that one was asked for");
    assert_eq!(polled.try_recv(), Err(TryRecvError::Empty));
    assert_eq!(count(&runtimes), 2);
}

/// The runtimes are looked at for as long as there is work in one, whether a request needs it or not.
#[test]
fn work_that_is_left_to_a_runtime_which_is_not_driven_is_found() {
    let (runtimes, idle) = (runtimes(), current_thread());
    let (future, thread) = tells_its_thread();
    {
        let _inside = idle.enter();
        runtimes.spawn(future);
    }
    assert_eq!(thread.recv_timeout(SOON).unwrap().as_deref(), Some("ylock"));
}

/// The look ends when there is no work, and the next work begins another one.
#[test]
fn work_that_is_left_after_a_look_has_ended_is_found_too() {
    let runtimes = runtimes();
    for round in ["the first", "the second"] {
        let idle = current_thread();
        let (future, thread) = tells_its_thread();
        {
            let _inside = idle.enter();
            runtimes.spawn(future);
        }
        assert_eq!(thread.recv_timeout(SOON).unwrap().as_deref(), Some("ylock"), "{round}");
        assert!(ends_looking(&runtimes), "{round} look");
    }
}

/// That it has moved counts for a moment only.
#[test]
fn a_runtime_that_has_moved_and_then_stands_still_is_found() {
    let (runtimes, idle) = (runtimes(), current_thread());
    entered(&runtimes, &idle);
    idle.block_on(async {
        let known = runtimes.known.load()[0].clone();
        known.poke().await.unwrap();
    });
    assert!(runtimes.known.load()[0].has_moved_within(SOON));
    std::thread::sleep(Duration::from_millis(20));
    assert!(abandon(&runtimes, None));
}

/// Tokio gives a task to the worker that spawns it, from which no other one takes it.
#[test]
fn work_of_a_worker_that_blocks_goes_on_although_another_worker_moves() {
    let runtimes = runtimes();
    let main = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let ((future, thread), (leave, may_leave)) = (tells_its_thread(), channel::<()>());
    let of_worker = Arc::clone(&runtimes);
    let worker = main.spawn(async move {
        of_worker.spawn(future);
        let _ = may_leave.recv();
    });
    assert_eq!(thread.recv_timeout(SOON).unwrap().as_deref(), Some("ylock"));
    assert_eq!(count(&runtimes), 1, "the runtime is not left");
    assert!(ends_looking(&runtimes), "there is no work in it any more");
    drop(leave);
    main.block_on(worker).unwrap();
}

/// Likewise to the worker that wakes it. What was polled is dropped, which starts again what must go on.
#[test]
fn work_that_a_worker_wakes_before_it_blocks_is_dropped_although_another_worker_moves() {
    let runtimes = runtimes();
    let main = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (wake, woken) = tokio::sync::oneshot::channel::<()>();
    let (of_woken, of_other) = main.block_on(async {
        let (future, of_woken) = waits_for(async { drop(woken.await) });
        let (other, of_other) = never_ends();
        runtimes.spawn(future);
        runtimes.spawn(other);
        (of_woken, of_other)
    });
    for polled in [&of_woken, &of_other] {
        polled.recv_timeout(SOON).unwrap();
    }
    let (leave, may_leave) = channel::<()>();
    let worker = main.spawn(async move {
        wake.send(()).unwrap();
        let _ = may_leave.recv();
    });
    assert_eq!(of_woken.recv_timeout(SOON), Err(RecvTimeoutError::Disconnected));
    assert_eq!(of_other.try_recv(), Err(TryRecvError::Empty), "it waits, and was not woken");
    drop(leave);
    main.block_on(worker).unwrap();
}

#[test]
fn a_task_that_is_woken_while_it_is_polled_is_due_when_that_has_ended() {
    let (runtimes, idle) = (runtimes(), current_thread());
    entered(&runtimes, &idle);
    let known = Arc::clone(&runtimes.known.load()[0]);
    let (tells, told) = channel();
    let of_task = Arc::downgrade(&known);
    let future = std::future::poll_fn(move |context| {
        context.waker().wake_by_ref();
        let known = of_task.upgrade().unwrap();
        tells.send(known.tasks.take_overlooked(1).len()).unwrap();
        std::task::Poll::Pending
    });
    idle.block_on(async {
        runtimes.spawn(Box::pin(future));
        all_run().await;
    });
    assert_eq!(told.recv_timeout(SOON), Ok(0), "a thread has it");
    assert_eq!(known.tasks.take_overlooked(1).len(), 1);
}

/// A runtime that goes on has nothing left of them.
#[test]
fn the_tasks_that_were_taken_from_a_runtime_end_there() {
    let (runtimes, idle) = (runtimes(), current_thread());
    let (future, polled) = never_ends();
    idle.block_on(async {
        runtimes.spawn(future);
        all_run().await;
    });
    polled.recv_timeout(SOON).unwrap();
    let known = Arc::clone(&runtimes.known.load()[0]);
    runtimes.abandon(&known, SOON);
    drop(known);
    idle.block_on(all_run());
    assert_eq!(idle.metrics().num_alive_tasks(), 0);
}

#[test]
fn a_task_that_is_polled_while_its_runtime_is_abandoned_is_dropped_then() {
    let (runtimes, blocked) = (runtimes(), multi_thread());
    let ((entered, is_in), (leave, may_leave)) = (channel(), channel::<()>());
    let (dropped, is_dropped) = channel::<()>();
    let future = async move {
        entered.send(()).unwrap();
        may_leave.recv().unwrap();
        std::future::pending::<()>().await;
        drop(dropped);
    };
    blocked.block_on(async { runtimes.spawn(Box::pin(future)) });
    is_in.recv_timeout(SOON).unwrap();
    assert!(abandon(&runtimes, None), "its only thread is blocked");
    assert_eq!(is_dropped.try_recv(), Err(TryRecvError::Empty), "it is in the hands of that thread");
    leave.send(()).unwrap();
    assert_eq!(is_dropped.recv_timeout(SOON), Err(RecvTimeoutError::Disconnected));
}

#[test]
fn work_for_a_runtime_that_was_abandoned_a_moment_ago_goes_on_elsewhere() {
    let (runtimes, idle) = (runtimes(), current_thread());
    entered(&runtimes, &idle);
    let known = Arc::clone(&runtimes.known.load()[0]);
    runtimes.abandon(&known, SOON);
    let (future, thread) = tells_its_thread();
    runtimes.spawn_in(Some(known), Kind::Work, future);
    assert_eq!(thread.recv_timeout(SOON).unwrap().as_deref(), Some("ylock"));
}

/// Work that is dropped begins again, and must not find a connection that is about to end.
#[test]
fn the_connections_of_a_runtime_that_is_abandoned_end_before_its_work() {
    let (runtimes, idle) = (runtimes(), current_thread());
    entered(&runtimes, &idle);
    let (sender, dropped) = channel();
    let says = |what: &'static str| -> BoxFuture {
        let says = SaysWhenDropped(what, sender.clone());
        Box::pin(async move {
            std::future::pending::<()>().await;
            drop(says);
        })
    };
    idle.block_on(async {
        runtimes.spawn(says("work"));
        runtimes.spawn_beside(says("connection"));
        all_run().await;
    });
    let known = Arc::clone(&runtimes.known.load()[0]);
    runtimes.abandon(&known, SOON);
    assert_eq!([dropped.recv_timeout(SOON), dropped.recv_timeout(SOON)], [Ok("connection"), Ok("work")]);
}

struct SaysWhenDropped(&'static str, Sender<&'static str>);

impl Drop for SaysWhenDropped {
    fn drop(&mut self) {
        let _ = self.1.send(self.0);
    }
}
