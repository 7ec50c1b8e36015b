//! One answer while it is being recorded.

use std::{collections::BTreeMap, sync::Arc};

use tokio::time::Instant;

use super::{
    deck::{Deck, LIMIT},
    exchange::{Asked, Chunk, End},
};

/// Its place on the tape, if it has one. Dropped before its end, it is recorded as one that the
/// client left.
pub(super) struct Take {
    deck: Arc<Deck>,
    place: Option<usize>,
    what: String,
    last: Instant,
    length: usize,
}

impl Take {
    pub(super) fn new(deck: &Arc<Deck>, asked: &Asked) -> Self {
        let place = deck.mode.records().then(|| deck.tape().begin(asked.clone()));
        Self { deck: deck.clone(), place, what: asked.line(), last: Instant::now(), length: 0 }
    }

    pub(super) fn head(&self, status: u16, headers: BTreeMap<String, String>) {
        if let Some(place) = self.place {
            let mut tape = self.deck.tape();
            let answer = tape.answer(place);
            (answer.status, answer.headers) = (Some(status), headers);
        }
    }

    pub(super) fn chunk(&mut self, bytes: &[u8]) {
        let Some(place) = self.place else { return };
        self.length += bytes.len();
        if self.length > LIMIT {
            return self.unfit(format!("the answer to {}: it is longer than {LIMIT} bytes", self.what));
        }
        let now = Instant::now();
        let waited = now.duration_since(std::mem::replace(&mut self.last, now)).as_millis();
        let chunk = Chunk { ms: u64::try_from(waited).unwrap_or(u64::MAX), bytes: bytes.to_vec() };
        self.deck.tape().answer(place).chunks.push(chunk);
    }

    pub(super) fn end(&mut self, end: End) {
        if let Some(place) = self.place.take() {
            self.deck.tape().end(place, end);
        }
    }

    /// Nothing to record.
    pub(super) fn void(&mut self) {
        if let Some(place) = self.place.take() {
            self.deck.tape().void(place);
        }
    }

    /// Nothing that can be recorded, which is said at the end.
    pub(super) fn unfit(&mut self, what: String) {
        if let Some(place) = self.place.take() {
            self.deck.tape().unfit(Some(place), what);
        }
    }
}

impl Drop for Take {
    fn drop(&mut self) {
        self.end(End::Left);
    }
}
