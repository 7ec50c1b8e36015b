//! Events that are hidden from readers until the record has them.

use std::collections::VecDeque;

/// The durable events that are not committed, oldest first.
pub(super) struct Hold {
    /// The first hidden event; [`u64::MAX`] if there is none. Readers stop before it.
    first: u64,
    waiting: VecDeque<u64>,
}

impl Default for Hold {
    fn default() -> Self {
        Self { first: u64::MAX, waiting: VecDeque::new() }
    }
}

impl Hold {
    pub(super) fn first(&self) -> u64 {
        self.first
    }

    /// Returns `true` if the latest event is hidden, so that no reader needs to be woken for it.
    pub(super) fn is_on(&self) -> bool {
        self.first != u64::MAX
    }

    pub(super) fn add(&mut self, seq: u64) {
        self.waiting.push_back(seq);
        self.first = self.first.min(seq);
    }

    /// Applies the record's progress; returns `true` if it reveals further events.
    pub(super) fn pass(&mut self, committed: u64) -> bool {
        let before = self.first;
        while self.waiting.front().is_some_and(|seq| *seq <= committed) {
            self.waiting.pop_front();
        }
        self.first = self.waiting.front().copied().unwrap_or(u64::MAX);
        self.first != before
    }
}
