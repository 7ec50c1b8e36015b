//! How far foreground work may be ahead of the caller, in events and in bytes.

use std::sync::atomic::Ordering;

use crate::{AgentEvent, EventKind, log::sync::AtomicU64};

/// The most events that a producer emits when its turn comes, before it queues again. A wake-up
/// touches all of a producer's memory, so one that brings several events costs less for each.
const BATCH: u64 = 16;

/// Written under the log's lock, read without it.
pub(super) struct Ahead {
    /// How many events may be ahead.
    buffer: AtomicU64,
    /// How many bytes of content may be ahead.
    buffer_bytes: u64,
    /// The number that the caller reads next; `u64::MAX` without a caller.
    caller: AtomicU64,
    /// The bytes that the caller has not read yet.
    bytes: AtomicU64,
}

impl Ahead {
    pub(super) fn new(buffer: usize, buffer_bytes: usize) -> Self {
        Self {
            buffer: AtomicU64::new(buffer.max(1) as u64),
            buffer_bytes: buffer_bytes.max(1) as u64,
            caller: AtomicU64::new(u64::MAX),
            bytes: AtomicU64::new(0),
        }
    }

    pub(super) fn set_buffer(&self, events: usize) {
        self.buffer.store(events.max(1) as u64, Ordering::Relaxed);
    }

    /// Begins with a caller that reads `next` next, or without one.
    pub(super) fn reset(&self, next: Option<u64>) {
        self.caller.store(next.unwrap_or(u64::MAX), Ordering::Release);
        self.bytes.store(0, Ordering::Release);
    }

    /// Notes an event that was appended.
    pub(super) fn appended(&self, event: &AgentEvent) {
        let bytes = bytes(event);
        if bytes > 0 && self.caller.load(Ordering::Acquire) != u64::MAX {
            self.bytes.store(self.bytes.load(Ordering::Acquire) + bytes, Ordering::Release);
        }
    }

    /// Notes that the caller has got an event.
    pub(super) fn read(&self, event: &AgentEvent) {
        self.passed(event.seq);
        let bytes = bytes(event);
        if bytes > 0 {
            let left = self.bytes.load(Ordering::Acquire).saturating_sub(bytes);
            self.bytes.store(left, Ordering::Release);
        }
    }

    /// Notes that the caller has passed a number.
    pub(super) fn passed(&self, seq: u64) {
        self.caller.store(seq + 1, Ordering::Release);
    }

    /// Returns the number of events that the caller has not read yet.
    fn events(&self, head: u64) -> u64 {
        head.saturating_sub(self.caller.load(Ordering::Acquire).saturating_sub(1))
    }

    /// Returns `true` if a producer that has the log to itself up to the event `until` may go on.
    pub(super) fn has_room(&self, head: u64, until: u64) -> bool {
        let buffer = self.buffer.load(Ordering::Relaxed);
        (head < until || self.events(head) < buffer) && self.bytes.load(Ordering::Acquire) < self.buffer_bytes
    }

    fn batch(&self) -> u64 {
        (self.buffer.load(Ordering::Relaxed) / 4).clamp(1, BATCH)
    }

    /// Returns `true` if the caller has read all events. Without a caller, it is always `true`.
    pub(super) fn is_empty(&self, head: u64) -> bool {
        self.events(head) == 0
    }

    /// Returns `true` if there is room for a batch beside the batches of `woken` producers, or if
    /// all events are read and no producer is woken: then no later read wakes one.
    pub(super) fn has_room_for_batch(&self, head: u64, woken: usize) -> bool {
        let planned = self.batch().saturating_mul(woken as u64 + 1);
        let events = self.events(head);
        let fits = events.saturating_add(planned) <= self.buffer.load(Ordering::Relaxed)
            && self.bytes.load(Ordering::Acquire) < self.buffer_bytes;
        fits || (events == 0 && woken == 0)
    }

    /// Returns the event up to which a batch reaches that begins now.
    pub(super) fn end_of_batch(&self, head: u64) -> u64 {
        let (caller, batch) = (self.caller.load(Ordering::Acquire), self.batch());
        let most = caller.saturating_add(self.buffer.load(Ordering::Relaxed));
        head.min(most).saturating_add(batch)
    }
}

/// Returns the bytes of content of an event, if its producer waits for the caller.
fn bytes(event: &AgentEvent) -> u64 {
    let is_foreground = event.source().is_none_or(|source| source.task_id.is_none());
    let content = match &event.kind {
        EventKind::TextBlockDelta { delta, .. }
        | EventKind::ThinkingBlockDelta { delta, .. }
        | EventKind::DataBlockDelta { delta, .. }
        | EventKind::ToolCallDelta { delta, .. }
        | EventKind::ToolResultTextDelta { delta, .. } => delta.len(),
        _ => 0,
    };
    if is_foreground { content as u64 } else { 0 }
}
