//! How a run ended: why it was stopped, what stdout gets last, the exit code, and what to say about it.

use std::{future::pending, io};

use anyhow::anyhow;
use bytes::Bytes;
use mainstem::{message::Failure, react::RunOutcome};
use mainstem_event::Outcome;
use tokio::time::sleep;

use super::drive::Drive;
use crate::{
    args,
    exit::{self, Exit, Fault},
    output::Ending,
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
}

impl Stop {
    /// Whether the run is not even asked to end.
    pub(super) fn is_at_once(&self) -> bool {
        matches!(self, Self::Stdout(_) | Self::Record(_))
    }

    pub(super) fn note(&self, agents: usize) -> String {
        let agents = format!("cancelling {agents} agent{}…", if agents == 1 { "" } else { "s" });
        match self {
            Self::Signal(Signal::Interrupt) => format!("{agents} press Ctrl-C again to abort"),
            Self::Timeout => format!("{agents} the time is up"),
            Self::Signal(Signal::Terminate) | Self::Stdout(_) | Self::Record(_) => agents,
        }
    }

    pub(super) fn exit(&self, args: &args::Run) -> Result<Exit, Fault> {
        let (exit, error) = match self {
            Self::Signal(signal) => return Ok(signal.exit()),
            Self::Stdout(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(Exit::ClosedPipe),
            Self::Stdout(error) => (Exit::Failed, anyhow!("stdout can't be written to: {error}")),
            Self::Record(error) => (Exit::Failed, anyhow!("the record can't be written to: {error}")),
            Self::Timeout => {
                let time = humantime::format_duration(args.timeout.unwrap_or_default());
                (Exit::Timeout, anyhow!("there was no reply within {time}"))
            }
        };
        Err(Fault { exit, error })
    }
}

impl Drive {
    /// Writes the last of the result, and says how it all ended.
    pub(super) async fn finish(self, args: &args::Run) -> Result<Exit, Fault> {
        let outcome = self.handle.outcome().await;
        let exit = match &self.stop {
            Some(stop) => stop.exit(args),
            None => self.exit(args, outcome.as_ref()),
        };
        if matches!(self.stop, Some(Stop::Stdout(_))) {
            return exit;
        }
        let (last, is_stopped) = (self.last_piece(args, outcome.as_ref()), self.stop.is_some());
        match self.write_rest(last, args).await {
            Err(stop) if !is_stopped => stop.exit(args),
            _ => exit,
        }
    }

    fn exit(&self, args: &args::Run, outcome: Option<&RunOutcome>) -> Result<Exit, Fault> {
        let failed = &self.ledger.borrow().failed;
        let exit = exit::of_outcome(outcome, args.strict_children && !failed.is_empty());
        // Its message says all there is to say; the causes behind it only repeat it.
        let why = outcome.and_then(|outcome| outcome.error.as_ref()).map(ToString::to_string);
        exit::told(exit, why, failed)
    }

    fn last_piece(&self, args: &args::Run, outcome: Option<&RunOutcome>) -> Option<Bytes> {
        let ledger = self.ledger.borrow();
        let ended = outcome.map_or(Outcome::Cancelled, |outcome| outcome.outcome);
        self.output.end(&Ending {
            run_id: self.handle.id().as_str(),
            outcome: if matches!(self.stop, Some(Stop::Timeout)) { Outcome::Timeout } else { ended },
            reply: outcome.and_then(|outcome| outcome.answer.as_deref()),
            error: outcome.and_then(|outcome| outcome.error.as_ref()).map(Failure::from),
            cost: outcome.and_then(|outcome| outcome.usage.inclusive_cost),
            fleet: &ledger.fleet,
            diagnostics: args.diagnostics.then(|| self.handle.diagnostics()),
        })
    }

    /// Waits for a slow reader; of a run that was stopped, no longer than its agents were waited for.
    async fn write_rest(self, last: Option<Bytes>, args: &args::Run) -> Result<(), Stop> {
        let Self { queue, mut stdout, mut signals, stop, .. } = self;
        let writing = async {
            for piece in queue.into_iter().chain(last) {
                stdout.room(true).await?.send(piece);
            }
            stdout.finish().await
        };
        let patience = async {
            match stop {
                Some(_) => sleep(args.grace).await,
                None => pending().await,
            }
        };
        tokio::select! {
            biased;
            written = writing => written.map_err(Stop::Stdout),
            signal = signals.next() => Err(Stop::Signal(signal)),
            () = patience => Ok(()),
        }
    }
}
