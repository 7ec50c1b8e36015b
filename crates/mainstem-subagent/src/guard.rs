//! What may run: plan mode, rules, and people, in this order.

use std::sync::atomic::Ordering;

use mainstem_message::{ToolCall, ToolState};
use mainstem_policy::{Effect, PlanMode, Rules};
use mainstem_react::{NextTool, PendingCall};
use mainstem_tool::{RunContext, ToolError, ToolOutput};

use crate::{Crew, Fleet, lineage::Lineage, people::Decision};

impl Fleet {
    /// Runs a call, if it may run.
    pub(crate) async fn guarded(
        &self,
        cx: &RunContext,
        mut call: PendingCall,
        next: NextTool<'_>,
    ) -> Result<ToolOutput, ToolError> {
        if let Err(refusal) = self.plan_mode().check(&call.name, next.is_read_only(&call.name)) {
            return Ok(denied(refusal.to_string()));
        }
        if Self::verdict(cx, &call).0 == Effect::Ask {
            let asked = ToolCall::new(call.id.clone(), &*call.name, call.arguments.to_string());
            match self.ask(cx, asked).await {
                Decision::Allow => {}
                Decision::AllowWith(arguments) => call.arguments = arguments,
                Decision::Deny(reason) => return Ok(denied(format!("{} was denied: {reason}", call.name))),
            }
        }
        // Of what a person made of it, too: a person can't allow what a rule refuses.
        match Self::verdict(cx, &call) {
            (Effect::Deny, why) => Ok(denied(format!("{} is {why}", call.name))),
            _ => next.run(cx, call).await,
        }
    }

    /// The strictest verdict of the run's rules, among them the root's, and those of every agent down to the caller: rights only narrow.
    fn verdict(cx: &RunContext, call: &PendingCall) -> (Effect, String) {
        let mut worst = (Effect::Allow, String::new());
        let mut consider = |rules: &Rules| {
            let decision = rules.decide(&call.name, &call.arguments);
            if decision.effect > worst.0 {
                worst = (decision.effect, decision.to_string());
            }
        };
        cx.get::<Crew>().iter().for_each(|crew| consider(&crew.rules));
        Lineage::of(cx).for_each(|agent| consider(&agent.entry.rules));
        worst
    }

    /// Whether the session plans.
    pub fn plan_mode(&self) -> PlanMode {
        if self.plans.load(Ordering::Acquire) { PlanMode::On } else { PlanMode::Off }
    }

    /// Begins or ends planning, for all agents of the session: children follow their parents in and out of it.
    pub fn set_plan_mode(&self, mode: PlanMode) {
        self.plans.store(mode == PlanMode::On, Ordering::Release);
    }
}

fn denied(text: String) -> ToolOutput {
    ToolOutput::from(text).with_state(ToolState::Denied)
}
