//! `agent_fanout`: several children by one call, for models that make one call a turn.

use std::sync::Arc;

use futures_util::future::join_all;
use mainstem_tool::{Tool, ToolOutput, tool_fn};
use schemars::JsonSchema;
use serde::Deserialize;

use super::agent_spawn::Spawn;
use crate::{Fleet, SpawnError};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Fanout {
    /// What to start, all at once.
    #[schemars(length(min = 1))]
    spawns: Vec<Spawn>,
}

pub(super) fn tool() -> Arc<dyn Tool> {
    let description = "Start several subagents at once and wait for all their replies. One result for each, in the same order.";
    Arc::new(tool_fn("agent_fanout", description, |cx, fanout: Fanout| async move {
        let fleet = Fleet::of(&cx)?;
        let reports = join_all(fanout.spawns.into_iter().map(|spawn| fleet.spawn(&cx, spawn.into()))).await;
        let all_ok = reports.iter().all(|report| report.as_ref().is_ok_and(|report| report.is_ok()));
        let parts: Vec<_> = reports
            .iter()
            .enumerate()
            .map(|(index, report)| {
                let text = report
                    .as_ref()
                    .map_or_else(|error| format!("status: error\nerror: {error}"), |r| r.text());
                format!("# result {} of {}\n{text}", index + 1, reports.len())
            })
            .collect();
        let text = parts.join("\n\n");
        Ok::<_, SpawnError>(if all_ok { ToolOutput::from(text) } else { ToolOutput::failed(text) })
    }))
}
