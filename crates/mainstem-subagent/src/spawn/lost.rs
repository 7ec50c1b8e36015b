//! Children of an earlier process whose turns were cut off, and whose specs say that they go on.

use std::sync::Arc;

use mainstem_event::EventKind;
use mainstem_message::{AgentKey, BlockId, Message};
use mainstem_model::ModelRequest;
use mainstem_react::RunContext;

use crate::{
    error::SpawnError,
    member::Member,
    spawn::report::{Handover, Report},
};

/// What such a child reads.
const GO_ON: &str = "The process that ran you has ended. Go on with your task where it stopped. A call that was cut off may \
have done part of its work.";

/// What its parent reads.
const OPEN: &str = "<system-reminder>\nThe process that ran these subagents has ended. Those with a task_id go on where they \
stopped, as background tasks: do not start them again, and do not tell them to go on.";
const CLOSE: &str = "</system-reminder>";

impl Member {
    /// Lets the children of this agent go on that are [to be resumed](mainstem_spec::OnLost), each
    /// as a background task, and says so to the model.
    ///
    /// In a run whose calls never leave a child in the background, the model decides.
    pub(crate) async fn resume_lost(&self, cx: &RunContext, request: &mut ModelRequest) {
        if self.options.force_sync {
            return;
        }
        let mut hint = String::new();
        for key in self.fleet.roster.take_lost(cx.session_id()) {
            let report = self.resume_one(cx, &key).await;
            let line = report.map_or_else(
                |error| format!("agent_key: {key}\nstatus: error\nerror: {error}"),
                |report| report.text(),
            );
            hint.push_str(&format!("\n\n{line}"));
        }
        if !hint.is_empty() {
            let (block_id, hint) =
                (BlockId::from_lossy(cx.new_id("resumed-")), format!("{OPEN}{hint}\n{CLOSE}"));
            request.messages.push(Arc::new(Message::user(hint.clone())));
            cx.emit(EventKind::HintBlock { block_id, hint_source: "resumed".into(), hint });
        }
    }

    async fn resume_one(&self, cx: &RunContext, key: &AgentKey) -> Result<Report, SpawnError> {
        self.check_task_limit(cx)?;
        let child =
            self.relaunch(&cx.clone().unawaited().with_separate_usage(), key, GO_ON.to_owned(), None)?;
        Box::pin(self.hand_over(cx, child, Handover::Accepted)).await
    }
}
