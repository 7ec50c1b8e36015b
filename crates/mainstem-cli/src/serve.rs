//! `mainstem serve`: serves an agent over HTTP until a signal; `mainstem worker` without HTTP.

use std::{
    future::pending,
    io::{self, Write},
    net::SocketAddr,
    pin::pin,
    time::Duration,
};

use anyhow::{Context, anyhow, ensure};
use futures_util::{FutureExt, future::BoxFuture};
use mainstem::Harness;
use mainstem_server::{Builder, Hosts, Server, Tokens};
use tokio::{
    net::TcpListener,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{
    args::{Serve, Source, Worker},
    config::{Config, read::named, var},
    demo,
    exit::{Exit, Fault, OrExit, shut_down},
    harness::{self, Requirements, check_agent},
    model, open_files,
    print::counted,
    progress,
    signals::{self, First},
    store::{self, Store},
    telemetry::{self, Telemetry},
    terminal::Terminal,
    trust::{self, Reads},
};

pub(crate) fn run(args: &Serve, source: &Source, terminal: Terminal) -> Result<Exit, Fault> {
    ensure_recorded(args).or_exit(Exit::Usage)?;
    let store = || args.journal.as_ref().map(|at| store::open(Some(at))).transpose();
    let mut served = Served::new(args, source, store, terminal)?;
    ensure_private(args, served.token.is_some()).or_exit(Exit::Usage)?;
    let runtime = mainstem_server::runtime().build().or_exit(Exit::Failed)?;
    let done = runtime.block_on(async {
        let listener = TcpListener::bind(args.bind).await.map_err(|error| not_bound(&error, args.bind))?;
        served.greet(&listener, terminal)?;
        let (server, stop) = (served.server.clone(), CancellationToken::new());
        let serving = async { anyhow::Ok(server.serve(listener, stop.clone()).await?) };
        served.until_stopped(serving, &stop, args.grace, terminal).await
    });
    shut_down(runtime);
    done.or_exit(Exit::Failed)?;
    Ok(Exit::Reply)
}

/// `mainstem worker`: runs jobs until a signal.
pub(crate) fn work(args: &Worker, source: &Source, terminal: Terminal) -> Result<Exit, Fault> {
    let at = args.journal.as_ref();
    let mut served = Served::new(&args.as_server(), source, || store::open(at).map(Some), terminal)?;
    let runtime = mainstem_server::runtime().build().or_exit(Exit::Failed)?;
    let done = runtime.block_on(async {
        let agent = served.harness.agents().root().id().clone();
        let jobs = counted(args.jobs, "job");
        let line = format!("running {jobs} at once with {agent} and {}; Ctrl-C stops", served.model);
        progress::say(&line, terminal);
        let (server, stop) = (served.server.clone(), CancellationToken::new());
        let working = async {
            server.work(stop.clone()).await;
            anyhow::Ok(())
        };
        served.until_stopped(working, &stop, args.grace, terminal).await
    });
    shut_down(runtime);
    done.or_exit(Exit::Failed)?;
    Ok(Exit::Reply)
}

/// A server that was built, and what stops it.
struct Served {
    server: Server,
    harness: Harness,
    /// The name of its model.
    model: String,
    /// The token that was generated for it, if no file names any.
    token: Option<String>,
    signals: First,
    /// Resolves when an operator asks this node to stop.
    asked_to_stop: BoxFuture<'static, ()>,
    _telemetry: Telemetry,
}

impl Served {
    fn new(
        args: &Serve,
        source: &Source,
        store: impl FnOnce() -> anyhow::Result<Option<Store>>,
        terminal: Terminal,
    ) -> Result<Self, Fault> {
        let telemetry = telemetry::start(args.log, terminal).or_exit(Exit::Config)?;
        // This precedes the server, which derives its limits from it.
        open_files::raise();
        let flags = args.settings.clone();
        let config = trust::settle(flags, source, Reads::Agents, terminal).or_exit(Exit::Config)?;
        let Parts { harness, model, asked_to_stop } = parts(args, &config, store, terminal)?;
        let (tokens, token) = tokens(args).or_exit(Exit::Config)?;
        let hosts = args.allow_host.iter().fold(Hosts::new(), |hosts, name| hosts.with_name(name));
        let mut server = Server::new(harness.clone()).with_tokens(tokens).with_hosts(hosts);
        server = server.with_request_span(telemetry.request_span());
        for id in &args.allow_agent {
            harness.check_leader(id).context("--allow-agent").or_exit(Exit::Usage)?;
            server = server.with_allowed_agent(id);
        }
        let registry = model::registry(&config.settings, args.demo_pace, var).or_exit(Exit::Config)?;
        for name in &args.allow_model {
            model::resolve(&registry, name).context("--allow-model").or_exit(Exit::Usage)?;
            server = server.with_allowed_model(name);
        }
        let roles = config.settings.serve.input_roles.iter();
        server = roles.fold(server, |server, role| server.with_allowed_role((*role).into()));
        server = args.protocol.iter().fold(server, |server, protocol| server.with_protocol(*protocol));
        server = server.with_on_lost(args.on_lost.into()).with_max_jobs(args.jobs);
        server = server.with_retention(args.keep.keep());
        server = args.jobs_per_tenant.into_iter().fold(server, Builder::with_max_jobs_per_tenant);
        server = args.notify_host.iter().cloned().fold(server, Builder::with_notified_host);
        server = args.close_idle.into_iter().fold(server, Builder::with_idle_timeout);
        let server = server.build().or_exit(Exit::Config)?;
        let signals = signals::watch().or_exit(Exit::Failed)?;
        Ok(Self { server, harness, model, token, signals, asked_to_stop, _telemetry: telemetry })
    }

    /// Works until a signal, or until an operator asks; then runs get some time to end, and their
    /// readers receive the ends.
    async fn until_stopped(
        &mut self,
        work: impl Future<Output = anyhow::Result<()>>,
        stopping: &CancellationToken,
        grace: Duration,
        terminal: Terminal,
    ) -> anyhow::Result<()> {
        let until_signal = async {
            tokio::select! {
                _ = self.signals.next() => {}
                () = &mut self.asked_to_stop => progress::say("an operator asks this node to stop", terminal),
            }
        };
        let mut work = pin!(work);
        tokio::select! {
            worked = &mut work => return worked,
            () = until_signal => {}
        }
        progress::say("stopping; a second signal stops at once", terminal);
        let (server, harness) = (&self.server, &self.harness);
        let has_readers = server.live_runs() > 0;
        let ended = async {
            end(server, harness, grace, terminal).await;
            if has_readers {
                sleep(LAST_REQUESTS).await;
            }
            stopping.cancel();
            // A connection without a reader must not delay the exit.
            sleep(LAST_RESPONSES).await;
        };
        tokio::select! {
            biased;
            worked = &mut work => worked?,
            () = ended => {}
        }
        store::close(harness, terminal).await;
        Ok(())
    }

    fn greet(&self, listener: &TcpListener, terminal: Terminal) -> anyhow::Result<()> {
        let agent = self.harness.agents().root().id().clone();
        progress::say(&format!("serving {agent} with {}; Ctrl-C stops", self.model), terminal);
        let url = format!("http://{}", listener.local_addr()?);
        if let Some(token) = &self.token {
            let line = format!("token {token} (for this process; --token-file names your own)");
            progress::say(&line, terminal);
            if cfg!(feature = "page") {
                // A browser does not send what is after `#`; the page removes it from the address.
                progress::say(&format!("page {url}/#token={token}"), terminal);
            }
        }
        // Programs read this line to know that the server listens.
        writeln!(io::stdout(), "{url}")?;
        Ok(())
    }
}

/// What is served.
struct Parts {
    harness: Harness,
    /// The name of its model.
    model: String,
    /// Resolves when an operator asks this node to stop.
    asked_to_stop: BoxFuture<'static, ()>,
}

fn parts(
    args: &Serve,
    config: &Config,
    store: impl FnOnce() -> anyhow::Result<Option<Store>>,
    terminal: Terminal,
) -> Result<Parts, Fault> {
    let model = model::choose(&config.settings, var)
        .ok_or_else(|| anyhow!("{}; or use -m demo for the demo", model::none_configured(&config.settings)))
        .or_exit(Exit::Config)?;
    let is_demo = model.value == demo::NAME;
    let mut notes = harness::notes(&config.settings, is_demo);
    if is_demo && args.session_files.is_some() {
        notes.push("warning: the demo's tools touch no files; --session-files is not used".to_owned());
    }
    let agent = args.agent.as_deref();
    let (journal, asked_to_stop) = match store().or_exit(Exit::Config)? {
        Some(mut store) => {
            let asked_to_stop = std::mem::replace(&mut store.asked_to_stop, pending().boxed());
            (Some(store), asked_to_stop)
        }
        None => (None, pending().boxed()),
    };
    let requirements = Requirements {
        agent,
        plan: true,
        foreign: false,
        demo_pace: args.demo_pace,
        journal,
        files: args.session_files.as_deref(),
    };
    let harness = requirements.build(config, &model)?;
    if let Some(id) = agent {
        check_agent(&harness, id).or_exit(Exit::Usage)?;
    }
    notes.into_iter().chain(harness::found(&harness)).for_each(|note| progress::say(&note, terminal));
    Ok(Parts { harness, model: model.value, asked_to_stop })
}

/// How long clients may ask about a run after its end.
const LAST_REQUESTS: Duration = Duration::from_millis(500);

/// How long readers may take to read the last responses.
const LAST_RESPONSES: Duration = Duration::from_secs(2);

/// The largest file of tokens, in bytes.
const TOKENS: u64 = 1 << 20;

/// Returns the tokens of the file, or one that is generated for this process and shown.
fn tokens(args: &Serve) -> anyhow::Result<(Tokens, Option<String>)> {
    let Some(path) = &args.token_file else {
        let (token, tokens) = Tokens::generated();
        return Ok((tokens, Some(token)));
    };
    let read = || anyhow::Ok(Tokens::parse(&named(path, TOKENS)?)?);
    Ok((read().with_context(|| format!("--token-file {}", path.display()))?, None))
}

fn ensure_recorded(args: &Serve) -> anyhow::Result<()> {
    let is_recorded = args.journal.is_some();
    ensure!(is_recorded || args.keep.keep().is_all(), "--keep and --keep-size require --journal");
    Ok(())
}

fn not_bound(error: &io::Error, address: SocketAddr) -> anyhow::Error {
    let advice = match error.kind() {
        io::ErrorKind::AddrInUse => "; another server may have it: name another port, or 0 for any free one",
        _ => "",
    };
    anyhow!("--bind {address}: {error}{advice}")
}

/// Checks that a generated token is used locally only: it is not known elsewhere, and in a log it
/// would be known to others.
fn ensure_private(args: &Serve, made: bool) -> anyhow::Result<()> {
    let is_reached = !args.bind.ip().is_loopback();
    ensure!(
        !(made && is_reached),
        "--bind {}: other machines reach this address, which requires --token-file",
        args.bind
    );
    Ok(())
}

/// Waits for runs to end, for this long at most; then stops the rest.
async fn end(server: &Server, harness: &Harness, grace: Duration, terminal: Terminal) {
    if timeout(grace, server.drain()).await.is_err() {
        progress::say(&format!("cancelling {}", counted(server.live_runs(), "run")), terminal);
    }
    let left = harness.leave_tasks();
    if left > 0 {
        let left = counted(left, "task");
        progress::say(&format!("leaving {left} at remote agents to the next server"), terminal);
    }
    // The shutdown ends children by itself, so it has its own limit.
    let _ = timeout(Duration::from_secs(10), harness.shutdown(Duration::from_secs(2))).await;
}
