//! `mainstem serve`: an agent over HTTP, until a signal says otherwise.

use std::{
    io::{self, Write},
    time::Duration,
};

use anyhow::{Context, anyhow, ensure};
use mainstem::Harness;
use mainstem_server::{Builder, Hosts, Server, Tokens};
use tokio::{
    net::TcpListener,
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{
    args::{Serve, Source},
    config::{Setting, Settings, read::named, var},
    demo,
    exit::{Exit, Fault, OrExit},
    harness::{self, Wanted, check_agent},
    model, open_files, progress, signals, store, telemetry,
    terminal::Terminal,
    trust::{self, Reads},
};

pub(crate) fn run(args: &Serve, config: &Source, terminal: Terminal) -> Result<Exit, Fault> {
    let _telemetry = telemetry::start(args.log, terminal).or_exit(Exit::Config)?;
    // Before the server is made, which derives from it how much it takes.
    open_files::raise();
    let flags = Settings {
        model: args.model.clone().map(|name| Setting::new(name, "--model")),
        workspace: args.workspace.clone().map(|path| Setting::new(path, "--workspace")),
        fleet: args.fleet,
        ..Settings::default()
    };
    let settings = trust::settle(flags, config, Reads::Agents, terminal).or_exit(Exit::Config)?;
    let (harness, model) = harness(args, &settings, terminal)?;
    let (tokens, made) = tokens(args).or_exit(Exit::Config)?;
    ensure_private(args, made.is_some()).or_exit(Exit::Usage)?;
    let hosts = args.allow_host.iter().fold(Hosts::new(), |hosts, name| hosts.with(name));
    let mut server = Server::new(harness.clone()).tokens(tokens).hosts(hosts);
    for id in &args.allow_agent {
        harness.check_leader(id).context("--allow-agent").or_exit(Exit::Usage)?;
        server = server.allow_agent(id);
    }
    server = settings.input_roles.iter().fold(server, |server, role| server.allow_role(*role));
    let server =
        args.close_idle.into_iter().fold(server, Builder::close_idle).build().or_exit(Exit::Config)?;
    let runtime = mainstem_server::runtime().build().or_exit(Exit::Failed)?;
    let mut signals = signals::watch().or_exit(Exit::Failed)?;
    let served = runtime.block_on(async {
        let listener = TcpListener::bind(args.bind).await.with_context(|| format!("--bind {}", args.bind))?;
        greet(&harness, &model, &listener, made.as_deref(), terminal)?;
        let (stop, stopping) = (CancellationToken::new(), CancellationToken::new());
        let serving = server.serve(listener, stopping.clone());
        let until_signal = async {
            signals.next().await;
            progress::say("stopping; again to stop at once", terminal);
            stop.cancel();
            stopping.cancel();
        };
        let all = async { tokio::join!(until_signal, serving).1 };
        tokio::select! {
            served = all => served?,
            // A connection that nobody reads is not waited for.
            () = async { stop.cancelled().await; sleep(args.grace).await } => {}
        }
        end(&server, &harness, args.grace, terminal).await;
        anyhow::Ok(())
    });
    runtime.shutdown_background();
    served.or_exit(Exit::Failed)?;
    Ok(Exit::Reply)
}

fn harness(args: &Serve, settings: &Settings, terminal: Terminal) -> Result<(Harness, String), Fault> {
    let model = model::choose(settings, var)
        .ok_or_else(|| anyhow!("no model is configured: {}; or say -m demo for the demo", model::HOW))
        .or_exit(Exit::Config)?;
    let notes = harness::notes(settings, model.value == demo::NAME);
    let agent = args.agent.as_deref();
    let journal =
        args.journal.as_deref().map(|path| store::open(Some(path))).transpose().or_exit(Exit::Config)?;
    let wanted = Wanted { agent, plan: true, foreign: false, demo_pace: args.demo_pace, journal };
    let harness = wanted.build(settings, &model)?;
    if let Some(id) = agent {
        check_agent(&harness, id).or_exit(Exit::Usage)?;
    }
    notes.into_iter().chain(harness::found(&harness)).for_each(|note| progress::say(&note, terminal));
    Ok((harness, model.value))
}

/// Largest file of tokens, in bytes.
const TOKENS: u64 = 1 << 20;

/// Those of the file; or one that is made for this process, and shown.
fn tokens(args: &Serve) -> anyhow::Result<(Tokens, Option<String>)> {
    let Some(path) = &args.token_file else {
        let (token, tokens) = Tokens::generated();
        return Ok((tokens, Some(token)));
    };
    let read = || anyhow::Ok(Tokens::parse(&named(path, TOKENS)?)?);
    Ok((read().with_context(|| format!("--token-file {}", path.display()))?, None))
}

/// A token that was only shown here is of no use elsewhere, and in a log it is of use to others.
fn ensure_private(args: &Serve, made: bool) -> anyhow::Result<()> {
    let is_reached = !args.bind.ip().is_loopback();
    ensure!(
        !(made && is_reached),
        "--bind {} is reached from other machines: that needs --token-file",
        args.bind
    );
    Ok(())
}

fn greet(
    harness: &Harness,
    model: &str,
    listener: &TcpListener,
    token: Option<&str>,
    terminal: Terminal,
) -> anyhow::Result<()> {
    let agent = harness.agents().root().id().clone();
    progress::say(&format!("serving {agent} with {model}; Ctrl-C stops"), terminal);
    if let Some(token) = token {
        progress::say(&format!("token {token} (for this process; --token-file names your own)"), terminal);
    }
    // For programs that wait until it listens.
    writeln!(io::stdout(), "http://{}", listener.local_addr()?)?;
    Ok(())
}

/// Lets runs end, for so long; then stops what is left.
async fn end(server: &Server, harness: &Harness, grace: Duration, terminal: Terminal) {
    let until = Instant::now() + grace;
    while server.live_runs() > 0 && Instant::now() < until {
        sleep(Duration::from_millis(20)).await;
    }
    let left = server.live_runs();
    if left > 0 {
        progress::say(&format!("{left} runs are cancelled"), terminal);
    }
    // It ends what it spawned, so it has an end of its own.
    let _ = timeout(Duration::from_secs(10), harness.shutdown(Duration::from_secs(2))).await;
    store::close(harness, terminal).await;
}
