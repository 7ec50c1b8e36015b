//! A record whose disk is a thread of the model.

use std::{
    collections::VecDeque,
    sync::{Arc, atomic::Ordering},
    task::Waker,
};

use futures_util::future::BoxFuture;
use shuttle::sync::{Condvar, Mutex, atomic::AtomicU64};

use crate::{AgentEvent, Page, Position, Record, log::sync::OnceLock};

pub(super) struct Disk {
    queue: Mutex<VecDeque<AgentEvent>>,
    filled: Condvar,
    kept: Mutex<Vec<AgentEvent>>,
    committed: AtomicU64,
    failure: OnceLock<Arc<str>>,
    waker: Mutex<Option<Waker>>,
    fails_at: Option<u64>,
}

impl Disk {
    pub(super) fn new(fails_at: Option<u64>) -> Arc<Self> {
        Arc::new(Self {
            queue: Mutex::default(),
            filled: Condvar::new(),
            kept: Mutex::default(),
            committed: AtomicU64::new(0),
            failure: OnceLock::new(),
            waker: Mutex::default(),
            fails_at,
        })
    }

    /// Commits events one by one, up to this number or the one at which it fails.
    pub(super) fn write(&self, through: u64) {
        let mut committed = 0;
        while committed < through && !self.has_failed() {
            let mut queue = self.queue.lock().unwrap();
            while queue.is_empty() {
                queue = self.filled.wait(queue).unwrap();
            }
            let event = queue.pop_front().unwrap();
            drop(queue);
            committed = event.seq;
            if self.fails_at == Some(event.seq) {
                self.failure.set("full".into()).unwrap();
            } else {
                self.kept.lock().unwrap().push(event);
                self.committed.store(committed, Ordering::SeqCst);
            }
            let waker = self.waker.lock().unwrap().clone();
            waker.into_iter().for_each(Waker::wake);
        }
    }

    pub(super) fn committed_now(&self) -> u64 {
        self.committed.load(Ordering::SeqCst)
    }

    pub(super) fn has_failed(&self) -> bool {
        self.failure.get().is_some()
    }
}

impl Record for Disk {
    fn position(&self) -> Position {
        Position::default()
    }

    fn append(&self, event: &AgentEvent) {
        self.queue.lock().unwrap().push_back(event.clone());
        self.filled.notify_one();
    }

    fn committed(&self) -> u64 {
        self.committed_now()
    }

    fn failure(&self) -> Option<Arc<str>> {
        self.failure.get().cloned()
    }

    fn watch(&self, waker: Waker) {
        *self.waker.lock().unwrap() = Some(waker);
    }

    fn read(&self, from: u64, through: u64) -> BoxFuture<'static, Page> {
        let kept = self.kept.lock().unwrap();
        let events = kept.iter().filter(|event| (from..=through).contains(&event.seq)).cloned().collect();
        Box::pin(std::future::ready(Page { events, through }))
    }
}
