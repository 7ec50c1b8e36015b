//! The rows of the tree as text: a fold of the events, without a terminal.

use std::collections::HashMap;

use mainstem::message::{AgentKey, ToolState};
use mainstem_event::{
    AgentEvent, EventKind, FleetState, Outcome, Timestamp,
    fleet::{AgentState, ContextFill, Phase, ToolActivity},
};
use serde_json::Value;

use super::rows::{Place, places};
use crate::progress::{
    figures,
    glyphs::Glyphs,
    names::{Name, Names},
};

/// The most characters of an answer.
const ANSWER: usize = 80;

/// A line of the tree.
#[derive(Debug, PartialEq)]
pub(crate) enum Entry {
    Agent(Row),
    /// So many agents that have ended well.
    Ended {
        count: usize,
        depth: usize,
    },
}

/// An agent as text.
#[derive(Debug, PartialEq)]
pub(crate) struct Row {
    /// `None` is the root.
    pub(crate) key: Option<AgentKey>,
    /// 0 is the root.
    pub(crate) depth: usize,
    pub(crate) name: Name,
    /// `None` while it runs.
    pub(crate) outcome: Option<Outcome>,
    pub(crate) is_asking: bool,
    /// Whether it runs in the background.
    pub(crate) is_in_background: bool,
    pub(crate) time: String,
    pub(crate) tokens: String,
    /// Its activity; once it has ended, the beginning of its answer, or how it ended.
    pub(crate) activity: String,
    /// The line that it is writing.
    pub(crate) text: Option<String>,
}

/// A failure that the agent is recovering from.
#[derive(Clone, Debug)]
enum Trouble {
    /// A tool failed; shown until the model's next output.
    Tool(String),
    /// A model call failed; shown until the next one yields output.
    Model(String),
}

/// A turn of an agent.
#[derive(Clone, Debug)]
struct Invocation {
    started_at: Timestamp,
    tokens: u64,
}

/// The tree.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    glyphs: Glyphs,
    fleet: FleetState,
    names: Names,
    /// The current or last invocation of each agent.
    invocations: HashMap<Option<AgentKey>, Invocation>,
    /// The last failure, until the next activity.
    troubles: HashMap<Option<AgentKey>, Trouble>,
    /// The beginnings of answers.
    answers: HashMap<Option<AgentKey>, String>,
    /// What the run has cost, in millionths of a dollar, once it has ended.
    cost: Option<u64>,
    /// What the turns of each agent have cost that have ended, with its children; `None` if the
    /// cost of one is unknown.
    costs: HashMap<Option<AgentKey>, Option<u64>>,
}

impl Tree {
    pub(crate) fn new(glyphs: Glyphs) -> Self {
        let (fleet, names) = (FleetState::default(), Names::default());
        let (invocations, troubles, answers) = (HashMap::new(), HashMap::new(), HashMap::new());
        let costs = HashMap::new();
        Self { glyphs, fleet, names, invocations, troubles, answers, cost: None, costs }
    }

    pub(crate) fn event(&mut self, event: &AgentEvent) {
        self.fleet.apply(event);
        self.names.event(event);
        self.trouble(event);
        self.invocation(event);
        match &event.kind {
            EventKind::AgentResult { result } if !event.is_root() => {
                let answer = self.glyphs.short(&result.text(), ANSWER);
                self.answers.insert(event.agent_key().cloned(), answer);
            }
            EventKind::AgentEnd { usage, .. } => {
                let cost = usage.inclusive_cost;
                let sum = self.costs.entry(event.agent_key().cloned()).or_insert(Some(0));
                *sum = sum.zip(cost).map(|(sum, cost)| sum.saturating_add(cost));
                if event.is_root() {
                    self.cost = cost;
                }
            }
            _ => {}
        }
    }

    /// Returns what the turns of an agent have cost that have ended, with its children, in
    /// millionths of a dollar; `None` if that is unknown or nothing.
    pub(crate) fn cost_of(&self, agent: Option<&AgentKey>) -> Option<u64> {
        self.costs.get(&agent.cloned()).copied().flatten().filter(|cost| *cost > 0)
    }

    /// Counts the usage of the current invocation; its end event has the exact usage.
    fn invocation(&mut self, event: &AgentEvent) {
        let invocation = self
            .invocations
            .entry(event.agent_key().cloned())
            .or_insert(Invocation { started_at: event.at, tokens: 0 });
        match &event.kind {
            EventKind::AgentStart { .. } => *invocation = Invocation { started_at: event.at, tokens: 0 },
            EventKind::ModelCallEnd { usage: Some(usage), .. } => invocation.tokens += usage.total_tokens(),
            EventKind::AgentEnd { usage, .. } => invocation.tokens = usage.own.total_tokens(),
            _ => {}
        }
    }

    fn trouble(&mut self, event: &AgentEvent) {
        use EventKind::*;
        let key = || event.agent_key().cloned();
        match &event.kind {
            ToolResultEnd { tool_call_name, state: ToolState::Error, .. } => {
                let trouble = format!("{} {tool_call_name} failed", self.glyphs.failed);
                self.troubles.insert(key(), Trouble::Tool(trouble));
            }
            RateLimitWait { limit, ahead, wait_ms, .. } => {
                let waits = figures::rate_limit(*limit, *wait_ms, *ahead);
                self.troubles.insert(key(), Trouble::Model(waits));
            }
            RateLimitPassed { .. } => _ = self.troubles.remove(&key()),
            ModelRetry { wait_ms, error, .. } => {
                let (wait, warning) = (figures::time(*wait_ms), self.glyphs.warning);
                let trouble = format!("{warning} next attempt in {wait}: {}", error.message);
                self.troubles.insert(key(), Trouble::Model(trouble));
            }
            ModelCallEnd { .. } => _ = self.troubles.remove(&key()),
            TextBlockStart { .. } | ThinkingBlockStart { .. } | ToolCallStart { .. } => {
                if let Some(Trouble::Model(_)) = self.troubles.get(&key()) {
                    self.troubles.remove(&key());
                }
            }
            _ => {}
        }
    }

    /// Returns how many agents there are, their tokens, and once it is known what they have cost.
    pub(crate) fn totals(&self) -> Vec<String> {
        let cost = self.cost.filter(|cost| *cost > 0).map(figures::cost);
        let agents = figures::agents(self.fleet.agents.len());
        [agents, figures::tokens(self.fleet.usage.total_tokens())].into_iter().chain(cost).collect()
    }

    /// Returns the state of every agent.
    pub(crate) fn fleet(&self) -> &FleetState {
        &self.fleet
    }

    /// Returns how the root ended.
    pub(crate) fn outcome(&self) -> Option<Outcome> {
        self.fleet.root().and_then(|root| root.outcome)
    }

    /// Returns the lines of the tree, each agent below its parent. If there are more than `most`,
    /// agents that have ended well are counted instead.
    pub(crate) fn entries(&self, now: Timestamp, most: usize) -> Vec<Entry> {
        let entry = |place| match place {
            Place::Agent { agent, depth } => Entry::Agent(self.row(agent, depth, now)),
            Place::Ended { count, depth } => Entry::Ended { count, depth },
        };
        places(&self.fleet, most).into_iter().map(entry).collect()
    }

    /// Returns an agent as text, as of its last event.
    pub(crate) fn row_of(&self, agent: &AgentState) -> Row {
        self.row(agent, 0, self.fleet.at)
    }

    fn row(&self, agent: &AgentState, depth: usize, now: Timestamp) -> Row {
        let until = agent.ended_at.unwrap_or(now);
        let Name { id, about } = self.names.of(agent.source.as_ref());
        let name = Name { id: self.glyphs.line(&id), about: self.glyphs.line(&about) };
        let invocation = self.invocations.get(&agent.key().cloned());
        let (started_at, tokens) =
            invocation.map_or((agent.started_at, 0), |one| (one.started_at, one.tokens));
        // The root's text stands below the tree.
        let is_talking = match agent.phase {
            Phase::Thinking => true,
            Phase::Speaking => agent.source.is_some(),
            _ => false,
        };
        let text = is_talking.then(|| self.last_line(agent)).filter(|line| !line.is_empty());
        Row {
            key: agent.key().cloned(),
            depth,
            name,
            outcome: agent.outcome,
            is_asking: agent.phase == Phase::Asking,
            is_in_background: agent.task().is_some(),
            time: figures::time(until.millis_since(started_at)),
            tokens: match agent.context.map_or(0, ContextFill::percent) {
                0..50 => figures::tokens(tokens),
                percent => format!("{}, {percent}% full", figures::tokens(tokens)),
            },
            activity: self.glyphs.line(&self.activity(agent, now)),
            text,
        }
    }

    /// Returns the last line of the agent's text, which may be incomplete.
    fn last_line(&self, agent: &AgentState) -> String {
        let text = self.glyphs.text(&agent.last_line);
        text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default().trim().to_owned()
    }

    fn activity(&self, agent: &AgentState, now: Timestamp) -> String {
        if let Some(outcome) = agent.outcome {
            let answer = self.answers.get(&agent.key().cloned()).filter(|answer| !answer.is_empty());
            if let Some(answer) = answer.filter(|_| outcome == Outcome::Success) {
                return answer.clone();
            }
            let (_, word) = self.glyphs.ending(outcome);
            let error = agent.error.as_ref().filter(|_| outcome != Outcome::Cancelled);
            return error.map_or_else(|| word.to_owned(), |error| format!("{word}: {}", error.message));
        }
        if !agent.tools.is_empty() && agent.phase == Phase::Acting {
            return self.acting(agent, now);
        }
        if let Some(Trouble::Tool(trouble) | Trouble::Model(trouble)) =
            self.troubles.get(&agent.key().cloned())
        {
            return trouble.clone();
        }
        let word = match agent.phase {
            Phase::Asking => "needs input",
            Phase::Thinking => "thinks",
            Phase::Compacting => "compacts its conversation",
            Phase::Speaking => "writes",
            _ => "waits for its model",
        };
        word.to_owned()
    }

    /// Returns the children that it waits for, or else its running tools.
    fn acting(&self, agent: &AgentState, now: Timestamp) -> String {
        let own = agent.source.as_ref().map(|source| &source.session_id).or(self.fleet.session_id.as_ref());
        let is_child =
            |other: &&AgentState| other.source.as_ref().map(|source| &source.parent_session_id) == own;
        let is_awaited = |other: &&AgentState| other.task() == agent.task();
        match self.fleet.running().filter(is_child).filter(is_awaited).count() {
            0 => {
                let first = agent.tools.first().map(|tool| self.tool(tool, now)).unwrap_or_default();
                let others = agent.tools.len().saturating_sub(1);
                if others > 0 { format!("{first} +{others}") } else { first }
            }
            children => match self.queued(agent) {
                0 => format!("waits for {}", figures::agents(children)),
                queued => format!("waits for {}, {queued} queued", figures::agents(children)),
            },
        }
    }

    /// Returns how many children its running calls have not started yet.
    fn queued(&self, agent: &AgentState) -> usize {
        let queued = |tool: &ToolActivity| {
            let called = match &*tool.name {
                "agent_spawn" => 1,
                "agent_fanout" => tool.input["spawns"].as_array().map_or(0, Vec::len),
                _ => 0,
            };
            let is_its = |other: &&AgentState| {
                let call = other.source.as_ref().and_then(|source| source.parent_tool_call_id.as_ref());
                call == Some(&tool.tool_call_id)
            };
            called.saturating_sub(self.fleet.agents.iter().filter(is_its).count())
        };
        agent.tools.iter().map(queued).sum()
    }

    /// Returns a call with its time: `search "Paris" (2.1s)`.
    fn tool(&self, tool: &ToolActivity, now: Timestamp) -> String {
        let texts = tool.input.as_object().into_iter().flat_map(|input| input.values());
        let argument = texts.filter_map(Value::as_str).find(|text| !text.is_empty());
        let argument =
            argument.map(|text| format!(" \"{}\"", self.glyphs.short(text, 30))).unwrap_or_default();
        let age = figures::time(now.millis_since(tool.started_at));
        format!("{}{argument} ({age})", tool.name)
    }
}

#[cfg(test)]
mod tests;
