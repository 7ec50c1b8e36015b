//! stdout on a thread: a slow or stalled reader delays the run, but not signals, limits and the
//! clock.

use std::{io, thread};

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};

/// The most pieces that wait for the reader.
const WAITING: usize = 64;

/// The writer to stdout. Each piece is written and flushed at once. Dropping it leaves the thread
/// to its current write.
#[derive(Debug)]
pub(crate) struct Stdout {
    pieces: mpsc::Sender<Bytes>,
    /// How writing ended; taken once.
    result: Option<oneshot::Receiver<io::Result<()>>>,
}

impl Stdout {
    /// Starts the thread that writes to `writer`.
    ///
    /// # Errors
    /// The system refuses a thread.
    pub(crate) fn start(writer: impl io::Write + Send + 'static) -> io::Result<Self> {
        let (pieces, waiting) = mpsc::channel(WAITING);
        let (sender, result) = oneshot::channel();
        thread::Builder::new().name("stdout".to_owned()).spawn(move || {
            // The receiver is dropped when the process exits.
            let _ = sender.send(write_all(waiting, writer));
        })?;
        Ok(Self { pieces, result: Some(result) })
    }

    /// Waits for room for a piece, if there is one, and for the end of writing.
    ///
    /// # Errors
    /// Writing failed, for example because the reader closed the pipe. The failure is noticed at
    /// the next write.
    pub(crate) async fn room(&mut self, is_wanted: bool) -> io::Result<mpsc::OwnedPermit<Bytes>> {
        tokio::select! {
            biased;
            error = ended(&mut self.result) => {
                Err(error.err().unwrap_or_else(|| io::Error::other("it is closed")))
            }
            Ok(room) = self.pieces.clone().reserve_owned(), if is_wanted => Ok(room),
        }
    }

    /// Waits until everything is written.
    ///
    /// # Errors
    /// Writing failed.
    pub(crate) async fn finish(mut self) -> io::Result<()> {
        drop(self.pieces);
        ended(&mut self.result).await
    }
}

/// Waits for the end of writing; returns its error once.
async fn ended(result: &mut Option<oneshot::Receiver<io::Result<()>>>) -> io::Result<()> {
    let Some(receiver) = result else { return Ok(()) };
    let ended = receiver.await.unwrap_or(Ok(()));
    *result = None;
    ended
}

/// Writes the pieces that are ready, flushes, and waits for more.
fn write_all(mut waiting: mpsc::Receiver<Bytes>, mut writer: impl io::Write) -> io::Result<()> {
    while let Some(piece) = waiting.blocking_recv() {
        writer.write_all(&piece)?;
        while let Ok(piece) = waiting.try_recv() {
            writer.write_all(&piece)?;
        }
        writer.flush()?;
    }
    Ok(())
}
