//! Mainstem: a root whose children stream text, over HTTP or with a scripted model.

use std::time::Duration;

use anyhow::{Result, ensure};
use futures_util::StreamExt;
use mainstem::{
    event::{AgentEvent, EventKind},
    model::scripted::{ScriptedModel, Turn},
    prelude::{AgentSpec, Harness, Model, Run},
};
use serde_json::json;

use crate::{
    client::{Observation, Seen},
    script::{LEAD, Load, Script, TEXT, WORKER},
    wire::Wire,
};

const ROOT: &str = "root";

#[derive(Clone, Debug)]
pub(crate) struct Fleet(Harness);

impl Fleet {
    /// Creates a fleet whose models are at the server.
    pub(crate) fn over_http(root: &str, wire: Wire) -> Result<Self> {
        Self::new(wire.model(root)?)
    }

    /// Creates a fleet whose models answer at once, in this process.
    pub(crate) fn scripted(load: &Load) -> Result<Self> {
        let (mut model, mut script, mut agent) = (ScriptedModel::new(), load.script(), ROOT);
        while let Script::Start { children, each } = script {
            let call = json!({ "agent_id": each.agent(), "task": each.to_task() });
            let start = (0..children).fold(Turn::new(), |turn, _| turn.call("agent_spawn", call.clone()));
            let task = Script::Start { children, each: each.clone() }.to_task();
            model = model.agent_on(agent, task, [start, Turn::new().text(TEXT)]);
            (script, agent) = (*each, LEAD);
        }
        let says = Turn::new().repeat(TEXT, load.say.deltas as usize);
        Self::new(model.agent(WORKER, [says]))
    }

    /// Creates a fleet whose root has its model at one server, and whose children run at another.
    pub(crate) fn remote(models: &str, agents: &str) -> Result<Self> {
        let worker = AgentSpec::new(WORKER, "Says something").with_url(agents);
        Self::with_worker(Wire::default().model(models)?, worker)
    }

    fn new(model: impl Model) -> Result<Self> {
        Self::with_worker(model, AgentSpec::new(WORKER, "Says something"))
    }

    fn with_worker(model: impl Model, worker: AgentSpec) -> Result<Self> {
        let harness = Harness::builder(ROOT, model)
            .with_remote_host("127.0.0.1".parse()?)
            .with_system_prompt("You hand tasks to other agents.")
            // The rows set the number of concurrent children.
            .with_max_children(usize::MAX)
            .with_subagent(worker)
            .with_subagent(AgentSpec::new(LEAD, "Starts others").with_tools(["agent_spawn"]))
            .build()?;
        Ok(Self(harness))
    }

    /// Returns a run whose children are this load; the first poll starts it.
    pub(crate) fn start(&self, load: &Load) -> Run {
        self.0.stream_events(load.script().to_task())
    }

    /// Lets the root itself say what a child of this load says, to the end.
    pub(crate) async fn say(&self, load: &Load, seen: Seen<'_>) -> Result<()> {
        let mut run = self.0.stream_events(Script::Say(load.say).to_task());
        while let Some(event) = run.next().await {
            if let EventKind::TextBlockDelta { delta, .. } = &event.kind {
                seen(Observation::Delta(delta));
            }
        }
        Ok(())
    }

    /// Runs a load to its end.
    pub(crate) async fn run(&self, load: &Load, seen: Seen<'_>) -> Result<()> {
        let mut run = self.start(load);
        let mut ends = 0;
        while let Some(event) = run.next().await {
            match (&event.kind, event.is_root()) {
                // By its timestamp, because it is read only after all children have begun.
                (EventKind::ModelCallEnd { .. }, true) => {
                    seen(Observation::Start(Duration::from_micros(event.at.as_micros())));
                }
                (EventKind::TextBlockDelta { delta, .. }, false) if is_leaf(&event) => {
                    seen(Observation::Delta(delta))
                }
                (EventKind::AgentEnd { .. }, _) => ends += 1,
                _ => {}
            }
        }
        let all = load.children + u32::from(load.depth);
        ensure!(ends == all, "{ends} of {all} agents ended");
        Ok(())
    }
}

/// Returns `true` if it comes from one of the children whose deltas are counted.
pub(crate) fn is_leaf(event: &AgentEvent) -> bool {
    event.source().is_some_and(|source| &*source.agent_id == WORKER)
}
