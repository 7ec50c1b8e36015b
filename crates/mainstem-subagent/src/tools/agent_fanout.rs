//! `agent_fanout`: starts several children by one call, for models that make one call a turn.

use std::sync::Arc;

use futures_util::future::join_all;
use mainstem_message::ToolState;
use mainstem_tool::{Tool, ToolOutput, tool_fn};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    error::SpawnError,
    member::Member,
    spawn::{launch::Order, report::Report},
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Fanout {
    /// What to start, all at once.
    #[schemars(length(min = 1))]
    spawns: Vec<Spawn>,
    /// How many seconds to wait for each reply: 30 by default, 600 at most; a child that has not
    /// answered then goes on in the background. 0 does not wait at all.
    #[serde(default)]
    timeout_seconds: Option<u64>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Spawn {
    /// Which agent to start.
    agent_id: String,
    /// What it shall do, with everything it needs to know.
    task: String,
    /// A short name of your own for it, unique in this session.
    #[serde(default)]
    label: Option<String>,
}

pub(super) fn tool() -> Arc<dyn Tool> {
    let description = "Start several subagents at once and wait for all their replies. One result for each, in the same order.";
    Arc::new(tool_fn("agent_fanout", description, |cx, fanout: Fanout| async move {
        let (cx, member) = Member::of_call(&cx)?;
        let Fanout { spawns, timeout_seconds } = fanout;
        let spawn = async |Spawn { agent_id, task, label }| {
            let order = Box::new(Order { entry: member.admit(cx, &agent_id)?, task, label });
            member.spawn(cx, order, timeout_seconds).await
        };
        let reports = join_all(spawns.into_iter().map(spawn)).await;
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
        Ok::<_, SpawnError>(ToolOutput::from(parts.join("\n\n")).with_state(state(&reports)))
    }))
}

/// Returns `Running` if a child goes on in the background, else `Error` if one has failed.
fn state(reports: &[Result<Report, SpawnError>]) -> ToolState {
    let state = |report: &Result<Report, _>| report.as_ref().map_or(ToolState::Error, Report::state);
    let has = |wanted| reports.iter().any(|report| state(report) == wanted);
    [ToolState::Running, ToolState::Error]
        .into_iter()
        .find(|wanted| has(*wanted))
        .unwrap_or(ToolState::Success)
}
