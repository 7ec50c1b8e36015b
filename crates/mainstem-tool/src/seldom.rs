//! Waiting for what hardly ever happens, beside work that is polled for every event.

use std::{
    pin::Pin,
    sync::{Arc, PoisonError, atomic::Ordering},
    task::{Context, Poll, Wake, Waker},
};

use pin_project::pin_project;

use crate::sync::{AtomicBool, Mutex, MutexGuard};

/// The work's output, or `None` if something else happens first: a cancel, a timer, a message. Of
/// two at once the work counts. Dropping the future drops both; so does its end.
///
/// ```
/// # use mainstem_tool::unless;
/// # tokio_test::block_on(async {
/// # let (cancelled, work) = (std::future::pending::<()>(), async { 42 });
/// assert_eq!(unless(cancelled, work).await, Some(42));
/// # });
/// ```
pub fn unless<E: Future, W: Future>(event: E, work: W) -> impl Future<Output = Option<W::Output>> {
    Unless { work, event: Seldom::new(event) }
}

#[pin_project]
struct Unless<W, E> {
    #[pin]
    work: W,
    #[pin]
    event: Seldom<E>,
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
/// Each event of a child passes whatever stands beside the child's work. Asking a cancel, a timer
/// or a message takes a lock or two every time; this takes a load. Polling it once more after it is
/// ready is an error of the inner future.
///
/// ```
/// # use mainstem_tool::Seldom;
/// # tokio_test::block_on(async {
/// # let (cancelled, work) = (std::future::pending::<()>(), async { 42 });
/// tokio::select! {
///     biased;
///     () = Seldom::new(cancelled) => {}
///     answer = work => assert_eq!(answer, 42),
/// }
/// # });
/// ```
#[derive(Debug)]
#[pin_project]
#[must_use = "futures do nothing unless you poll them"]
pub struct Seldom<F> {
    #[pin]
    future: F,
    bell: Arc<Bell>,
    /// Whom the bell wakes, as long as it holds a clone: a waker and its clone need not look the
    /// same.
    outer: Identity,
}

/// A waker's data and vtable.
type Identity = (usize, usize);

#[derive(Debug)]
struct Bell {
    rung: AtomicBool,
    outer: Mutex<Waker>,
}

impl<F> Seldom<F> {
    /// Of this future.
    pub fn new(future: F) -> Self {
        // Rung, so that the first poll reaches the future.
        let bell = Bell { rung: AtomicBool::new(true), outer: Mutex::new(Waker::noop().clone()) };
        Self { future, bell: Arc::new(bell), outer: identity(Waker::noop()) }
    }
}

impl<F: Future> Future for Seldom<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        if *this.outer != identity(cx.waker()) {
            *this.outer = identity(cx.waker());
            // Before the look at the bell: who rings it after that look finds this waker.
            this.bell.outer().clone_from(cx.waker());
        }
        if !this.bell.rung.load(Ordering::Acquire) {
            return Poll::Pending;
        }
        this.bell.rung.swap(false, Ordering::AcqRel);
        this.future.poll(&mut Context::from_waker(&Waker::from(this.bell.clone())))
    }
}

fn identity(waker: &Waker) -> Identity {
    (waker.data().addr(), std::ptr::from_ref(waker.vtable()).addr())
}

impl Bell {
    fn outer(&self) -> MutexGuard<'_, Waker> {
        self.outer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.rung.store(true, Ordering::Release);
        let outer = self.outer().clone();
        outer.wake();
    }
}

#[cfg(test)]
mod tests;
