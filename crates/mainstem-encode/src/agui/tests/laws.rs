//! The laws of AG-UI 1.0, as its official verifier has them (`verifyEvents` of `@ag-ui/client`).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// What is open in a stream.
#[derive(Default)]
struct Open {
    /// The open entities, by their kind, and who opened each.
    entities: BTreeMap<(&'static str, String), Option<String>>,
    /// Who opened an entity, also one that is closed.
    owners: BTreeMap<(&'static str, String), Option<String>>,
    steps: BTreeSet<(Option<String>, String)>,
    subagents: BTreeSet<String>,
    closed: BTreeSet<String>,
}

/// Returns the first law that a stream breaks.
pub(super) fn check(events: &[Value]) -> Result<(), String> {
    let first = events.first().ok_or("the stream is empty")?;
    if first["type"] != "RUN_STARTED" {
        return Err("the first event is RUN_STARTED".into());
    }
    let (last, before) = events.split_last().ok_or("the stream is empty")?;
    let mut open = Open::default();
    for event in &before[1..] {
        open.apply(event)?;
    }
    match last["type"].as_str() {
        Some("RUN_ERROR") => Ok(()),
        Some("RUN_FINISHED")
            if open.entities.is_empty() && open.steps.is_empty() && open.subagents.is_empty() =>
        {
            Ok(())
        }
        Some("RUN_FINISHED") => Err("something is open at the end".into()),
        _ => Err(format!("the last event is {last}")),
    }
}

impl Open {
    fn apply(&mut self, event: &Value) -> Result<(), String> {
        let text = |name: &str| event[name].as_str().map(str::to_owned);
        let (owner, kind) = (text("subagentRunId"), event["type"].as_str().unwrap_or_default());
        let message = text("messageId").unwrap_or_default();
        let call = text("toolCallId").unwrap_or_default();
        match kind {
            "TEXT_MESSAGE_START" => self.open("message", message, owner),
            "TEXT_MESSAGE_CONTENT" => self.go_on("message", message, owner),
            "TEXT_MESSAGE_END" => self.close("message", message, owner),
            "REASONING_START" => self.open("span", message, owner),
            "REASONING_END" => self.close("span", message, owner),
            "REASONING_MESSAGE_START" => self.open("reasoning", message, owner),
            "REASONING_MESSAGE_CONTENT" => self.go_on("reasoning", message, owner),
            "REASONING_MESSAGE_END" => self.close("reasoning", message, owner),
            "TOOL_CALL_START" => {
                let parent = self.owners.get(&("message", text("parentMessageId").unwrap_or_default()));
                if parent.is_some_and(|parent| *parent != owner) {
                    return Err(format!("the call {call} is in a message of another agent"));
                }
                self.open("call", call, owner)
            }
            "TOOL_CALL_ARGS" => self.go_on("call", call, owner),
            "TOOL_CALL_END" => self.close("call", call, owner),
            "STEP_STARTED" => {
                let step = text("stepName").unwrap_or_default();
                self.steps.insert((owner, step)).then_some(()).ok_or_else(|| "a step is open twice".into())
            }
            "STEP_FINISHED" => {
                let step = text("stepName").unwrap_or_default();
                self.steps.remove(&(owner, step)).then_some(()).ok_or_else(|| "no such step is open".into())
            }
            "SUBAGENT_STARTED" => self.start(owner.unwrap_or_default(), text("parentSubagentRunId")),
            "SUBAGENT_FINISHED" | "SUBAGENT_ERROR" => {
                let id = owner.unwrap_or_default();
                self.closed.insert(id.clone());
                self.subagents.remove(&id).then_some(()).ok_or_else(|| format!("{id} is not active"))
            }
            "RUN_STARTED" | "RUN_FINISHED" | "RUN_ERROR" => Err(format!("{kind} is in the middle")),
            "TOOL_CALL_RESULT" | "STATE_SNAPSHOT" | "STATE_DELTA" | "CUSTOM" => Ok(()),
            other => Err(format!("{other} is not expected")),
        }
    }

    fn start(&mut self, id: String, parent: Option<String>) -> Result<(), String> {
        if self.closed.contains(&id) {
            return Err(format!("{id} is reused"));
        }
        if parent
            .as_ref()
            .is_some_and(|parent| !self.subagents.contains(parent) && !self.closed.contains(parent))
        {
            return Err(format!("the parent of {id} has not started"));
        }
        self.subagents.insert(id).then_some(()).ok_or_else(|| "it is active already".into())
    }

    fn open(&mut self, kind: &'static str, id: String, owner: Option<String>) -> Result<(), String> {
        let known = self.owners.entry((kind, id.clone())).or_insert_with(|| owner.clone());
        if *known != owner {
            return Err(format!("{id} is another agent's"));
        }
        let is_open = self.entities.insert((kind, id.clone()), owner).is_some();
        if is_open { Err(format!("{id} is open already")) } else { Ok(()) }
    }

    fn go_on(&self, kind: &'static str, id: String, owner: Option<String>) -> Result<(), String> {
        let opener = self.entities.get(&(kind, id.clone())).ok_or_else(|| format!("{id} is not open"))?;
        if *opener == owner { Ok(()) } else { Err(format!("{id} is another agent's")) }
    }

    fn close(&mut self, kind: &'static str, id: String, owner: Option<String>) -> Result<(), String> {
        self.go_on(kind, id.clone(), owner)?;
        self.entities.remove(&(kind, id));
        Ok(())
    }
}
