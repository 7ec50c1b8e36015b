//! What may run: decided by plan mode, rules and approval, in this order.

use std::sync::{Arc, PoisonError};

use async_trait::async_trait;
use mainstem_event::{Decision, EventKind, SessionLog};
use mainstem_message::{Message, Role, ToolCall, ToolState};
use mainstem_policy::{Because, Effect, PlanMode, Rules};
use mainstem_react::{Gate, Passing, RunContext};
use mainstem_tool::ToolOutput;
use serde_json::Value;

use crate::{fleet::Fleet, member::Member};

/// Whether a call requires an approval.
enum Ask {
    No,
    /// With the rule that asks, if one does.
    Person(Option<Arc<str>>),
}

#[async_trait]
impl Gate for Fleet {
    async fn pass(&self, cx: &RunContext, call: Passing<'_>) -> Result<Option<Value>, ToolOutput> {
        let member = Member::of(cx).map_err(|error| denied(error.to_string()))?;
        let Ask::Person(rule) = member.must_ask(call)? else { return Ok(None) };
        let asked = ToolCall::new(call.id.clone(), call.name, call.arguments.to_string());
        let edited = match member.ask(cx, asked, rule).await {
            Decision::Allow => None,
            Decision::AllowWith(arguments) => Some(arguments),
            Decision::Deny(reason) => return Err(denied(format!("{} was denied: {reason}", call.name))),
        };
        // The edited arguments under the present rules: a person can't allow what a rule denies, or
        // what plan mode does not run.
        let arguments = edited.as_ref().unwrap_or(call.arguments);
        member.must_ask(Passing { arguments, ..call })?;
        Ok(edited)
    }
}

impl Member {
    /// Returns whether a person has to approve the call; an error if no decision can allow it.
    fn must_ask(&self, call: Passing<'_>) -> Result<Ask, ToolOutput> {
        let plan = self.fleet.plan_mode().check(call.name, call.is_read_only);
        plan.map_err(|refusal| denied(refusal.to_string()))?;
        match self.verdict(call) {
            (Effect::Deny, why) => Err(denied(format!("{} is {why}", call.name))),
            (Effect::Ask, _) => Ok(Ask::Person(self.asking(call))),
            (Effect::Allow, _) => Ok(Ask::No),
        }
    }

    /// Returns the rule that asks about a call, if it is not only that its tool may change
    /// something.
    fn asking(&self, call: Passing<'_>) -> Option<Arc<str>> {
        let decisions = self.rules().map(|rules| rules.decide(call.name, call.arguments, call.is_read_only));
        decisions.filter(|decision| decision.effect == Effect::Ask).find_map(|decision| {
            match decision.because {
                Because::Rule(rule) => Some(rule.pattern.to_string().into()),
                Because::Changes => None,
                _ => Some("default".into()),
            }
        })
    }

    /// Passes a call of an agent that runs elsewhere, as it is or with edited arguments.
    ///
    /// # Errors
    /// Why it must not run.
    pub(crate) async fn pass(&self, cx: &RunContext, mut call: ToolCall) -> Result<ToolCall, String> {
        let arguments = serde_json::from_str(&call.arguments).unwrap_or_default();
        let text = |output: ToolOutput| Message::new(Role::Tool, output.into_parts().0).text();
        let passing = Passing { id: &call.id, name: &call.name, arguments: &arguments, is_read_only: false };
        let Ask::Person(rule) = self.must_ask(passing).map_err(text)? else { return Ok(call) };
        match self.ask(cx, call.clone(), rule).await {
            Decision::Allow => {}
            Decision::AllowWith(edited) => {
                self.must_ask(Passing { arguments: &edited, ..passing }).map_err(text)?;
                call.arguments = edited.to_string();
            }
            Decision::Deny(reason) => return Err(format!("{} was denied: {reason}", call.name)),
        }
        Ok(call)
    }

    /// Returns why a rule denies a call; `None` if none does.
    pub(crate) fn denial(&self, call: &ToolCall, arguments: &Value) -> Option<String> {
        let passing = Passing { id: &call.id, name: &call.name, arguments, is_read_only: false };
        let (effect, why) = self.verdict(passing);
        (effect == Effect::Deny).then(|| format!("{} is {why}", call.name))
    }

    /// Returns the strictest verdict of all rules: rights only narrow.
    fn verdict(&self, call: Passing<'_>) -> (Effect, String) {
        let mut worst = (Effect::Allow, String::new());
        let mut consider = |rules: &Rules| {
            let decision = rules.decide(call.name, call.arguments, call.is_read_only);
            if decision.effect > worst.0 {
                worst = (decision.effect, decision.to_string());
            }
        };
        self.rules().for_each(&mut consider);
        worst
    }

    /// Returns the rules that hold for its calls: the assembly's, which include the root's, those
    /// of the run's caller, and those of each agent down to it.
    pub(crate) fn rules(&self) -> impl Iterator<Item = &Rules> {
        let agents = self.lineage().map(|agent| &agent.entry.rules);
        [&self.assembly.rules, &self.options.rules].into_iter().chain(agents)
    }
}

impl Fleet {
    /// Returns whether the session plans.
    pub fn plan_mode(&self) -> PlanMode {
        *self.plans.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins or ends planning, for all agents of the session: children follow their parents in and
    /// out of it. A change is an event of the session's log.
    pub fn set_plan_mode(&self, mode: PlanMode, log: &SessionLog) {
        // Locked until the event is in the log, so that the last event has the current mode.
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::replace(&mut *plans, mode) != mode {
            log.emit(EventKind::PlanModeChanged { active: mode == PlanMode::On });
        }
    }
}

fn denied(text: String) -> ToolOutput {
    ToolOutput::from(text).with_state(ToolState::Denied)
}
