//! Why an invocation is cancelled: by whom, and with which part of the fleet.

use std::{fmt, sync::Arc, time::Duration};

use mainstem_message::{Failure, TaskId};

use crate::Outcome;

/// Why an invocation is cancelled. Set where the cancel begins, and carried to everything that it
/// stops.
///
/// It displays as a sentence for people and models:
///
/// ```
/// use std::time::Duration;
/// use mainstem_event::{CancelReason, Outcome};
///
/// assert_eq!(CancelReason::user("Ctrl-C").to_string(), "cancelled by the user (Ctrl-C)");
/// let timeout = CancelReason::Timeout { after: Duration::from_secs(30) };
/// assert_eq!(timeout.to_string(), "timed out after 30 s");
/// assert_eq!(timeout.outcome(), Outcome::Timeout);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CancelReason {
    /// The user stopped the run.
    User {
        /// By what means, if it is known: `Ctrl-C`, `over HTTP`.
        how: Option<Arc<str>>,
    },
    /// The process received a signal.
    Signal {
        /// Its name, such as `SIGTERM`.
        name: Arc<str>,
    },
    /// One agent is stopped, with all agents below it.
    Subtree {
        /// The agent at the top of the subtree.
        agent: Arc<str>,
        /// Who stopped it, in words.
        by: Arc<str>,
    },
    /// One background task is stopped.
    Task {
        /// The task.
        task: TaskId,
        /// Who stopped it, in words.
        by: Arc<str>,
    },
    /// The time limit was reached.
    Timeout {
        /// The limit.
        after: Duration,
    },
    /// No event arrived for this long.
    Silence {
        /// How long.
        lasted: Duration,
    },
    /// A budget of time is used up.
    Budget {
        /// The budget and its limit.
        why: Arc<str>,
    },
    /// The agent above ran out of time.
    Parent {
        /// The agent.
        agent: Arc<str>,
        /// Why it was stopped.
        reason: Arc<Self>,
    },
    /// The run has ended, and its background tasks are to end with it.
    RunEnded,
    /// The harness shuts down.
    Shutdown,
    /// The session can no longer be recorded: another process may have it.
    Unrecorded,
    /// The stream of the run was dropped.
    Dropped,
}

impl CancelReason {
    /// Returns the reason of a user who stops the run by these means.
    pub fn user(how: impl Into<Arc<str>>) -> Self {
        Self::User { how: Some(how.into()) }
    }

    /// Returns an agent's name in texts about a cancel.
    pub fn agent(name: &str) -> Arc<str> {
        format!("agent `{name}`").into()
    }

    /// Returns the outcome of an invocation that is cancelled for this reason.
    pub fn outcome(&self) -> Outcome {
        match self {
            Self::Timeout { .. } | Self::Silence { .. } | Self::Budget { .. } => Outcome::Timeout,
            _ => Outcome::Cancelled,
        }
    }

    /// Returns a stable word for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::User { .. } => "cancelled_by_user",
            Self::Signal { .. } => "cancelled_by_signal",
            Self::Subtree { .. } => "agent_cancelled",
            Self::Task { .. } => "task_cancelled",
            Self::Timeout { .. } | Self::Silence { .. } | Self::Budget { .. } => "timeout",
            Self::Parent { .. } => "parent_stopped",
            Self::RunEnded => "run_ended",
            Self::Shutdown => "shutdown",
            Self::Unrecorded => "record",
            Self::Dropped => "dropped",
        }
    }

    /// Returns who cancelled, in words that follow "cancelled by".
    pub fn by(&self) -> Arc<str> {
        match self {
            Self::User { how: None } => "the user".into(),
            Self::User { how: Some(how) } => format!("the user ({how})").into(),
            Self::Signal { name } => name.clone(),
            Self::Subtree { by, .. } | Self::Task { by, .. } => by.clone(),
            Self::Timeout { .. } | Self::Silence { .. } | Self::Budget { .. } => "a time limit".into(),
            Self::Parent { agent, .. } => format!("the end of agent `{agent}`").into(),
            Self::RunEnded => "the end of the run".into(),
            Self::Shutdown => "the shutdown of the harness".into(),
            Self::Unrecorded => "the end of the session's record".into(),
            Self::Dropped => "the end of the stream".into(),
        }
    }

    /// Returns the reason for the work below an agent that is stopped for this one: a time limit of
    /// the agent is not a time limit of that work.
    #[must_use]
    pub fn below(self, agent: &Arc<str>) -> Self {
        match self.outcome() {
            Outcome::Timeout => Self::Parent { agent: agent.clone(), reason: Arc::new(self) },
            _ => self,
        }
    }
}

impl fmt::Display for CancelReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Timeout { after } => write!(f, "timed out after {}", Time(*after)),
            Self::Silence { lasted } => write!(f, "timed out: no event for {}", Time(*lasted)),
            Self::Budget { why } => f.write_str(why),
            Self::Parent { agent, reason } => write!(f, "cancelled with agent `{agent}`: {reason}"),
            Self::Dropped => f.write_str("the stream was dropped before the agent had ended"),
            Self::Subtree { agent, by } => write!(f, "cancelled by {by} (agent `{agent}` and all below it)"),
            Self::Task { task, by } => write!(f, "cancelled by {by} (task `{task}`)"),
            _ => write!(f, "cancelled by {}", self.by()),
        }
    }
}

impl From<&CancelReason> for Failure {
    fn from(reason: &CancelReason) -> Self {
        Self::new(reason.code(), reason.to_string())
    }
}

/// A duration in the largest unit that shows it exactly, or in seconds.
struct Time(Duration);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (millis, seconds) = (self.0.as_millis(), self.0.as_secs());
        match () {
            () if millis < 1000 => write!(f, "{millis} ms"),
            () if !millis.is_multiple_of(1000) => write!(f, "{:.1} s", self.0.as_secs_f64()),
            () if seconds < 60 || !seconds.is_multiple_of(60) => write!(f, "{seconds} s"),
            () => write!(f, "{} min", seconds / 60),
        }
    }
}

#[cfg(test)]
mod tests;
