//! The lines of a response that streams.

use std::{pin::Pin, time::Duration};

use bytes::{Buf, Bytes, BytesMut};
use futures_util::{Stream, StreamExt};
use mainstem_api::Error;
use memchr::memchr;
use reqwest::Response;
use tokio::time::timeout;

use crate::connection::Connection;

/// The longest line of a stream, in bytes; a server cuts larger events.
pub(crate) const MAX_LINE: usize = 4 << 20;

/// How long a server may send nothing: it sends a blank line every 15 s.
const SILENCE: Duration = Duration::from_secs(60);

/// The lines of a response; blank ones, which keep the connection alive, are skipped.
pub(crate) struct Lines {
    body: Pin<Box<dyn Stream<Item = reqwest::Result<Bytes>> + Send>>,
    buffer: BytesMut,
    /// How much of the buffer has no end of a line.
    scanned: usize,
}

impl Lines {
    pub(crate) fn of(response: Response) -> Self {
        Self { body: response.bytes_stream().boxed(), buffer: BytesMut::new(), scanned: 0 }
    }

    /// Waits for a line, which is the next one again until it is [removed](Self::remove); `None` if
    /// the connection was lost or is silent. Dropping the wait loses nothing.
    ///
    /// # Errors
    /// A line is longer than [`MAX_LINE`].
    pub(crate) async fn next(&mut self, connection: &Connection) -> Result<Option<&[u8]>, Error> {
        let end = loop {
            if let Some(end) = self.end() {
                break end;
            }
            if self.buffer.len() > MAX_LINE {
                let reason = format!("a line of the stream is longer than {MAX_LINE} bytes");
                return Err(connection.invalid(reason));
            }
            match timeout(SILENCE, self.body.next()).await {
                Ok(Some(Ok(bytes))) => self.buffer.extend_from_slice(&bytes),
                Ok(Some(Err(_)) | None) | Err(_) => return Ok(None),
            }
        };
        Ok(Some(&self.buffer[..end]))
    }

    /// Removes the line that is next.
    pub(crate) fn remove(&mut self) {
        if let Some(end) = self.end() {
            self.buffer.advance(end + 1);
            self.scanned = 0;
        }
    }

    /// Returns the length of the next line, without its end.
    fn end(&mut self) -> Option<usize> {
        loop {
            let Some(end) = memchr(b'\n', &self.buffer[self.scanned..]) else {
                self.scanned = self.buffer.len();
                return None;
            };
            self.scanned += end;
            if !self.buffer[..self.scanned].trim_ascii().is_empty() {
                return Some(self.scanned);
            }
            self.buffer.advance(self.scanned + 1);
            self.scanned = 0;
        }
    }
}
