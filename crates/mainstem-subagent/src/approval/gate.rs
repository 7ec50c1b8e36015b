//! What may run: plan mode, rules, and people, in this order.

use std::sync::PoisonError;

use async_trait::async_trait;
use mainstem_event::{EventKind, SessionLog};
use mainstem_message::{ToolCall, ToolState};
use mainstem_policy::{Effect, PlanMode, Rules};
use mainstem_react::{Gate, Passing, RunContext};
use mainstem_tool::ToolOutput;
use serde_json::Value;

use crate::{fleet::Fleet, member::Member, spawn::lineage::Lineage};
use mainstem_event::Decision;

#[async_trait]
impl Gate for Fleet {
    async fn pass(&self, cx: &RunContext, call: Passing<'_>) -> Result<Option<Value>, ToolOutput> {
        if !self.must_ask(cx, call)? {
            return Ok(None);
        }
        let asked = ToolCall::new(call.id.clone(), call.name, call.arguments.to_string());
        let edited = match self.ask(cx, asked).await {
            Decision::Allow => None,
            Decision::AllowWith(arguments) => Some(arguments),
            Decision::Deny(reason) => return Err(denied(format!("{} was denied: {reason}", call.name))),
        };
        // What a person made of it, and as things are now: a person can't allow what a rule
        // refuses, or what a plan has no place for.
        let arguments = edited.as_ref().unwrap_or(call.arguments);
        self.must_ask(cx, Passing { arguments, ..call })?;
        Ok(edited)
    }
}

impl Fleet {
    /// Whether a person has to allow the call; an error if nobody can.
    fn must_ask(&self, cx: &RunContext, call: Passing<'_>) -> Result<bool, ToolOutput> {
        self.plan_mode()
            .check(call.name, call.is_read_only)
            .map_err(|refusal| denied(refusal.to_string()))?;
        match Self::verdict(cx, call) {
            (Effect::Deny, why) => Err(denied(format!("{} is {why}", call.name))),
            (effect, _) => Ok(effect == Effect::Ask),
        }
    }

    /// The strictest verdict of the run's rules, among them the root's, and those of every agent
    /// down to the caller: rights only narrow.
    fn verdict(cx: &RunContext, call: Passing<'_>) -> (Effect, String) {
        let mut worst = (Effect::Allow, String::new());
        let mut consider = |rules: &Rules| {
            let decision = rules.decide(call.name, call.arguments);
            if decision.effect > worst.0 {
                worst = (decision.effect, decision.to_string());
            }
        };
        Member::of(cx).iter().for_each(|member| consider(&member.crew.rules));
        Lineage::of(cx).for_each(|agent| consider(&agent.entry.rules));
        worst
    }

    /// Returns whether the session plans.
    pub fn plan_mode(&self) -> PlanMode {
        *self.plans.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins or ends planning, for all agents of the session: children follow their parents in and
    /// out of it. A change is an event of the session's log.
    pub fn set_plan_mode(&self, mode: PlanMode, log: &SessionLog) {
        // Held until the event is in the log, so that the last event has the current mode.
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::replace(&mut *plans, mode) != mode {
            log.emit(EventKind::PlanModeChanged { active: mode == PlanMode::On });
        }
    }
}

fn denied(text: String) -> ToolOutput {
    ToolOutput::from(text).with_state(ToolState::Denied)
}
