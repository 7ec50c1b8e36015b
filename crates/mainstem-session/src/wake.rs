//! Beginning a turn because a background task has ended.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{Run, RunOptions, Session};

/// What happens when a background task of the root ends and no run is active.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the agent is told later, or now")]
pub enum OnTaskFinished {
    /// The next turn begins with it.
    #[default]
    Tell,
    /// The session begins a turn of its own, without input, with the options of its last run. The
    /// turn is driven by the session's task set and read by [subscribers](Session::subscribe_from);
    /// [`Session::active`] stops it. A session that was dropped is not woken.
    Wake,
}

/// Whether and how the session begins turns by itself.
#[derive(Debug, Default)]
pub(crate) struct Wake {
    when: OnTaskFinished,
    /// Of its last run; watched from the first run on.
    last: Mutex<Option<RunOptions>>,
}

impl Wake {
    pub(crate) fn new(when: OnTaskFinished) -> Self {
        Self { when, last: Mutex::default() }
    }

    fn last(&self) -> MutexGuard<'_, Option<RunOptions>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Session {
    /// Remembers how the session is run, and looks out for the ends of its tasks if it is to be
    /// woken by them.
    pub(crate) fn look_out(&self, options: &RunOptions) {
        let wake = self.wake();
        if wake.when == OnTaskFinished::Wake && wake.last().replace(options.clone()).is_none() {
            let (session, mut ends) = (Arc::downgrade(&self.0), self.task_set().ends());
            self.task_set().drive(async move {
                while ends.changed().await.is_ok() {
                    let Some(session) = session.upgrade() else { return };
                    Self(session).wake_up().await;
                }
            });
        }
    }

    /// A turn of its own, if there is something to tell once no other turn is active.
    async fn wake_up(&self) {
        let turn = self.turns().take().await;
        let Some(options) = self.wake().last().clone() else { return };
        // Whether it plans may have changed since.
        let options = RunOptions { plan_mode: None, ..options };
        if self.fleet_of().has_news(self.id(), &self.history()).await {
            let run = Run::new(self.clone(), Vec::new(), options, turn);
            // Why it failed is in the log, as everything else is.
            let _ = run.reply().await;
        }
    }
}
