//! The record of a new session, opened by the session's first run.

use std::{
    future::ready,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    task::Waker,
};

use futures_util::{FutureExt, future::BoxFuture};
use mainstem_event::{AgentEvent, Page, Position, Record};
use mainstem_journal::Journal;
use mainstem_message::SessionId;
use tokio::sync::OnceCell;

/// Holds what it is given until the journal has opened the session, and fails with it.
pub(crate) struct Deferred {
    journal: Arc<dyn Journal>,
    session: SessionId,
    opening: OnceCell<()>,
    opened: OnceLock<Result<Arc<dyn Record>, Arc<str>>>,
    early: Mutex<Early>,
}

/// What came before the record was open.
#[derive(Default)]
struct Early {
    events: Vec<AgentEvent>,
    waker: Option<Waker>,
}

impl Deferred {
    pub(crate) fn new(journal: Arc<dyn Journal>, session: SessionId) -> Self {
        let (opening, opened, early) = Default::default();
        Self { journal, session, opening, opened, early }
    }

    /// Opens the session in the journal, once. Why it can't be opened is the record's failure.
    pub(crate) async fn open(&self) {
        self.opening.get_or_init(|| self.open_once()).await;
    }

    async fn open_once(&self) {
        let opened = self.journal.open(&self.session).await;
        let opened = opened.map_err(|error| Arc::from(error.to_string())).and_then(is_new);
        let waker = {
            let mut early = self.early();
            let Early { events, waker } = std::mem::take(&mut *early);
            if let Ok(record) = &opened {
                events.iter().for_each(|event| record.append(event));
                waker.iter().for_each(|waker| record.watch(waker.clone()));
            }
            // Set under the lock: an append that sees it comes after the early events.
            let _ = self.opened.set(opened);
            waker
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn record(&self) -> Option<&Arc<dyn Record>> {
        self.opened.get()?.as_ref().ok()
    }

    fn early(&self) -> MutexGuard<'_, Early> {
        self.early.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The id was made up for this session.
fn is_new(record: Arc<dyn Record>) -> Result<Arc<dyn Record>, Arc<str>> {
    match record.position().last {
        0 => Ok(record),
        last => Err(format!("the journal has a session of this id already, with {last} events").into()),
    }
}

impl Record for Deferred {
    fn position(&self) -> Position {
        Position::default()
    }

    fn append(&self, event: &AgentEvent) {
        if self.opened.get().is_none() {
            let mut early = self.early();
            if self.opened.get().is_none() {
                early.events.push(event.clone());
                return;
            }
        }
        if let Some(record) = self.record() {
            record.append(event);
        }
    }

    fn committed(&self) -> u64 {
        self.record().map_or(0, |record| record.committed())
    }

    fn failure(&self) -> Option<Arc<str>> {
        match self.opened.get()? {
            Ok(record) => record.failure(),
            Err(why) => Some(why.clone()),
        }
    }

    fn watch(&self, waker: Waker) {
        let mut early = self.early();
        match self.record() {
            Some(record) => record.watch(waker),
            None => early.waker = Some(waker),
        }
    }

    fn read(&self, from: u64, through: u64) -> BoxFuture<'static, Page> {
        match self.record() {
            Some(record) => record.read(from, through),
            None => ready(Page { events: Vec::new(), through }).boxed(),
        }
    }
}
