//! Encoding: one frame to the bytes that a server sends.

use std::{fmt::Write, iter, time::Duration};

use bytes::Bytes;

use crate::SseEvent;

/// One frame to be sent: an event, a comment that keeps the connection alive, or both.
///
/// Any values encode to exactly one frame, so text from outside can't forge a field: every line of
/// `data` and of a comment gets its own field name (hence `\r\n` and `\r` reach the reader as
/// `\n`), and characters that an event type or id can't have are left out.
///
/// ```
/// use mainstem_sse::Frame;
///
/// assert_eq!(Frame::data("two\nlines").encode(), "data: two\ndata: lines\n\n");
/// assert_eq!(Frame::comment("ping").encode(), ": ping\n\n");
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[must_use = "a frame is only sent once it is encoded"]
pub struct Frame<'a> {
    comment: Option<&'a str>,
    id: Option<&'a str>,
    event: Option<&'a str>,
    retry: Option<Duration>,
    data: Option<&'a str>,
}

impl<'a> Frame<'a> {
    /// Creates a frame that dispatches an event with this data, which may be empty.
    pub fn data(data: &'a str) -> Self {
        Self { data: Some(data), ..Self::default() }
    }

    /// Creates a frame without an event: readers ignore it, proxies see traffic.
    pub fn comment(comment: &'a str) -> Self {
        Self { comment: Some(comment), ..Self::default() }
    }

    /// Sets the event type. Line breaks are left out; an empty one means `message`.
    pub fn with_event(self, event: &'a str) -> Self {
        Self { event: Some(event), ..self }
    }

    /// Sets the last event id of the connection. Line breaks and NUL are left out; an empty one
    /// unsets it.
    pub fn with_id(self, id: &'a str) -> Self {
        Self { id: Some(id), ..self }
    }

    /// Asks the reader to wait this long before it reconnects, in whole milliseconds.
    pub fn with_retry(self, retry: Duration) -> Self {
        Self { retry: Some(retry), ..self }
    }

    /// Adds a comment before the fields.
    pub fn with_comment(self, comment: &'a str) -> Self {
        Self { comment: Some(comment), ..self }
    }

    /// Returns the frame as bytes, with its final blank line. Cheap to clone for many readers.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let mut out = String::with_capacity(self.size_hint());
        for line in self.comment.into_iter().flat_map(lines) {
            field(&mut out, "", [line]);
        }
        if let Some(id) = self.id {
            field(&mut out, "id", id.split(['\r', '\n', '\0']));
        }
        if let Some(event) = self.event {
            field(&mut out, "event", event.split(['\r', '\n']));
        }
        if let Some(retry) = self.retry {
            // Writing to a `String` can't fail.
            let _ = writeln!(out, "retry: {}", retry.as_millis());
        }
        for line in self.data.into_iter().flat_map(lines) {
            field(&mut out, "data", [line]);
        }
        out.push('\n');
        out.into()
    }

    fn size_hint(&self) -> usize {
        let texts = [self.comment, self.id, self.event, self.data];
        32 + texts.into_iter().flatten().map(|text| text.len() + 8).sum::<usize>()
    }
}

/// Encodes an event as it was received.
impl<'a> From<&'a SseEvent> for Frame<'a> {
    fn from(event: &'a SseEvent) -> Self {
        Self {
            comment: None,
            id: event.id.as_deref(),
            event: Some(&*event.event).filter(|event| *event != "message"),
            retry: event.retry,
            data: Some(&event.data),
        }
    }
}

/// Adds a field, always with a space: a reader removes one, which may be the value's own.
fn field<'a>(out: &mut String, name: &str, value: impl IntoIterator<Item = &'a str>) {
    out.extend([name, ": "]);
    out.extend(value);
    out.push('\n');
}

/// Splits at every line break of the format: `\n`, `\r\n`, `\r`. Yields at least one line.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    iter::from_fn(move || {
        let text = rest.take()?;
        let Some(end) = text.bytes().position(|byte| matches!(byte, b'\n' | b'\r')) else {
            return Some(text);
        };
        let (line, tail) = text.split_at(end);
        rest = tail.strip_prefix("\r\n").or_else(|| tail.get(1..));
        Some(line)
    })
}

#[cfg(test)]
mod tests;
