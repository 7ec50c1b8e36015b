//! The recording of one response.

use std::{collections::BTreeMap, sync::Arc};

use tokio::time::Instant;

use super::{
    exchange::{Chunk, End, TapeRequest},
    router::{LIMIT, Router},
};

/// The index on the tape, if it is recorded. If it is dropped before its end, it is recorded as one
/// that the client left.
pub(super) struct Recording {
    router: Arc<Router>,
    place: Option<usize>,
    what: String,
    last: Instant,
    length: usize,
}

impl Recording {
    pub(super) fn new(router: &Arc<Router>, requested: &TapeRequest) -> Self {
        let place = router.mode.can_record().then(|| router.tape().begin(requested.clone()));
        Self { router: router.clone(), place, what: requested.line(), last: Instant::now(), length: 0 }
    }

    pub(super) fn head(&self, status: u16, headers: BTreeMap<String, String>) {
        if let Some(place) = self.place {
            let mut tape = self.router.tape();
            let response = tape.response(place);
            (response.status, response.headers) = (Some(status), headers);
        }
    }

    pub(super) fn chunk(&mut self, bytes: &[u8]) {
        let Some(place) = self.place else { return };
        self.length += bytes.len();
        if self.length > LIMIT {
            return self.unfit(format!("the response to {}: it is longer than {LIMIT} bytes", self.what));
        }
        let now = Instant::now();
        let waited = now.duration_since(std::mem::replace(&mut self.last, now)).as_millis();
        let chunk = Chunk { ms: u64::try_from(waited).unwrap_or(u64::MAX), bytes: bytes.to_vec() };
        self.router.tape().response(place).chunks.push(chunk);
    }

    pub(super) fn end(&mut self, end: End) {
        if let Some(place) = self.place.take() {
            self.router.tape().end(place, end);
        }
    }

    /// Discards the recording.
    pub(super) fn void(&mut self) {
        if let Some(place) = self.place.take() {
            self.router.tape().void(place);
        }
    }

    /// Discards the recording, and reports why at the end.
    pub(super) fn unfit(&mut self, what: String) {
        if let Some(place) = self.place.take() {
            self.router.tape().unfit(Some(place), what);
        }
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        self.end(End::Left);
    }
}
