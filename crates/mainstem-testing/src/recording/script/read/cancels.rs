//! Which cancel of a person the end of an agent tells of.

use mainstem_event::{AgentEvent, Timestamp};
use mainstem_message::{Failure, TaskId};

use super::{Act, Reader, key_of};

/// An instance, as a cancel names it.
pub(super) struct Named {
    /// Its label, or its agent's id.
    pub(super) name: String,
    /// The key of its parent.
    pub(super) parent: String,
}

impl Reader {
    /// Reads the end of an agent that was cancelled.
    pub(super) fn cancelled(&mut self, event: &AgentEvent, error: Option<&Failure>) -> Result<(), String> {
        let key = key_of(event);
        self.script.cancelled.insert(key.to_owned());
        let at = *self.cancelled_at.get_or_insert(event.at);
        let code = error.map(|error| error.code.as_str());
        let message = error.map(|error| error.message.as_str()).unwrap_or_default();
        match (code, message.strip_prefix("cancelled by the user")) {
            (Some("cancelled_by_user"), Some(how)) if event.is_root() => {
                let how = how.strip_prefix(" (").and_then(|how| how.strip_suffix(')')).map(str::to_owned);
                self.is_running = false;
                self.act(at, Act::CancelRun { how, with_tasks: self.with_tasks });
            }
            // A run that is cancelled leaves its tasks, unless they are cancelled with it.
            (Some("cancelled_by_user"), Some(_))
                if event.source().is_some_and(|source| source.task_id.is_some()) =>
            {
                self.cancel_tasks();
            }
            (Some("agent_cancelled"), Some(rest)) => return self.cancel_subtree(at, key, rest),
            (Some("task_cancelled"), Some(rest)) => return self.cancel_task(at, rest),
            _ if event.is_root() => return Err(format!("the run was {message}")),
            _ => {}
        }
        Ok(())
    }

    fn cancel_tasks(&mut self) {
        self.with_tasks = self.is_running;
        if !self.is_running {
            let runs = self.script.acts.iter_mut().rev().find_map(|(_, act)| match act {
                Act::CancelRun { with_tasks, .. } => Some(with_tasks),
                _ => None,
            });
            runs.into_iter().for_each(|with_tasks| *with_tasks = true);
        }
    }

    /// Cancels the agent that a message names: that of this key, or one above it. Each end in its
    /// subtree repeats the cancel, which then has no effect.
    fn cancel_subtree(&mut self, at: Timestamp, key: &str, rest: &str) -> Result<(), String> {
        let name = between(rest, "(agent `", "` and all below it)").unwrap_or_default();
        let mut top = key;
        while let Some(named) = self.named.get(top) {
            if named.name == name {
                let key = top.to_owned();
                self.act(at, Act::Cancel { key });
                return Ok(());
            }
            top = &named.parent;
        }
        Err(format!("a person has cancelled agent `{name}`, which is not above it"))
    }

    fn cancel_task(&mut self, at: Timestamp, rest: &str) -> Result<(), String> {
        let id = between(rest, "(task `", "`)").unwrap_or_default();
        let task =
            id.parse::<TaskId>().map_err(|error| format!("it was cancelled with task `{id}`: {error}"))?;
        let by = rest.split(" (task `").next().unwrap_or_default();
        self.act(at, Act::CancelTask { task, by: format!("the user{by}") });
        Ok(())
    }
}

/// Returns what is between the last `open` of a text and `close`, with which the text ends.
fn between<'a>(text: &'a str, open: &str, close: &str) -> Option<&'a str> {
    text.rsplit_once(open)?.1.strip_suffix(close)
}
