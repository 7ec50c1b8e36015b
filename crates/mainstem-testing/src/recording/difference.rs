//! The first difference between a recording and a run.

use std::{collections::BTreeMap, fmt};

use mainstem_event::{AgentEvent, EventKind};
use serde_json::Value;

use super::lanes::{Step, lanes};
use crate::{laws, render};

/// How a run differs from its recording. It displays as what the agent did, then and now.
#[derive(Clone, Debug)]
pub struct Difference {
    text: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Difference {}

pub(super) fn between(recorded: &[AgentEvent], events: &[AgentEvent]) -> Result<(), Difference> {
    if let Some(gap) = events.iter().find(|event| matches!(event.kind, EventKind::Gap { .. })) {
        return Err(Difference { text: format!("the play has lost events: {}", gap.kind) });
    }
    let (then, now) = (lanes(recorded), lanes(events));
    let added = now.keys().filter(|key| !then.contains_key(*key));
    for key in then.keys().chain(added) {
        let steps = |lanes: &BTreeMap<_, Vec<_>>| lanes.get(key).cloned().unwrap_or_default();
        if let Some(text) = of_lane(key, &steps(&then), &steps(&now)) {
            return Err(Difference { text: format!("{text}\n\nthe run:\n{}", render(events)) });
        }
    }
    match laws(events) {
        Ok(()) => Ok(()),
        Err(broken) => Err(Difference { text: format!("{broken}\n\n{}", render(events)) }),
    }
}

fn of_lane(key: &str, then: &[Step], now: &[Step]) -> Option<String> {
    let is_same = |index: usize| match (then.get(index), now.get(index)) {
        (Some(then), Some(now)) => then.fields == now.fields,
        (then, now) => then.is_none() && now.is_none(),
    };
    let at = (0..then.len().max(now.len())).find(|index| !is_same(*index))?;
    let after = at.checked_sub(1).and_then(|before| then.get(before));
    let place = after.map_or(String::new(), |step| format!(", after {}", step.line));
    let text = format!("the run differs from its recording: {key}{place}");
    match (then.get(at), now.get(at)) {
        (Some(then), Some(now)) if then.fields["type"] == now.fields["type"] => {
            let (pointer, then, now) = inner(&then.fields, &now.fields, String::new())?;
            Some(format!("{text}\n  recorded at {pointer}: {then}\n  now:         {now}"))
        }
        (then, now) => {
            let line = |step: Option<&Step>| step.map_or("nothing", |step| &step.line).to_owned();
            Some(format!("{text}\n  recorded: {}\n  now:      {}", line(then), line(now)))
        }
    }
}

/// Returns the JSON pointer of the first difference, and what is there.
fn inner(then: &Value, now: &Value, at: String) -> Option<(String, String, String)> {
    if then == now {
        return None;
    }
    match (then, now) {
        (Value::Object(then), Value::Object(now)) => {
            let names = then.keys().chain(now.keys().filter(|name| !then.contains_key(*name)));
            let field =
                |fields: &serde_json::Map<String, Value>, name| fields.get(name).cloned().unwrap_or_default();
            names.into_iter().find_map(|name| {
                let pointer = format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
                inner(&field(then, name), &field(now, name), pointer)
            })
        }
        (Value::Array(then), Value::Array(now)) if then.len() == now.len() => {
            let mut both = then.iter().zip(now).enumerate();
            both.find_map(|(index, (then, now))| inner(then, now, format!("{at}/{index}")))
        }
        _ => Some((at, then.to_string(), now.to_string())),
    }
}
