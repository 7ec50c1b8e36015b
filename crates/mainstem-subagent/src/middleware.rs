//! The middleware that makes an agent one of a fleet.

use std::sync::Arc;

use async_trait::async_trait;
use mainstem_event::EventKind;
use mainstem_message::{BlockId, Message, StopReason};
use mainstem_model::ModelRequest;
use mainstem_policy::PlanMode;
use mainstem_react::{AgentError, Answer, Middleware, NextModel, RunContext};
use mainstem_tool::{Tool, unless};

use crate::{
    catalog::prompt::{PLANNING, fleet_section, skills_section},
    delivery::Told,
    member::Member,
    spawn::inbox::Inbox,
    tools::{self, task_list},
};

/// Makes an agent one of a fleet: gives it tools for its children and their background tasks, and
/// lists the agents that it can spawn. The next model call has the messages that others have sent
/// it and the ends of its tasks.
///
/// That needs a [`Fleet`](crate::Fleet) in the run's context
/// ([`Fleet::enter`](crate::Fleet::enter)); without one the tools return an error.
#[derive(Clone, Debug, Default)]
pub struct Subagents {
    /// All of them if absent.
    only: Option<Vec<String>>,
    has_files: bool,
}

impl Subagents {
    /// Creates it with all tools.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates it with the tools of these names. Without any, the agent can still be steered.
    pub fn only(names: impl IntoIterator<Item = String>) -> Self {
        Self { only: Some(names.into_iter().collect()), has_files: false }
    }

    /// Sets whether the agent works with files; its prompt then says which others see them.
    #[must_use]
    pub fn with_files(mut self, has_files: bool) -> Self {
        self.has_files = has_files;
        self
    }

    fn gives(&self, tool: &str) -> bool {
        self.only.as_ref().is_none_or(|names| names.iter().any(|name| name == tool))
    }
}

#[async_trait]
impl Middleware for Subagents {
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let special = tools::special().filter(|_| self.only.is_some());
        let given = tools::all().chain(special).filter(|(name, _)| self.gives(name));
        given.map(|(_, tool)| tool.clone()).collect()
    }

    fn system_prompt(&self, cx: &RunContext) -> Option<String> {
        let member = Member::of(cx).ok()?;
        let Member { fleet, assembly, .. } = member;
        let spawns = self.gives("agent_spawn") || self.gives("agent_fanout");
        let plans = fleet.plan_mode() == PlanMode::On;
        let reads = self.only.is_some() && self.gives(tools::LOAD_SKILL);
        let whom = spawns.then(|| fleet_section(&assembly.catalog, self.has_files));
        let skills = if reads { skills_section(member.skills()) } else { None };
        let sections = [whom, skills, plans.then(|| PLANNING.to_owned())];
        let sections: Vec<_> = sections.into_iter().flatten().collect();
        (!sections.is_empty()).then(|| sections.join("\n\n"))
    }

    async fn state(&self, cx: &RunContext) -> Option<String> {
        let member = Member::of(cx).ok()?;
        let children = member.fleet.roster.list(Some(cx.session_id()));
        let tasks = task_list::open(cx, member).await;
        let children: Vec<_> =
            children.iter().filter_map(|child| serde_json::to_string(child).ok()).collect();
        let section = |head: &str, lines: Vec<String>| {
            (!lines.is_empty()).then(|| format!("{head}\n{}", lines.join("\n")))
        };
        let sections = [section("Your subagents:", children), section("Your background tasks:", tasks)];
        let sections: Vec<_> = sections.into_iter().flatten().collect();
        (!sections.is_empty()).then(|| sections.join("\n\n"))
    }

    async fn on_model_call(
        &self,
        cx: &RunContext,
        mut request: ModelRequest,
        next: NextModel<'_>,
    ) -> Result<Answer, AgentError> {
        let Ok(member) = Member::of(cx) else { return next.run(cx, request).await };
        if cx.purpose().is_some() {
            return next.run(cx, request).await;
        }
        let fleet = &member.fleet;
        let inbox = fleet.roster.inbox(cx.agent_key());
        member.resume_lost(cx, &mut request).await;
        loop {
            hand_in(cx, &inbox, &mut request);
            let told = fleet.deliver(cx, &mut request).await.unwrap_or_else(|error| {
                tracing::error!(%error, "can't see which tasks have ended");
                Told::default()
            });
            let said = cx.with_transcript(|transcript| transcript.messages().len());
            let Some(answer) = unless(inbox.interrupted(), next.run(cx, request.clone())).await else {
                // The interrupted answer stays, and the new messages come after it.
                cx.close(&StopReason::Cancelled);
                cx.with_transcript(|transcript| {
                    request.messages.extend_from_slice(&transcript.messages()[said..])
                });
                continue;
            };
            let answer = answer?;
            fleet.mark_delivered(cx, &told).await;
            let is_last = answer.message.tool_calls().next().is_none();
            if !is_last || inbox.is_empty() && !member.finish_tasks(cx, &request).await {
                return Ok(answer);
            }
            if !answer.message.content.is_empty() {
                request.messages.push(answer.message);
            }
        }
    }
}

/// Adds the messages that others have sent to the conversation and to the request.
fn hand_in(cx: &RunContext, inbox: &Inbox, request: &mut ModelRequest) {
    for message in inbox.take() {
        let block_id = BlockId::from_lossy(cx.new_id("message-"));
        cx.emit(EventKind::HintBlock { block_id, hint_source: "message".into(), hint: message.text() });
        request.messages.push(Arc::new(Message::user(message.text())));
    }
}
