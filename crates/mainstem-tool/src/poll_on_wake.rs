//! Waiting for rare events beside work that is polled for every event.

use std::{
    pin::Pin,
    sync::{Arc, PoisonError, atomic::Ordering},
    task::{Context, Poll, Wake, Waker},
};

use pin_project::pin_project;

use crate::sync::{AtomicBool, Mutex, MutexGuard};

/// Returns the work's output, or `None` if the event happens first: a cancel, a timer, a message.
/// If both are ready, the work counts. Both are dropped with the future, and when it is ready.
///
/// ```
/// # use mainstem_tool::unless;
/// # tokio_test::block_on(async {
/// # let (cancelled, work) = (std::future::pending::<()>(), async { 42 });
/// assert_eq!(unless(cancelled, work).await, Some(42));
/// # });
/// ```
pub fn unless<E: Future, W: Future>(event: E, work: W) -> impl Future<Output = Option<W::Output>> {
    Unless { work, event: PollOnWake::new(event) }
}

#[pin_project]
struct Unless<W, E> {
    #[pin]
    work: W,
    #[pin]
    event: PollOnWake<E>,
}

impl<W: Future, E: Future> Future for Unless<W, E> {
    type Output = Option<W::Output>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        match this.work.poll(cx) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending => this.event.poll(cx).map(|_| None),
        }
    }
}

/// A future that is polled only after it was woken itself, however often its task is.
///
/// A task with a child is polled for each event of the child. Polling a cancel, a timer or a
/// message takes a lock or two every time; this takes a load. Polling it after it was ready polls
/// the inner future again.
///
/// ```
/// # use mainstem_tool::PollOnWake;
/// # tokio_test::block_on(async {
/// # let (cancelled, work) = (std::future::pending::<()>(), async { 42 });
/// tokio::select! {
///     biased;
///     () = PollOnWake::new(cancelled) => {}
///     answer = work => assert_eq!(answer, 42),
/// }
/// # });
/// ```
#[derive(Debug)]
#[pin_project]
#[must_use = "futures do nothing unless you poll them"]
pub struct PollOnWake<F> {
    #[pin]
    future: F,
    flag: Arc<WakeFlag>,
    /// The waker that the flag wakes. The flag holds a clone, whose identity may differ.
    outer: Identity,
}

/// A waker's data and vtable.
type Identity = (usize, usize);

#[derive(Debug)]
struct WakeFlag {
    is_set: AtomicBool,
    outer: Mutex<Waker>,
}

impl<F> PollOnWake<F> {
    /// Wraps a future.
    pub fn new(future: F) -> Self {
        // Set, so that the first poll reaches the future.
        let flag = WakeFlag { is_set: AtomicBool::new(true), outer: Mutex::new(Waker::noop().clone()) };
        Self { future, flag: Arc::new(flag), outer: identity(Waker::noop()) }
    }
}

impl<F: Future> Future for PollOnWake<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        if *this.outer != identity(cx.waker()) {
            *this.outer = identity(cx.waker());
            // Stored before the flag is read: a wake after that finds this waker.
            this.flag.outer().clone_from(cx.waker());
        }
        if !this.flag.is_set.load(Ordering::Acquire) {
            return Poll::Pending;
        }
        this.flag.is_set.swap(false, Ordering::AcqRel);
        this.future.poll(&mut Context::from_waker(&Waker::from(this.flag.clone())))
    }
}

fn identity(waker: &Waker) -> Identity {
    (waker.data().addr(), std::ptr::from_ref(waker.vtable()).addr())
}

impl WakeFlag {
    fn outer(&self) -> MutexGuard<'_, Waker> {
        self.outer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for WakeFlag {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_set.store(true, Ordering::Release);
        let outer = self.outer().clone();
        outer.wake();
    }
}

#[cfg(test)]
mod tests;
