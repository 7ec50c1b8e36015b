//! Which of a vendor's own tools an agent's model gets.

use futures_util::future::BoxFuture;
use mainstem_message::ToolCallId;
use mainstem_model::{ModelOptions, ModelRequest};
use mainstem_policy::Effect;
use mainstem_react::{AgentError, Answer, Middleware, NextModel, Passing, RunContext};
use serde_json::json;

use crate::member::Member;

/// The server tools that only read.
const READ_ONLY: [&str; 1] = ["web_search"];

/// Leaves out the server tools that the agent may not call freely: the vendor runs a call while the
/// model answers, so no person can approve it first.
pub(crate) struct ServerTools;

impl Middleware for ServerTools {
    fn on_model_call<'life0, 'life1, 'life2, 'async_trait>(
        &'life0 self,
        cx: &'life1 RunContext,
        mut request: ModelRequest,
        next: NextModel<'life2>,
    ) -> BoxFuture<'async_trait, Result<Answer, AgentError>>
    where
        'life0: 'async_trait,
        'life1: 'async_trait,
        'life2: 'async_trait,
        Self: 'async_trait,
    {
        if let Ok(member) = Member::of(cx)
            && request.options.server_tools.iter().any(|tool| !member.may_call_freely(tool))
        {
            let mut options = ModelOptions::clone(&request.options);
            options.server_tools.retain(|tool| member.may_call_freely(tool));
            request.options = options.into();
        }
        next.run(cx, request)
    }
}

impl Member {
    /// Returns `true` if the session's mode and all rules allow a call of a server tool.
    fn may_call_freely(&self, tool: &str) -> bool {
        let (id, arguments) = (ToolCallId::new(tool), json!({}));
        let is_read_only = READ_ONLY.contains(&tool);
        let call = Passing { id: &id, name: tool, arguments: &arguments, is_read_only };
        self.fleet.plan_mode().check(tool, is_read_only).is_ok() && self.verdict(call).0 == Effect::Allow
    }
}
