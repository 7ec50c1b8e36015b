//! How a run ended: why it was stopped, the end of the result, the exit code, and the message.

use std::{future::pending, io, time::Duration};

use anyhow::anyhow;
use bytes::Bytes;
use mainstem::{api::RunView, message::StopReason};
use mainstem_event::{CancelReason, Outcome};
use tokio::time::sleep;

use super::drive::Drive;
use crate::{
    args,
    exit::{self, Exit, Fault},
    host::advised,
    output::Ending,
    progress::Progress as _,
    signals::Signal,
};

/// Why a run was stopped.
#[derive(Debug)]
pub(super) enum Stop {
    Signal(Signal),
    Timeout,
    /// stdout can't be written to.
    Stdout(io::Error),
    /// The record can't be written to.
    Record(io::Error),
    /// The server can't be reached; its run may continue.
    Lost(anyhow::Error),
}

impl Stop {
    /// Returns `true` if the run is dropped without a cancel.
    pub(super) fn is_at_once(&self) -> bool {
        matches!(self, Self::Stdout(_) | Self::Record(_))
    }

    /// Returns the reason for its agents; `limit` is that of `--timeout`.
    pub(super) fn reason(&self, limit: Duration) -> CancelReason {
        match self {
            Self::Signal(signal) => signal.reason(),
            Self::Timeout => CancelReason::Timeout { after: limit },
            Self::Stdout(_) | Self::Record(_) | Self::Lost(_) => CancelReason::Dropped,
        }
    }

    pub(super) fn note(&self, agents: usize) -> String {
        let agents = format!("cancelling {agents} agent{}…", if agents == 1 { "" } else { "s" });
        match self {
            Self::Signal(Signal::Interrupt) => format!("{agents} press Ctrl-C again to abort"),
            Self::Timeout => format!("{agents} the time is up"),
            Self::Signal(Signal::Terminate | Signal::Hangup)
            | Self::Stdout(_)
            | Self::Record(_)
            | Self::Lost(_) => agents,
        }
    }

    pub(super) fn exit(self, args: &args::Run) -> Result<Exit, Fault> {
        let (exit, error) = match self {
            Self::Signal(signal) => (signal.exit(), anyhow!("{}", signal.reason())),
            Self::Lost(error) => (Exit::Failed, error),
            Self::Stdout(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(Exit::ClosedPipe),
            Self::Stdout(error) => (Exit::Failed, anyhow!("stdout can't be written to: {error}")),
            Self::Record(error) => (Exit::Failed, anyhow!("the record can't be written to: {error}")),
            Self::Timeout => {
                let time = humantime::format_duration(args.timeout.unwrap_or_default());
                (Exit::Timeout, anyhow!("there was no reply within {time}"))
            }
        };
        Err(Fault::new(exit, error))
    }
}

impl Drive {
    /// Writes the end of the result, and reports how the run ended.
    pub(super) async fn finish(mut self, args: &args::Run) -> Result<Exit, Fault> {
        if matches!(self.stop, Some(Stop::Stdout(_))) {
            return self.exit(args, None);
        }
        let ended = self.ended().await;
        // A run that continues on a server out of reach has no end to report.
        let is_lost = matches!(self.stop, Some(Stop::Lost(_)));
        let last = if is_lost { None } else { self.last_piece(ended.as_ref()) };
        let is_stopped = self.stop.is_some();
        let exit = self.exit(args, ended);
        match self.write_rest(last, is_stopped.then_some(args.grace)).await {
            Err(stop) if !is_stopped => stop.exit(args),
            _ => exit,
        }
    }

    /// Returns how the run ended; `None` if it was dropped, continues, or is out of reach.
    async fn ended(&mut self) -> Option<RunView> {
        if matches!(self.stop, Some(Stop::Lost(_))) {
            return None;
        }
        tokio::select! {
            biased;
            view = self.run.view() => match view {
                Ok(view) => Some(view).filter(|view| view.status.outcome().is_some()),
                Err(error) => {
                    self.stop.get_or_insert(Stop::Lost(advised(error)));
                    None
                }
            },
            signal = self.signals.next() => {
                self.stop.get_or_insert(Stop::Signal(signal));
                None
            }
        }
    }

    fn exit(&mut self, args: &args::Run, ended: Option<RunView>) -> Result<Exit, Fault> {
        if let Some(stop) = self.stop.take() {
            return stop.exit(args);
        }
        let recorder = self.recorder.borrow();
        let is_success = ended.as_ref().is_some_and(|ended| ended.status.outcome() == Some(Outcome::Success));
        if is_success && recorder.stop == Some(StopReason::Length) {
            let note = "warning: the answer reached the limit of its length; it may be incomplete";
            self.progress.note(note);
        }
        let failed = &recorder.failed;
        let exit = exit::of_end(ended.as_ref(), args.strict_children && !failed.is_empty());
        // Its message is complete; the causes behind it repeat it.
        exit::with_message(exit, ended.and_then(|ended| Some(ended.error?.message)), failed)
    }

    fn last_piece(&self, ended: Option<&RunView>) -> Option<Bytes> {
        self.cut.iter().for_each(|cut| self.recorder.borrow_mut().put_before(cut));
        let recorder = self.recorder.borrow();
        let outcome = ended.and_then(|ended| ended.status.outcome()).unwrap_or(Outcome::Cancelled);
        let message = ended.and_then(|ended| ended.message.as_ref());
        // The recorder's has what was said before a cut.
        let said = recorder.replies.get(&None).filter(|_| self.cut.is_some());
        let reply = message.map(|message| said.cloned().unwrap_or_else(|| message.text()));
        self.output.end(&Ending {
            run_id: self.run.id().as_str(),
            outcome: if matches!(self.stop, Some(Stop::Timeout)) { Outcome::Timeout } else { outcome },
            reply,
            stop: recorder.stop.clone(),
            error: ended.and_then(|ended| ended.error.clone()),
            cost: ended.and_then(|ended| ended.usage?.inclusive_cost),
            fleet: &recorder.fleet,
            replies: &recorder.replies,
            partial: &recorder.partial_replies(),
            diagnostics: recorder.diagnostics.clone(),
        })
    }

    /// Waits for a slow reader; after a stopped run, no longer than for its agents.
    async fn write_rest(self, last: Option<Bytes>, timeout: Option<Duration>) -> Result<(), Stop> {
        let Self { queue, mut stdout, mut signals, .. } = self;
        let writing = async {
            for piece in queue.into_iter().chain(last) {
                stdout.room(true).await?.send(piece);
            }
            stdout.finish().await
        };
        let timed_out = async {
            match timeout {
                Some(time) => sleep(time).await,
                None => pending().await,
            }
        };
        tokio::select! {
            biased;
            written = writing => written.map_err(Stop::Stdout),
            signal = signals.next() => Err(Stop::Signal(signal)),
            () = timed_out => Ok(()),
        }
    }
}
