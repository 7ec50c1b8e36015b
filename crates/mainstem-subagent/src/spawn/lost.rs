//! Children of an earlier process whose turns were cut off, and whose specs say that they go on.

use std::{collections::HashMap, sync::Arc};

use mainstem_event::{EventKind, TaskStatus};
use mainstem_message::{AgentKey, BlockId, Message};
use mainstem_model::ModelRequest;
use mainstem_react::RunContext;
use mainstem_task::{TaskFilter, TaskRecord};

use crate::{
    error::SpawnError,
    member::Member,
    options::SpawnOptions,
    spawn::{
        launch::check_depth,
        report::{Handover, Report},
    },
};

/// How many turns of a child in a row are cut off before it is given up: it may be what ends
/// processes.
const MOST: u32 = 3;

/// What such a child reads.
const GO_ON: &str = "<system-reminder>\nYour turn was cut off, because a process has ended. Go on with your task where it \
stopped; if it is done, answer with its result. A call that was cut off may have done part of its work.\n</system-reminder>";

/// What its parent reads.
const OPEN: &str = "<system-reminder>\nThe process that ran these subagents has ended. Those with a task_id go on where they \
stopped, as background tasks: do not start them again, and do not tell them to go on.";
const CLOSE: &str = "</system-reminder>";

impl Member {
    /// Lets the children of this agent go on that are [to be resumed](mainstem_spec::OnLost), each
    /// as a background task, and says so to the model.
    ///
    /// In a run that is cancelled, or whose calls never leave a child in the background, the model
    /// decides.
    pub(crate) async fn resume_lost(&self, cx: &RunContext, request: &mut ModelRequest) {
        let is_left_to_model = || self.options.force_sync || cx.is_cancelled();
        let (mut hint, mut cancelled) = (String::new(), None);
        while !is_left_to_model()
            && let Some((key, losses)) = self.fleet.roster.take_lost(cx.session_id())
        {
            if cancelled.is_none() {
                cancelled = Some(self.cancelled_tasks(cx).await);
            }
            let by = cancelled.as_ref().and_then(|cancelled| cancelled.get(&key));
            let said = match by {
                Some(by) => Err(format!("it was cancelled by {by}")),
                None if losses >= MOST => {
                    Err(format!("{losses} processes in a row have ended in its turns, so it is given up"))
                }
                None => self.resume_one(cx, &key).await.map_err(|error| error.to_string()),
            };
            let line = said.map_or_else(
                |why| format!("agent_key: {key}\nstatus: error\nerror: {why}"),
                |report| report.text(),
            );
            hint.push_str(&format!("\n\n{line}"));
        }
        if is_left_to_model() {
            // As it is for another process, which reads of the model call that follows.
            self.fleet.roster.forget_lost(cx.session_id());
        }
        if !hint.is_empty() {
            let block_id = BlockId::from_lossy(cx.new_id("resumed-"));
            let hint = format!("{OPEN}{hint}\n{CLOSE}");
            request.messages.push(Arc::new(Message::user(hint.clone())));
            cx.emit(EventKind::HintBlock { block_id, hint_source: "resumed".into(), hint });
        }
    }

    /// Starts a further turn of a child, for whom it has worked and with what it was not allowed.
    async fn resume_one(&self, cx: &RunContext, key: &AgentKey) -> Result<Report, SpawnError> {
        self.check_task_limit(cx)?;
        check_depth(cx, self.max_depth())?;
        let carried = self.fleet.carried(key).unwrap_or_default();
        if carried.user.as_deref() != cx.user() {
            return Err(SpawnError::OfAnotherUser { key: key.to_string() });
        }
        let rules = self.options.rules.narrowed_by(&carried.options.rules);
        let member = self.with_options(SpawnOptions { rules, ..self.options.clone() });
        let cx = cx.clone().unawaited().with_separate_usage();
        let child = member.relaunch(&cx, key, GO_ON.to_owned(), None)?;
        Box::pin(member.hand_over(&cx, child, Handover::Accepted)).await
    }

    /// Returns which children were cancelled while they had no process, and by whom.
    async fn cancelled_tasks(&self, cx: &RunContext) -> HashMap<AgentKey, String> {
        let tasks = self.fleet.tasks.list(&TaskFilter::of_parent(cx.session_id().clone())).await;
        let tasks = tasks.unwrap_or_else(|error| {
            tracing::warn!(%error, "can't see which subagents were cancelled");
            Vec::new()
        });
        // The latest one of a child counts.
        let latest: HashMap<_, TaskRecord> =
            tasks.into_iter().map(|task| (task.agent_key.clone(), task)).collect();
        let lost = latest.into_iter().filter(|(_, task)| task.status == TaskStatus::Failed);
        lost.filter_map(|(key, task)| Some((key, task.cancel?.by))).collect()
    }
}
