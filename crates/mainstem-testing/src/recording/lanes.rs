//! What each agent does, without what differs between two runs that are the same.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    mem,
};

use base64::{Engine, prelude::BASE64_STANDARD};
use mainstem::session::data_id;
use mainstem_event::{AgentEvent, EventKind, Timestamp};
use mainstem_message::{BlockId, ReplyId, ToolCallId};
use serde_json::{Map, Value, json};

use super::{cast::is_of_harness, script::key_of};

/// The fields that differ between two runs: times, ids, and what a service reports or costs.
const IGNORED: [&str; 22] = [
    "seq",
    "id",
    "sessionId",
    "runId",
    "createdAt",
    "source",
    "rootId",
    "replyId",
    "metadata",
    "durationMs",
    "blockId",
    "confirmId",
    "modelName",
    "contextWindow",
    "rateLimits",
    "settings",
    "specVersion",
    "spec",
    "role",
    "rule",
    "maxIters",
    "opaque",
];

/// One step of an agent.
#[derive(Clone, Debug)]
pub(super) struct Step {
    /// For people.
    pub(super) line: String,
    /// All that is compared.
    pub(super) fields: Value,
}

/// Returns the steps of each instance, by its key, and of each task.
pub(super) fn lanes(events: &[AgentEvent]) -> BTreeMap<String, Vec<Step>> {
    let discarded = Discarded::of(events);
    let mut lanes: BTreeMap<String, Lane> = BTreeMap::new();
    for event in events {
        let name = match &event.kind {
            EventKind::TaskUpdated { task_id, .. } => format!("task {task_id}"),
            EventKind::MessageSent { agent_key, .. } => format!("messages to {agent_key}"),
            kind if is_of_the_service(kind) || discarded.has(event) => continue,
            _ => key_of(event).to_owned(),
        };
        lanes.entry(name).or_default().push(event);
    }
    lanes.into_iter().map(|(key, lane)| (key, lane.finish())).collect()
}

/// Returns `true` for what a model's service or the application reports, which is not played.
fn is_of_the_service(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::RateLimitWait { .. }
            | EventKind::RateLimitPassed { .. }
            | EventKind::ModelRetry { .. }
            | EventKind::ModelFallback { .. }
            | EventKind::StreamFallback { .. }
            | EventKind::RunCancelled { .. }
            | EventKind::Custom { .. }
    )
}

/// What failed attempts of model calls have said.
#[derive(Default)]
struct Discarded<'a> {
    blocks: HashSet<(Option<&'a ReplyId>, &'a BlockId)>,
    calls: HashSet<(Option<&'a ReplyId>, &'a ToolCallId)>,
}

impl<'a> Discarded<'a> {
    fn of(events: &'a [AgentEvent]) -> Self {
        let mut all = Self::default();
        for event in events {
            match &event.kind {
                EventKind::TextBlockEnd { block_id, discarded: true, .. }
                | EventKind::ThinkingBlockEnd { block_id, discarded: true, .. }
                | EventKind::DataBlockEnd { block_id, discarded: true, .. } => {
                    all.blocks.insert((event.reply_id(), block_id));
                }
                EventKind::ToolCallEnd { tool_call_id, discarded: true, .. } => {
                    all.calls.insert((event.reply_id(), tool_call_id));
                }
                EventKind::ModelRetry { discarded, .. } | EventKind::ModelFallback { discarded, .. } => {
                    all.blocks.extend(discarded.blocks.iter().map(|block| (event.reply_id(), block)));
                    all.calls.extend(discarded.tool_calls.iter().map(|call| (event.reply_id(), call)));
                }
                _ => {}
            }
        }
        all
    }

    fn has(&self, event: &AgentEvent) -> bool {
        let block = block_of(&event.kind).is_some_and(|id| self.blocks.contains(&(event.reply_id(), id)));
        block || call_of(&event.kind).is_some_and(|id| self.calls.contains(&(event.reply_id(), id)))
    }
}

fn block_of(kind: &EventKind) -> Option<&BlockId> {
    use EventKind as Kind;
    match kind {
        Kind::TextBlockStart { block_id }
        | Kind::TextBlockDelta { block_id, .. }
        | Kind::TextBlockEnd { block_id, .. }
        | Kind::ThinkingBlockStart { block_id }
        | Kind::ThinkingBlockDelta { block_id, .. }
        | Kind::ThinkingBlockEnd { block_id, .. }
        | Kind::DataBlockStart { block_id, .. }
        | Kind::DataBlockDelta { block_id, .. }
        | Kind::DataBlockEnd { block_id, .. } => Some(block_id),
        _ => None,
    }
}

/// Returns the call that an event of a model's answer, or of a result, is about.
fn call_of(kind: &EventKind) -> Option<&ToolCallId> {
    use EventKind as Kind;
    match kind {
        Kind::ToolCallStart { tool_call_id, .. }
        | Kind::ToolCallDelta { tool_call_id, .. }
        | Kind::ToolCallEnd { tool_call_id, .. } => Some(tool_call_id),
        kind => result_of(kind),
    }
}

/// Returns the call that an event of a result is about: those of a batch come in any order.
fn result_of(kind: &EventKind) -> Option<&ToolCallId> {
    use EventKind as Kind;
    match kind {
        Kind::ToolResultStart { tool_call_id, .. }
        | Kind::ToolResultTextDelta { tool_call_id, .. }
        | Kind::ToolResultDataDelta { tool_call_id, .. }
        | Kind::ToolResultEnd { tool_call_id, .. } => Some(tool_call_id),
        Kind::RequireUserConfirm { tool_calls, .. } | Kind::RequireExternalExecution { tool_calls, .. } => {
            tool_calls.first().map(|call| &call.id)
        }
        Kind::UserConfirmResult { confirm_results, .. } => {
            confirm_results.first().map(|result| &result.tool_call.id)
        }
        Kind::ExternalExecutionResult { tool_results } => {
            tool_results.first().map(|result| &result.tool_call_id)
        }
        _ => None,
    }
}

#[derive(Default)]
struct Lane {
    steps: Vec<Step>,
    /// The results of the open batch, by the order of their calls.
    batch: Vec<(usize, Step)>,
    order: HashMap<ToolCallId, usize>,
    calls: usize,
    /// The calls whose results tell when something happened.
    of_harness: HashSet<String>,
}

impl Lane {
    fn push(&mut self, event: &AgentEvent) {
        let step = Step::of(event);
        if let EventKind::ToolCallStart { tool_call_id, tool_call_name } = &event.kind {
            self.calls += 1;
            self.order.insert(tool_call_id.clone(), self.calls);
            if is_of_harness(tool_call_name) {
                self.of_harness.insert(tool_call_id.to_string());
            }
        }
        match result_of(&event.kind) {
            Some(call) => self.batch.push((self.order.get(call).copied().unwrap_or(usize::MAX), step)),
            None => {
                self.close_batch();
                self.add(step);
            }
        }
    }

    fn close_batch(&mut self) {
        let mut batch = mem::take(&mut self.batch);
        batch.sort_by_key(|(order, _)| *order);
        batch.into_iter().for_each(|(_, step)| self.add(step));
    }

    fn add(&mut self, step: Step) {
        // Whether a call that is cancelled before it says anything began depends on microseconds.
        let is_call = |step: &Step| step.fields["type"] == "MODEL_CALL_START";
        let is_cancelled = step.fields["stopReason"] == "cancelled";
        if is_cancelled && self.steps.pop_if(|last| is_call(last)).is_some() {
            return;
        }
        let is_joined = self.steps.last_mut().is_some_and(|last| last.join(&step));
        if !is_joined {
            self.steps.push(step);
        }
    }

    fn finish(mut self) -> Vec<Step> {
        self.close_batch();
        for Step { fields, .. } in &mut self.steps {
            let call = fields["toolCallId"].as_str().is_some_and(|call| self.of_harness.contains(call));
            if let (true, Some(Value::String(text))) = (call, fields.get_mut("delta")) {
                *text = without_times(text);
            }
        }
        self.steps
    }
}

impl Step {
    fn of(event: &AgentEvent) -> Self {
        let mut fields = serde_json::to_value(event).unwrap_or_default();
        if let Some(fields) = fields.as_object_mut() {
            fields.retain(|name, _| !IGNORED.contains(&name.as_str()));
            if let EventKind::AgentEnd { .. } = event.kind {
                fields.remove("usage");
            }
            // Tasks that end in one millisecond have no order.
            if fields.get("hintSource").and_then(Value::as_str) == Some("task_delivery")
                && let Some(Value::String(hint)) = fields.get_mut("hint")
            {
                let mut lines: Vec<_> = hint.lines().collect();
                lines.sort_unstable();
                *hint = lines.join("\n");
            }
            for messages in ["input", "result", "message"] {
                fields.get_mut(messages).map(without_ids);
            }
            fields.values_mut().for_each(with_data_by_its_hash);
        }
        Self { line: event.kind.to_string(), fields }
    }

    /// Adds a further delta of the same block, call or result; returns whether it is one.
    fn join(&mut self, next: &Self) -> bool {
        let (Some(fields), Some(more)) = (self.fields.as_object_mut(), next.fields.as_object()) else {
            return false;
        };
        let is_delta = fields.contains_key("delta") && same_but(fields, more, "delta");
        if let (true, Some(Value::String(text)), Some(more)) =
            (is_delta, fields.get_mut("delta"), more.get("delta").and_then(Value::as_str))
        {
            text.push_str(more);
        }
        is_delta
    }
}

fn same_but(one: &Map<String, Value>, other: &Map<String, Value>, but: &str) -> bool {
    one.len() == other.len() && one.iter().all(|(name, value)| name == but || other.get(name) == Some(value))
}

/// Replaces each time in a text.
fn without_times(text: &str) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || [':', '.', '-'].contains(&c);
    let word = |word: &str| {
        let time = word.trim_end_matches(|c| !is_part(c));
        let is_time = time.ends_with('Z') && time.contains('T') && time.parse::<Timestamp>().is_ok();
        if is_time { word.replace(time, "TIME") } else { word.to_owned() }
    };
    text.split_inclusive(|c| !is_part(c)).map(word).collect()
}

/// Replaces data in a message by its hash, as a session that is recorded refers to it: one of the
/// two runs may be in memory.
fn with_data_by_its_hash(value: &mut Value) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(with_data_by_its_hash),
        Value::Object(fields) => match fields.get("base64").and_then(Value::as_str) {
            Some(digits) if fields.len() == 1 => {
                if let Ok(bytes) = BASE64_STANDARD.decode(digits) {
                    *value = json!({ "stored": { "sha256": data_id(&bytes), "bytes": bytes.len() } });
                }
            }
            _ => fields.values_mut().for_each(with_data_by_its_hash),
        },
        _ => {}
    }
}

/// Removes the ids and times of messages.
fn without_ids(value: &mut Value) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(without_ids),
        Value::Object(fields) => {
            for name in ["id", "createdAt", "opaque"] {
                fields.remove(name);
            }
        }
        _ => {}
    }
}
