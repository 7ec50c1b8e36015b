//! Where a stream goes on after a lost connection, and which of its frames were shown. Pure.
//!
//! The development server gives all frames of a millisecond one id, and may send the frames around
//! a reconnect twice. So a stream goes on after the id before the last one, and what was shown is
//! left out.

use std::{
    collections::hash_map::DefaultHasher,
    hash::{Hash, Hasher},
    sync::Arc,
};

use mainstem_sse::SseEvent;

/// The id that stands before all others.
const BEGINNING: &str = "-1";

/// The most frames of one id that are remembered.
const MAX_FRAMES: usize = 4_096;

/// The position in the stream of one run.
#[derive(Debug, Default)]
pub(super) struct Cursor {
    /// The latest id, and the one before.
    latest: Option<Arc<str>>,
    before: Option<Arc<str>>,
    /// The frames with the latest id, as hashes.
    frames: Vec<u64>,
    is_resumed: bool,
    /// The latest frame that another process has recorded.
    recorded: Option<(u64, u64)>,
}

impl Cursor {
    /// Returns the position of a run whose stream another process has read to this frame.
    pub(super) fn recorded(frame: &str) -> Self {
        let recorded = Some(frame).filter(|frame| !frame.is_empty()).map(position);
        Self { recorded, ..Self::default() }
    }

    /// Returns `true` if another process has recorded all that the frame says. Several frames can
    /// have the id of the latest one.
    pub(super) fn is_recorded(&self, frame: &SseEvent) -> bool {
        let id = frame.id.as_deref().map(position);
        id.zip(self.recorded).is_some_and(|(id, recorded)| id < recorded)
    }

    /// Returns the `Last-Event-ID` of a further request for the stream.
    pub(super) fn resume(&mut self) -> String {
        self.is_resumed = true;
        self.before.as_deref().unwrap_or(BEGINNING).to_owned()
    }

    /// Returns `true` if the frame is new.
    pub(super) fn accept(&mut self, frame: &SseEvent) -> bool {
        let Some(id) = &frame.id else { return true };
        let hash = hash(frame);
        if self.latest.as_ref() == Some(id) {
            let is_known = self.is_resumed && self.frames.contains(&hash);
            if !is_known && self.frames.len() < MAX_FRAMES {
                self.frames.push(hash);
            }
            return !is_known;
        }
        if self.is_resumed && self.latest.as_deref().is_some_and(|latest| position(id) < position(latest)) {
            return false;
        }
        self.before = self.latest.replace(id.clone());
        self.frames = vec![hash];
        true
    }
}

fn hash(frame: &SseEvent) -> u64 {
    let mut hasher = DefaultHasher::new();
    (&frame.event, &frame.data).hash(&mut hasher);
    hasher.finish()
}

/// Reads `<milliseconds>-<number>`, or a number alone.
fn position(id: &str) -> (u64, u64) {
    let (time, number) = id.split_once('-').unwrap_or((id, "0"));
    (time.parse().unwrap_or(u64::MAX), number.parse().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    //! What is shown when a stream goes on.

    use super::*;

    /// Shows which frames are new: `id` and data of each, `!` for a lost connection.
    #[track_caller]
    fn check(frames: &str, shown: &str, resumed_after: &str) {
        let mut cursor = Cursor::default();
        let mut new = Vec::new();
        for frame in frames.split(' ') {
            let Some((id, data)) = frame.split_once('=') else {
                let _ = cursor.resume();
                continue;
            };
            let event = SseEvent {
                event: "messages".into(),
                data: data.to_owned(),
                id: Some(id.into()),
                retry: None,
            };
            if cursor.accept(&event) {
                new.push(data);
            }
        }
        assert_eq!(new.concat(), shown, "{frames}");
        assert_eq!(cursor.resume(), resumed_after, "{frames}");
    }

    #[test]
    fn each_frame_is_shown_once() {
        check("1-0=a 2-0=b", "ab", "1-0");
        check("1-0=a ! 1-0=a 2-0=b", "ab", "1-0");
        check("1-0=a 2-0=b 2-0=c ! 2-0=b 2-0=c 2-0=d 3-0=e", "abcde", "2-0");
        // The live part of a stream that goes on repeats the end of what was stored.
        check("1-0=a ! 1-0=a 2-0=b 3-0=c 2-0=b 3-0=c 4-0=d", "abcd", "3-0");
        // Equal frames of one connection are two.
        check("1-0=a 1-0=a", "aa", "-1");
        check("9=a 10=b ! 9=a 10=b 11=c", "abc", "10");
    }
}
