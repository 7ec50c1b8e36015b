//! Answers as lines of stdin.

use std::{
    io::{self, BufRead},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc as requests,
    },
    thread,
};

use tokio::sync::mpsc;

/// Reads stdin on a separate thread, each line when it is needed: between two lines, an editor may
/// read it.
#[derive(Debug)]
pub(super) struct Lines {
    requests: requests::Sender<()>,
    lines: mpsc::Receiver<Line>,
    is_asked: bool,
}

/// A line that was typed, and the number of the question above it.
#[derive(Debug, PartialEq)]
pub(crate) struct Line {
    pub(super) text: String,
    pub(super) below: u64,
}

impl Line {
    /// Returns the line.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}

impl Lines {
    pub(super) fn start(put: Arc<AtomicU64>) -> Self {
        let (requests, asked) = requests::channel();
        let (sender, lines) = mpsc::channel(1);
        // If the thread can't be started, the closed channel has the effect of the end of stdin.
        // It may wait for a line until the process ends.
        let _ = thread::Builder::new().name("answers".to_owned()).spawn(move || {
            let mut line = Vec::new();
            while asked.recv().is_ok()
                && io::stdin().lock().read_until(b'\n', &mut line).is_ok_and(|read| read > 0)
            {
                // Invalid UTF-8 is replaced, and reading continues.
                let text = String::from_utf8_lossy(&line).trim_end_matches(['\r', '\n']).to_owned();
                line.clear();
                if sender.blocking_send(Line { text, below: put.load(Ordering::Acquire) }).is_err() {
                    return;
                }
            }
        });
        Self { requests, lines, is_asked: false }
    }

    /// Returns the next line; `None` at the end of stdin. If the future is dropped, the next call
    /// returns the line.
    pub(super) async fn next(&mut self) -> Option<Line> {
        if !self.is_asked {
            self.is_asked = self.requests.send(()).is_ok();
        }
        let line = self.lines.recv().await;
        self.is_asked = false;
        line
    }

    /// Returns `true` if the thread waits for a line.
    pub(super) fn is_reading(&self) -> bool {
        self.is_asked
    }
}
