//! A chain of three processes, whose middle is killed at each event that the caller reads of it.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    time::Duration,
};

use futures_util::StreamExt;
use mainstem::{event::SendMode, model::scripted::Turn, prelude::*};
use mainstem_testing::{Proxy, laws, render};
use serde_json::json;
use tempfile::TempDir;
use tokio::{
    task::{JoinHandle, block_in_place},
    time::timeout,
};

use crate::{
    anywhere::serve,
    chain::{builder, child_end, events, local, nameless},
    support::ms,
};

/// The middle of the chain, and the network before it.
struct Link {
    command: Command,
    process: Child,
    port: u16,
    proxy: Proxy,
    _journal: TempDir,
}

impl Link {
    async fn start(next: &str) -> Self {
        let journal = tempfile::tempdir().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_link"));
        command.arg(journal.path().join("journal.db")).arg(next);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let (process, port) = spawn(&mut command);
        Self { command, process, port, proxy: Proxy::before([port]).await, _journal: journal }
    }

    fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        self.proxy.remove(self.port);
    }

    fn start_again(&mut self) {
        (self.process, self.port) = spawn(&mut self.command);
        self.proxy.add(self.port);
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Starts the process. Returns its port, too.
fn spawn(command: &mut Command) -> (Child, u16) {
    let mut process = command.spawn().unwrap();
    let mut line = String::new();
    block_in_place(|| BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap());
    (process, line.trim().parse().unwrap())
}

/// The caller, and what it has seen.
struct Caller {
    session: Session,
    events: Vec<AgentEvent>,
}

impl Caller {
    fn script() -> ScriptedModel {
        let spawn = json!({ "agent_id": "second", "task": "find out", "timeout_seconds": 600 });
        let main = [Turn::new().call("agent_spawn", spawn), Turn::new().text("All done.")];
        ScriptedModel::new().agent("main", main)
    }

    fn harness(link: &Link) -> Harness {
        let second =
            AgentSpec::new("second", "Helps").with_url(format!("http://127.0.0.1:{}", link.proxy.port()));
        builder("main", Self::script()).with_subagent(second).build().unwrap()
    }

    /// Runs until the end, and kills the link after so many events below the root; it returns or
    /// not.
    async fn run(link: &mut Link, kill_after: usize, returns: bool) -> Self {
        let session = Self::harness(link).open_session("s").await.unwrap();
        let mut run = session.run("go").unwrap();
        let (mut events, mut below) = (Vec::new(), 0);
        let read = async {
            while let Some(event) = run.next().await {
                below += usize::from(event.depth() > 0);
                let is_last_seen = event.depth() > 0 && below == kill_after;
                events.push(event);
                if is_last_seen {
                    link.kill();
                    if returns {
                        link.start_again();
                    }
                }
            }
        };
        timeout(Duration::from_secs(60), read).await.unwrap();
        laws(&events).unwrap_or_else(|error| panic!("{error}\n{}", render(&events)));
        Self { session, events }
    }

    /// Returns what an agent has said.
    fn said(&self, agent: &str) -> String {
        let of_agent = self.events.iter().filter(|event| event.agent_id() == agent);
        let texts = of_agent.filter_map(|event| match &event.kind {
            EventKind::TextBlockDelta { delta, .. } => Some(delta.as_str()),
            _ => None,
        });
        texts.collect()
    }

    /// Sends the child a message; returns the outcome of its turn, and its reason.
    async fn sends(&self, message: &str) -> (Outcome, String) {
        let mut log = self.session.log().subscribe();
        let key = self.session.children().remove(0).agent_key;
        self.session.send(&key, message, SendMode::Queue).unwrap();
        let ends = async {
            loop {
                let event = log.next().await.unwrap();
                if let EventKind::AgentEnd { outcome, error, .. } = &event.kind {
                    return (*outcome, error.as_ref().map(ToString::to_string).unwrap_or_default());
                }
            }
        };
        timeout(Duration::from_secs(60), ends).await.unwrap()
    }
}

const WHOLE: [&str; 2] = ["I ask another.It is so.", "I see."];

fn third(model: ScriptedModel) -> ScriptedModel {
    let (call, see) =
        (Turn::new().call("echo", json!({ "say": "c" })), Turn::new().wait(ms(15)).pace(ms(15)));
    model.agent("third", [call.wait(ms(15)), see.say("I see.")])
}

async fn serve_third() -> (String, JoinHandle<()>) {
    serve(builder("third", third(ScriptedModel::new())).build().unwrap()).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_its_caller_sees_is_the_fleet_that_one_process_has() {
    let (url, serving) = serve_third().await;
    let there = Caller::run(&mut Link::start(&url).await, usize::MAX, false).await.events;
    serving.abort();
    // The script of the process.
    let spawn = json!({ "agent_id": "third", "task": "look", "timeout_seconds": 600 });
    let second = [
        Turn::new().thinking("Hm.").say("I ask another.").call("agent_spawn", spawn),
        Turn::new().call("echo", json!({ "say": "a" })),
        Turn::new().say("It is so."),
    ];
    let one = builder("main", third(Caller::script().agent("second", second)))
        .with_subagent(local("second"))
        .with_subagent(local("third"));
    assert_eq!(nameless(&there), nameless(&events(&one.build().unwrap()).await));
}

async fn check(returns: bool) {
    let (url, serving) = serve_third().await;
    let mut link = Link::start(&url).await;
    let whole = Caller::run(&mut link, usize::MAX, returns).await;
    let below = whole.events.iter().filter(|event| event.depth() > 0).count();
    assert_eq!(["second", "third"].map(|agent| whole.said(agent)), WHOLE, "{}", render(&whole.events));
    let every = if std::env::var_os("RUN_SLOW_TESTS").is_some() { 1 } else { 17 };
    let mut failed = 0;
    for kill_after in (1..=below).step_by(every) {
        let mut link = Link::start(&url).await;
        let caller = Caller::run(&mut link, kill_after, returns).await;
        let place = format!("killed after {kill_after} of {below}:\n{}", render(&caller.events));
        let (outcome, why) = child_end(&caller.events, "second");
        let said = ["second", "third"].map(|agent| caller.said(agent));
        if outcome == Outcome::Success {
            // It had not begun there, or all of it was on its way.
            assert_eq!(said, WHOLE, "{place}");
        } else {
            let expected =
                if returns { "the process that ran the agent has ended" } else { "can't be reached" };
            assert!(outcome == Outcome::Error && why.contains(expected), "{why}, {place}");
            failed += 1;
        }
        assert_eq!(child_end(&caller.events, "main"), (Outcome::Success, ""), "{place}");
        for (said, whole) in said.iter().zip(WHOLE) {
            assert!(whole.starts_with(said), "{place}");
        }
        if returns {
            let (outcome, why) = caller.sends("and now?").await;
            assert_eq!((outcome, why.as_str()), (Outcome::Success, ""), "{place}");
        }
    }
    assert!(failed > 0, "no kill came before the end");
    serving.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn its_death_is_the_end_of_its_child_alone() {
    check(false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_child_goes_on_when_it_returns() {
    check(true).await;
}
