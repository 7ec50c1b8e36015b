//! One run of a session at a time: the turn, and the queue for it.

use std::{
    mem,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use futures_util::FutureExt;
use mainstem_message::RunId;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore, TryAcquireError};
use tokio_util::sync::CancellationToken;

use crate::{RunHandle, Session};

/// The active run of a session and the queue behind it.
pub(crate) struct Turns {
    free: Arc<Semaphore>,
    runs: Mutex<Runs>,
}

#[derive(Default)]
struct Runs {
    active: Option<RunHandle>,
    queued: Vec<RunHandle>,
}

impl Turns {
    pub(crate) fn new() -> Self {
        Self { free: Arc::new(Semaphore::new(1)), runs: Mutex::default() }
    }

    /// Takes the turn if it is free.
    pub(crate) fn try_take(&self) -> Result<OwnedSemaphorePermit, TryAcquireError> {
        self.free.clone().try_acquire_owned()
    }

    /// Waits until the turn is free, in the order of asking.
    pub(crate) async fn take(&self) -> Option<OwnedSemaphorePermit> {
        // The semaphore is never closed; without a permit a run would merely not wait for another.
        self.free.clone().acquire_owned().await.ok()
    }

    pub(crate) fn active(&self) -> Option<RunHandle> {
        self.runs().active.clone()
    }

    pub(crate) fn queued(&self) -> Vec<RunHandle> {
        self.runs().queued.clone()
    }

    fn runs(&self) -> MutexGuard<'_, Runs> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a queued run out; returns whether it was there.
    fn leave(&self, run: &RunId) -> Option<RunHandle> {
        let mut runs = self.runs();
        let place = runs.queued.iter().position(|queued| queued.id() == run)?;
        Some(runs.queued.remove(place))
    }
}

/// A run's right to the session: held from now on, or queued for.
pub(crate) enum Right {
    Held(Turn),
    Queued { permit: Acquired, place: Queued },
}

type Acquired = Pin<Box<dyn Future<Output = Result<OwnedSemaphorePermit, AcquireError>> + Send>>;

impl Right {
    pub(crate) fn held(handle: &RunHandle, permit: Option<OwnedSemaphorePermit>) -> Self {
        Self::Held(Turn::new(handle.clone(), permit))
    }

    /// Queues the run, visibly. It has its place from now on, whenever it is polled first.
    pub(crate) fn queued(handle: &RunHandle) -> Self {
        let session = handle.session().clone();
        let mut runs = session.turns().runs();
        let mut permit = Box::pin(session.turns().free.clone().acquire_owned());
        if let Some(permit) = (&mut permit).now_or_never() {
            drop(runs);
            return Self::held(handle, permit.ok());
        }
        runs.queued.push(handle.clone());
        drop(runs);
        Self::Queued { permit, place: Queued { session, run: handle.id().clone() } }
    }

    /// Waits for the turn; returns the place in the queue if the run is cancelled while it is
    /// queued.
    pub(crate) async fn wait(self, handle: RunHandle, cancel: &CancellationToken) -> Result<Turn, Queued> {
        match self {
            Self::Held(turn) => Ok(turn),
            Self::Queued { permit, place } => match cancel.run_until_cancelled(permit).await {
                // The semaphore is never closed. A permit that comes with the cancel is given back.
                Some(permit) if !cancel.is_cancelled() => Ok(Turn::new(handle, permit.ok())),
                _ => Err(place),
            },
        }
    }
}

/// The turn of a run: until it is dropped the run is the session's active one.
pub(crate) struct Turn {
    session: Session,
    // Released after `active` is cleared.
    permit: Option<OwnedSemaphorePermit>,
}

impl Turn {
    fn new(handle: RunHandle, permit: Option<OwnedSemaphorePermit>) -> Self {
        let session = handle.session().clone();
        session.turns().runs().active = Some(handle);
        Self { session, permit }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let active = mem::take(&mut self.session.turns().runs().active);
        // The handle holds the session; the lock is free again.
        drop(active);
        drop(self.permit.take());
    }
}

/// A place in the queue, given back when dropped.
pub(crate) struct Queued {
    session: Session,
    run: RunId,
}

impl Drop for Queued {
    fn drop(&mut self) {
        drop(self.session.turns().leave(&self.run));
    }
}
