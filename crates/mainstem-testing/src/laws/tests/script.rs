//! Timelines from a few words: one line an action.

use std::{collections::BTreeMap, sync::Arc};

use mainstem_event::{
    AgentEvent, EventKind, EventSource, Origin, Outcome, Rollup, TaskStatus, Timestamp,
    fold::{BlockKind, Transcript},
};
use mainstem_message::{BlockId, Message, Opaque, Role, StopReason, ToolCall, ToolState, Usage};
use serde_json::Value;

/// Parses lines of `<who> <verb> [<words>]`.
///
/// * `start`, of a child `start <agent> by <caller> <call> [<task>]`: `AGENT_START`
/// * `ask`, `answer <tokens>`: `MODEL_CALL_START`, `MODEL_CALL_END`
/// * `text <word>`, `think <word>`: the delta; a block begins and ends where it must
/// * `call <id>`: `TOOL_CALL_START`, `TOOL_CALL_DELTA`, `TOOL_CALL_END`
/// * `work <id>`, `done <id> [<state>]`: `TOOL_RESULT_START`, `TOOL_RESULT_TEXT_DELTA`;
///   `TOOL_RESULT_END`
/// * `refused <id> …`: `ALL_TOOLS_DENIED`
/// * `ends [<outcome>]`: `AGENT_RESULT` if it is a success, `AGENT_END`
/// * `moves <task>`: none; from here on the agent is in the background
/// * `session task <id> <from> <to>`: `TASK_UPDATED`
///
/// `a+` is `a`, one turn later.
pub(super) fn script(text: &str) -> Timeline {
    let mut script = Script::default();
    for line in text.lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        script.read(&words);
    }
    Timeline(script.lines)
}

/// Events without numbers.
pub(super) struct Timeline(pub(super) Vec<Line>);

#[derive(Clone)]
pub(super) struct Line {
    /// `<who> <event>`, by which tests find it.
    pub(super) name: String,
    pub(super) origin: Origin,
    pub(super) kind: EventKind,
}

impl Timeline {
    /// Returns the events, numbered from 1.
    pub(super) fn events(&self) -> Vec<AgentEvent> {
        let event = |(seq, line): (u64, &Line)| {
            let origin = Arc::new(line.origin.clone());
            AgentEvent::new(seq, Timestamp::from_micros(0), origin, line.kind.clone())
        };
        (1..).zip(&self.0).map(event).collect()
    }
}

#[derive(Default)]
struct Script {
    lines: Vec<Line>,
    agents: BTreeMap<String, Agent>,
    streams: u64,
}

struct Agent {
    origin: Origin,
    caller: Option<String>,
    transcript: Transcript,
    usage: Rollup,
    asked: u32,
    blocks: u32,
}

impl Script {
    fn read(&mut self, words: &[&str]) {
        match *words {
            [] => {}
            ["session", "task", id, from, to] => {
                let (from, to) = (status(from), status(to));
                let kind = EventKind::task_updated(id.parse().unwrap(), from, to);
                self.emit("session", Origin::session("s".parse().unwrap(), None), kind);
            }
            [who, "start", ref by @ ..] => self.start(who, by),
            [who, ref act @ ..] => self.act(who, act),
        }
    }

    fn emit(&mut self, who: &str, origin: Origin, kind: EventKind) {
        self.lines.push(Line { name: format!("{who} {kind}"), origin, kind });
    }

    fn start(&mut self, who: &str, by: &[&str]) {
        let reply = |run: &str| Origin {
            reply_id: Some(format!("reply-{who}").replace('+', "~").parse().unwrap()),
            ..Origin::session("s".parse().unwrap(), Some(run.parse().unwrap()))
        };
        let (origin, caller) = match *by {
            [agent, "by", caller, call, ref task @ ..] => {
                let mut source = self.child(who, agent, caller, call);
                source.task_id = task.first().map_or(source.task_id, |task| Some((*task).parse().unwrap()));
                let source = Some(Arc::new(source));
                (Origin { source, ..reply("run") }, Some(caller.to_owned()))
            }
            _ => (reply(who), None),
        };
        let kind = EventKind::agent_start(who, Role::Assistant, vec![Arc::new(Message::user("go"))])
            .with_parent_tool_call_id(by.get(3).map(|call| (*call).into()));
        let mut transcript = Transcript::new(format!("reply-{who}").replace('+', "~").parse().unwrap());
        transcript.apply(&kind);
        self.emit(who, origin.clone(), kind);
        let agent = Agent { origin, caller, transcript, usage: Rollup::nothing(), asked: 0, blocks: 0 };
        self.agents.insert(who.to_owned(), agent);
    }

    fn child(&mut self, who: &str, agent: &str, caller: &str, call: &str) -> EventSource {
        self.streams += 1;
        let (stream_id, parent_tool_call_id) = (self.streams, Some(call.into()));
        let above = &self.agents[caller].origin;
        let task_id = above.source.as_ref().and_then(|above| above.task_id.clone());
        if let Some(before) = who.strip_suffix('+').and_then(|before| self.agents.get(before)) {
            let before = before.origin.source.as_deref().cloned().unwrap();
            let turn = before.turn + 1;
            return EventSource { turn, stream_id, parent_tool_call_id, task_id, ..before };
        }
        let above = above.source.as_deref();
        let path = above.map_or("s", |above| &*above.path);
        EventSource {
            agent_key: format!("agent:{agent}:{who}").parse().unwrap(),
            agent_id: agent.into(),
            agent_name: None,
            label: None,
            title: None,
            session_id: format!("sub-{who}").parse().unwrap(),
            parent_session_id: above.map_or_else(|| "s".parse().unwrap(), |above| above.session_id.clone()),
            depth: above.map_or(1, |above| above.depth + 1),
            path: format!("{path}/{agent}").into(),
            task_id,
            turn: 1,
            parent_tool_call_id,
            stream_id,
        }
    }

    fn act(&mut self, who: &str, words: &[&str]) {
        let agent = self.agents.get_mut(who).unwrap();
        if let ["moves", task] = *words {
            Arc::make_mut(agent.origin.source.as_mut().unwrap()).task_id = Some(task.parse().unwrap());
        }
        let (kinds, origin) = (agent.act(words), agent.origin.clone());
        let (usage, caller) = (agent.usage, agent.caller.clone());
        kinds.into_iter().for_each(|kind| self.emit(who, origin.clone(), kind));
        if words[0] == "ends"
            && let Some(caller) = caller.and_then(|caller| self.agents.get_mut(&caller))
        {
            caller.usage.add_child(&usage);
        }
    }
}

impl Agent {
    fn act(&mut self, words: &[&str]) -> Vec<EventKind> {
        let mut kinds: Vec<_> = self.close(words[0]).into_iter().collect();
        kinds.extend(self.kinds(words));
        kinds.iter().for_each(|kind| self.transcript.apply(kind));
        kinds
    }

    /// Returns the end of the open block, if the verb is about something else.
    fn close(&self, verb: &str) -> Option<EventKind> {
        let (kind, id) = self.transcript.open_block()?;
        let goes_on = matches!((verb, kind), ("text", BlockKind::Text) | ("think", BlockKind::Thinking));
        (!goes_on && verb != "moves").then(|| kind.end(id.clone(), Opaque::new()))
    }

    fn kinds(&mut self, words: &[&str]) -> Vec<EventKind> {
        use EventKind::*;
        let name = || "tool".into();
        match *words {
            ["moves", _] => vec![],
            ["ask"] => {
                self.asked += 1;
                vec![EventKind::model_call_start("m", self.asked)]
            }
            ["answer", tokens] => {
                let usage = Usage::new(tokens.parse().unwrap(), 1);
                self.usage.add_own(usage, Some(usage.input_tokens));
                vec![EventKind::model_call_end(StopReason::Stop, 0).with_usage(usage)]
            }
            ["text", word] => {
                let (block_id, start) = self.block(BlockKind::Text);
                let start = start.then(|| TextBlockStart { block_id: block_id.clone() });
                start.into_iter().chain([TextBlockDelta { block_id, delta: word.into() }]).collect()
            }
            ["think", word] => {
                let (block_id, start) = self.block(BlockKind::Thinking);
                let start = start.then(|| ThinkingBlockStart { block_id: block_id.clone() });
                start.into_iter().chain([ThinkingBlockDelta { block_id, delta: word.into() }]).collect()
            }
            ["call", id] => vec![
                ToolCallStart { tool_call_id: id.into(), tool_call_name: name() },
                ToolCallDelta { tool_call_id: id.into(), delta: "{}".into() },
                ToolCallEnd {
                    tool_call_id: id.into(),
                    tool_call_name: name(),
                    opaque: Opaque::new(),
                    discarded: false,
                },
            ],
            ["work", id] => vec![
                EventKind::tool_result_start(id, name(), Value::Null),
                ToolResultTextDelta { tool_call_id: id.into(), delta: "ok".into() },
            ],
            ["done", id, ref how @ ..] => {
                let state = match how {
                    ["running"] => ToolState::Running,
                    ["denied"] => ToolState::Denied,
                    _ => ToolState::Success,
                };
                vec![EventKind::tool_result_end(id, name(), state, 0)]
            }
            ["refused", ref ids @ ..] => {
                let denied_tool_calls = ids.iter().map(|id| ToolCall::new(*id, "tool", "{}")).collect();
                vec![AllToolsDenied { denied_tool_calls }]
            }
            ["ends", ref how @ ..] => self.end(how),
            _ => panic!("what is {words:?}?"),
        }
    }

    /// Returns the open block, or a new one.
    fn block(&mut self, kind: BlockKind) -> (BlockId, bool) {
        if let Some((_, id)) = self.transcript.open_block().filter(|(open, _)| *open == kind) {
            return (id.clone(), false);
        }
        self.blocks += 1;
        (format!("b{}", self.blocks).parse().unwrap(), true)
    }

    fn end(&self, how: &[&str]) -> Vec<EventKind> {
        let usage = self.usage;
        let end = |outcome| EventKind::agent_end(outcome, usage, 0);
        if how == ["cancelled"] {
            return vec![end(Outcome::Cancelled)];
        }
        let result = self.transcript.last_answer().unwrap().clone();
        vec![EventKind::AgentResult { result }, end(Outcome::Success)]
    }
}

fn status(word: &str) -> TaskStatus {
    match word {
        "pending" => TaskStatus::Pending,
        "running" => TaskStatus::Running,
        _ => TaskStatus::Completed,
    }
}
