//! Which of a vendor's own tools an agent's model gets.

use futures_util::future::BoxFuture;
use mainstem_model::{ModelOptions, ModelRequest};
use mainstem_policy::{Effect, RuleSet, Rules};
use mainstem_react::{AgentError, Answer, Middleware, NextModel, RunContext};
use serde_json::json;

use crate::member::Member;

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
            && let Some(options) = member.narrowed(&request.options)
        {
            request.options = options.into();
        }
        next.run(cx, request)
    }
}

impl Member {
    /// Returns the options without the server tools that are left out; `None` if all stay.
    fn narrowed(&self, options: &ModelOptions) -> Option<ModelOptions> {
        let tools = options.server_tools.as_ref()?;
        let free: Vec<_> = tools.iter().filter(|tool| self.may_call_freely(tool)).cloned().collect();
        (free.len() < tools.len()).then(|| {
            let mut options = options.clone();
            options.server_tools = Some(free);
            options
        })
    }

    /// Returns `true` if all rules allow every call of a server tool. It changes nothing on this
    /// machine, so plan mode allows it, too. What its calls are about can't be checked: a rule
    /// about some of them is about all.
    fn may_call_freely(&self, tool: &str) -> bool {
        let is_free = |rules: &Rules| {
            let of_tool =
                rules.layers().flat_map(RuleSet::rules).filter(|rule| rule.pattern.is_about_tool(tool));
            let is_narrowed = of_tool.into_iter().any(|rule| rule.effect != Effect::Allow);
            !is_narrowed && rules.decide(tool, &json!({}), true).effect == Effect::Allow
        };
        self.rules().all(is_free)
    }
}
