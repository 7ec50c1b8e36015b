//! The latest frames of a session, so that an event is encoded once for all readers of one form.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, PoisonError},
};

use bytes::Bytes;

/// The most that a session's frames have in all, in bytes.
const CAPACITY: usize = 256 << 10;

/// The longest frame that is shared. The links in longer ones depend on the reader.
const MAX_FRAME: usize = 64 << 10;

/// A form of frames, and the number of an event.
type Key = (&'static str, u64);

/// The latest frames, of all forms.
#[derive(Debug, Default)]
pub(crate) struct Encoded(Mutex<Latest>);

#[derive(Debug, Default)]
struct Latest {
    frames: HashMap<Key, Bytes>,
    /// Oldest first.
    order: VecDeque<Key>,
    bytes: usize,
}

impl Encoded {
    /// Returns the frame of an event in this form; encodes the event for its first reader.
    pub(crate) fn frame(&self, form: &'static str, seq: u64, encode: impl FnOnce() -> Bytes) -> Bytes {
        if let Some(frame) = self.latest(|latest| latest.frames.get(&(form, seq)).cloned()) {
            return frame;
        }
        let frame = encode();
        self.latest(|latest| latest.insert((form, seq), frame.clone()));
        frame
    }

    fn latest<T>(&self, read: impl FnOnce(&mut Latest) -> T) -> T {
        read(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Latest {
    /// Stores a frame, unless it is older than the newest: a reader that is behind must not
    /// displace the frames of those that are up to date.
    fn insert(&mut self, key: Key, frame: Bytes) {
        let is_old = self.order.back().is_some_and(|newest| key.1 < newest.1);
        if is_old || frame.len() > MAX_FRAME || self.frames.contains_key(&key) {
            return;
        }
        self.bytes += frame.len();
        self.frames.insert(key, frame);
        self.order.push_back(key);
        while self.bytes > CAPACITY
            && let Some(oldest) = self.order.pop_front()
        {
            self.bytes -= self.frames.remove(&oldest).map_or(0, |frame| frame.len());
        }
    }
}

#[cfg(test)]
mod tests {
    //! Which frames are shared.

    use super::*;

    #[test]
    fn an_event_is_encoded_once_for_a_form() {
        let encoded = Encoded::default();
        let frame = |form, seq, bytes: &'static [u8]| encoded.frame(form, seq, || Bytes::from_static(bytes));
        assert_eq!(frame("sse", 1, b"one"), "one");
        assert_eq!(frame("sse", 1, b"another"), "one");
        assert_eq!(frame("ndjson", 1, b"line"), "line");
        assert_eq!(frame("sse", 3, b"three"), "three");
        assert_eq!(frame("sse", 2, b"two"), "two");
        assert_eq!(frame("sse", 2, b"two again"), "two again", "an old event is not held");
    }

    #[test]
    fn what_is_held_is_bounded() {
        let encoded = Encoded::default();
        for seq in 1..=100 {
            encoded.frame("sse", seq, || vec![0; 8 << 10].into());
        }
        encoded.frame("sse", 101, || vec![0; MAX_FRAME + 1].into());
        let (bytes, held) = encoded.latest(|latest| (latest.bytes, latest.frames.len()));
        assert_eq!((bytes, held), (CAPACITY, CAPACITY / (8 << 10)));
        assert!(
            encoded.latest(|latest| latest.order.len() == held && latest.order.front() == Some(&("sse", 69)))
        );
    }
}
