//! `mainstem mcp`: offers agents as tools to an MCP client, over stdin and stdout.

use std::time::Duration;

use anyhow::anyhow;
use mainstem::{
    Harness, HarnessAgents,
    mcp::{AgentHost, AgentServer},
    spec::closest,
};
use tokio_util::sync::CancellationToken;

use crate::{
    args::{Mcp, Source},
    config::{Config, var},
    demo,
    exit::{Exit, Fault, OrExit, shut_down},
    harness::{self, Requirements, check_agent},
    model, progress, signals, store, telemetry,
    terminal::Terminal,
    trust::{self, Reads},
};

/// How long background tasks have at the end.
const GRACE: Duration = Duration::from_secs(2);

pub(crate) fn run(args: &Mcp, source: &Source, terminal: Terminal) -> Result<Exit, Fault> {
    let _telemetry = telemetry::start(args.log, terminal).or_exit(Exit::Config)?;
    let flags = args.settings.clone();
    // stdin is the client's, so no question about trust is put to a person.
    let config = trust::look_and_warn(flags, source, Reads::Agents, terminal).or_exit(Exit::Config)?;
    let harness = harness(args, &config, terminal)?;
    let agents = offered(args, &harness).or_exit(Exit::Usage)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().or_exit(Exit::Failed)?;
    let mut signals = signals::watch().or_exit(Exit::Failed)?;
    let served = runtime.block_on(async {
        let stop = CancellationToken::new();
        let server = AgentServer::new(agents);
        let serving = server.serve(tokio::io::stdin(), tokio::io::stdout(), stop.clone());
        let served = tokio::select! {
            served = serving => served.map(|()| Exit::Reply),
            signal = signals.next() => Ok(signal.exit()),
        };
        stop.cancel();
        harness.shutdown(GRACE).await;
        store::close(&harness, terminal).await;
        served
    });
    // A read of stdin that is blocked must not delay the exit.
    shut_down(runtime);
    served.or_exit(Exit::Failed)
}

fn harness(args: &Mcp, config: &Config, terminal: Terminal) -> Result<Harness, Fault> {
    let model = model::choose(&config.settings, var)
        .ok_or_else(|| anyhow!("{}; or use -m demo for the demo", model::none_configured(&config.settings)))
        .or_exit(Exit::Config)?;
    let notes = harness::notes(&config.settings, model.value == demo::NAME);
    let agent = args.agent.as_deref();
    let journal = args.journal.as_ref().map(|at| store::open(Some(at))).transpose().or_exit(Exit::Config)?;
    let requirements =
        Requirements { agent, plan: true, demo_pace: args.demo_pace, journal, ..Requirements::default() };
    let harness = requirements.build(config, &model)?;
    if let Some(id) = agent {
        check_agent(&harness, id).or_exit(Exit::Usage)?;
    }
    notes.into_iter().chain(harness::found(&harness)).for_each(|note| progress::say(&note, terminal));
    Ok(harness)
}

/// Returns the agents that are offered.
fn offered(args: &Mcp, harness: &Harness) -> anyhow::Result<HarnessAgents> {
    let all = HarnessAgents::new(harness.clone());
    if args.only.is_empty() {
        return Ok(all);
    }
    let known = all.agents();
    for id in &args.only {
        let mut ids = known.iter().map(|agent| agent.id.as_str());
        if !ids.clone().any(|known| known == id) {
            let near = closest(id, ids.clone()).map(|near| format!("; did you mean {near}?"));
            let ids: Vec<_> = ids.by_ref().collect();
            let near = near.unwrap_or_default();
            return Err(anyhow!(
                "--only {id}: no agent of this id can lead a run; known: {}{near}",
                ids.join(", ")
            ));
        }
    }
    Ok(all.with_only(args.only.iter().cloned()))
}
