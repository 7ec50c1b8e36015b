//! Tools of MCP servers: one process for a whole fleet, live progress, cancels that reach it, and
//! what becomes of it when it dies.

use std::{
    fs,
    path::PathBuf,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use mainstem::{
    declarations::Code,
    mcp::Server,
    message::ToolState,
    model::{ModelRequest, ModelStream, scripted::Turn},
    prelude::*,
    spec::McpServer,
};
use mainstem_testing::{CountedIds, FakeClock, laws, render};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Returns a call of `agent_spawn`.
fn spawn(turn: Turn, agent_id: &str) -> Turn {
    turn.call("agent_spawn", json!({ "agent_id": agent_id, "task": "go" }))
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A server, and the file in which it notes what happens to it.
struct Rig {
    dir: TempDir,
}

impl Rig {
    fn new() -> Self {
        Self { dir: TempDir::new().unwrap() }
    }

    fn log_file(&self) -> PathBuf {
        self.dir.path().join("log")
    }

    fn server(&self) -> Server {
        self.server_with(&[])
    }

    fn server_with(&self, flags: &[&str]) -> Server {
        let log = self.log_file().display().to_string();
        Server::command(env!("CARGO_BIN_EXE_mcp_server"), [&[&*log], flags].concat())
    }

    /// Returns a server with bad habits.
    fn odd(&self, habit: &str) -> Server {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/peers/odd.sh");
        Server::command("sh", [script, &self.log_file().display().to_string(), habit])
    }

    fn log(&self) -> Vec<String> {
        let log = fs::read_to_string(self.log_file()).unwrap_or_default();
        log.lines().map(str::to_owned).collect()
    }

    /// Returns how often something happened.
    fn count(&self, what: &str) -> usize {
        self.log().iter().filter(|line| line.starts_with(what)).count()
    }

    /// Waits until something has happened.
    async fn until(&self, what: &str) {
        let began = Instant::now();
        while self.count(what) == 0 {
            assert!(began.elapsed() < Duration::from_secs(20), "no {what:?} in {:?}", self.log());
            tokio::time::sleep(ms(5)).await;
        }
    }

    /// Returns `true` if the process that was started last is there.
    fn is_alive(&self) -> bool {
        self.lives("start ")
    }

    fn lives(&self, as_what: &str) -> bool {
        let log = self.log();
        let started = log.iter().rev().find_map(|line| line.strip_prefix(as_what)).unwrap();
        // A zombie is not alive.
        let status = fs::read_to_string(format!("/proc/{started}/stat")).unwrap_or_default();
        status.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
    }

    async fn until_dead(&self) {
        let began = Instant::now();
        while self.is_alive() {
            assert!(began.elapsed() < Duration::from_secs(20), "it lives: {:?}", self.log());
            tokio::time::sleep(ms(5)).await;
        }
    }
}

fn harness(model: impl Model, server: Server) -> HarnessBuilder {
    Harness::builder("main", model)
        .with_clock(FakeClock::default())
        .with_ids(CountedIds::default())
        .with_mcp_server("rig", server)
}

fn call(turn: Turn, tool: &str, arguments: Value) -> Turn {
    turn.call(format!("mcp__rig__{tool}"), arguments)
}

async fn events(run: Run) -> Vec<AgentEvent> {
    let events: Vec<_> = run.collect().await;
    laws(&events).unwrap_or_else(|error| panic!("{error}\n{}", render(&events)));
    events
}

/// Returns the text of each result, with its state, in order.
fn results(events: &[AgentEvent]) -> Vec<(ToolState, String)> {
    let mut results = Vec::new();
    let mut texts = std::collections::BTreeMap::<_, String>::new();
    for event in events {
        match &event.kind {
            EventKind::ToolResultTextDelta { tool_call_id, delta } => {
                texts.entry(tool_call_id.clone()).or_default().push_str(delta);
            }
            EventKind::ToolResultEnd { tool_call_id, state, .. } => {
                results.push((*state, texts.remove(tool_call_id).unwrap_or_default()));
            }
            _ => {}
        }
    }
    results
}

/// Returns the children, one after the other, without times and ids: a server takes the time it
/// takes.
fn lanes(events: &[AgentEvent]) -> String {
    let text = render(events);
    let untimed = text.lines().filter_map(|line| line.trim().split_once(' ')).map(|(_, line)| line.trim());
    let bare = untimed.map(|line| line.split(" (call-").next().unwrap_or(line));
    let mut lines: Vec<_> = bare.filter(|line| !line.starts_with("main")).collect();
    lines.sort_by_key(|line| line.split(' ').next());
    lines.join("\n")
}

/// Agents and the tools that they were offered, one entry a model call.
type Seen = Arc<Mutex<Vec<(String, String)>>>;

/// Notes which tools of the server each model call is offered.
struct Offered {
    seen: Seen,
    inner: ScriptedModel,
}

impl Offered {
    fn new(inner: ScriptedModel) -> (Self, Seen) {
        let seen = Seen::default();
        (Self { seen: seen.clone(), inner }, seen)
    }
}

impl Model for Offered {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn stream(&self, request: ModelRequest) -> ModelStream {
        let names = request.tools.iter().filter_map(|tool| tool.name.strip_prefix("mcp__rig__"));
        let names = names.collect::<Vec<_>>().join(" ");
        self.seen.lock().unwrap().push((request.agent.to_string(), names));
        self.inner.stream(request)
    }
}

const ALL: &str = "count die echo env fail grow hang";

#[tokio::test]
async fn two_children_at_once_share_one_process() {
    let rig = Rig::new();
    let model = ScriptedModel::new()
        .agent("main", [spawn(spawn(Turn::new(), "ann"), "bob"), Turn::new().text("Done.")])
        .agent("ann", [call(Turn::new(), "count", json!({"to": 2})), Turn::new().text("I counted.")])
        .agent("bob", [call(Turn::new(), "echo", json!({"text": "hi"})), Turn::new().text("I echoed.")]);
    let harness = harness(model, rig.server())
        .with_subagent(AgentSpec::new("ann", "A"))
        .with_subagent(AgentSpec::new("bob", "B"))
        .build()
        .unwrap();
    assert!(rig.log().is_empty(), "nothing is started before it is needed");
    let events = events(harness.stream_events("go")).await;
    insta::assert_snapshot!(lanes(&events));
    assert_eq!((rig.count("start"), rig.count("list")), (1, 1), "{:?}", rig.log());
    // The next run, and another session, have the same one.
    harness.call("again").await.unwrap();
    assert_eq!(rig.count("start"), 1);
    harness.shutdown(ms(100)).await;
    assert_eq!(
        rig.log().last().unwrap(),
        "end",
        "it was asked, and has ended by the time that shutdown returns"
    );
    assert!(!rig.is_alive());
}

#[tokio::test]
async fn progress_is_live() {
    let rig = Rig::new();
    let model = ScriptedModel::new()
        .agent("main", [call(Turn::new(), "count", json!({"to": 3})), Turn::new().text("Counted.")]);
    let harness = harness(model, rig.server()).build().unwrap();
    let events = events(harness.stream_events("go")).await;
    let deltas: Vec<_> = events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::ToolResultTextDelta { delta, .. } => Some(&**delta),
            _ => None,
        })
        .collect();
    assert_eq!(deltas, ["1/3: at 1\n", "2/3: at 2\n", "3/3: at 3\n", "counted"]);
}

#[tokio::test]
async fn a_cancel_reaches_the_server_and_so_does_a_drop() {
    let rig = Rig::new();
    let script = || ScriptedModel::new().agent("main", [call(Turn::new(), "hang", json!({}))]);
    let harness_of = |model| harness(model, rig.server()).build().unwrap();
    let harness = harness_of(script());
    let run = harness.stream_events("go");
    let handle = run.handle();
    let cancel = async {
        rig.until("call hang").await;
        handle.cancel();
    };
    let (events, ()) = tokio::join!(events(run), cancel);
    rig.until("cancelled").await;
    let (state, text) = results(&events).remove(0);
    assert_eq!(
        (state, &*text),
        (ToolState::Interrupted, "interrupted; the call was cancelled at the MCP server")
    );
    assert_eq!(rig.count("start"), 1, "the server goes on");
    drop((harness, handle));
    rig.until_dead().await;

    let again = Rig::new();
    let harness = self::harness(script(), again.server()).build().unwrap();
    let mut run = harness.stream_events("go");
    tokio::select! {
        () = again.until("call hang") => {}
        () = async { while run.next().await.is_some() {} } => panic!("it hangs"),
    }
    drop(run);
    again.until("cancelled").await;
}

#[tokio::test]
async fn death_is_an_error_result_and_the_next_call_starts_it_anew() {
    let rig = Rig::new();
    let model = ScriptedModel::new().agent(
        "main",
        [
            // Who waits beside the one that kills it gets an error, too.
            call(call(Turn::new(), "hang", json!({})), "die", json!({})),
            call(Turn::new(), "echo", json!({"text": "back"})),
            Turn::new().text("Back."),
        ],
    );
    let harness = harness(model, rig.server()).build().unwrap();
    let results = results(&events(harness.stream_events("go")).await);
    let died = "the call got no answer: the MCP server \"rig\" has ended: it closed the connection (exit status: 3); it said last: the \
                end is near; a new call starts it anew";
    assert_eq!(results[..2], [(ToolState::Error, died.to_owned()), (ToolState::Error, died.to_owned())]);
    assert_eq!(results[2], (ToolState::Success, "back".to_owned()));
    assert_eq!(rig.count("start"), 2);
}

#[tokio::test]
async fn a_tool_that_comes_is_there_in_the_next_model_call() {
    let rig = Rig::new();
    let script = ScriptedModel::new().agent(
        "main",
        [
            call(Turn::new(), "grow", json!({})),
            call(Turn::new(), "more", json!({})),
            Turn::new().text("More."),
        ],
    );
    let (model, seen) = Offered::new(script);
    let harness = harness(model, rig.server()).build().unwrap();
    let results = results(&events(harness.stream_events("go")).await);
    assert_eq!(results[1], (ToolState::Success, "more".to_owned()));
    let seen: Vec<_> = seen.lock().unwrap().iter().map(|(_, tools)| tools.clone()).collect();
    assert_eq!(seen, [ALL.to_owned(), format!("{ALL} more"), format!("{ALL} more")]);
    let broken = "error: a tool of the MCP server \"rig\" is left out: the schema of tool \"mcp__rig__broken\" is not valid";
    let warnings: Vec<_> = harness.diagnostics().iter().map(ToString::to_string).collect();
    assert!(warnings.len() == 1 && warnings[0].starts_with(broken), "{warnings:?}");
}

#[tokio::test]
async fn failures_are_what_the_server_says() {
    let rig = Rig::new();
    let model = ScriptedModel::new().agent(
        "main",
        [
            call(Turn::new(), "fail", json!({"how": "tool"})),
            call(Turn::new(), "fail", json!({"how": "protocol"})),
            call(Turn::new(), "count", json!({"to": "many"})),
            Turn::new().text("Failed."),
        ],
    );
    let harness = harness(model, rig.server()).build().unwrap();
    let results = results(&events(harness.stream_events("go")).await);
    assert_eq!(results[0], (ToolState::Error, "no such city".to_owned()));
    let refused = "the MCP server \"rig\" refused the call: no such city (-32602)";
    assert_eq!(results[1], (ToolState::Error, refused.to_owned()));
    assert!(results[2].1.contains("/to"), "checked before it is sent: {}", results[2].1);
    assert_eq!(rig.count("call count"), 0);
}

#[tokio::test]
async fn a_call_without_a_word_is_given_up() {
    let rig = Rig::new();
    let model = ScriptedModel::new()
        .agent("main", [call(Turn::new(), "hang", json!({})), Turn::new().text("Given up.")]);
    let harness = harness(model, rig.server().with_timeout(Duration::from_secs(1))).build().unwrap();
    let results = results(&events(harness.stream_events("go")).await);
    let silent = "the MCP server \"rig\" did not answer for 1 s, so the call was cancelled";
    assert_eq!(results, [(ToolState::Error, silent.to_owned())]);
    rig.until("cancelled").await;
}

#[tokio::test]
async fn a_server_knows_none_of_our_keys() {
    let rig = Rig::new();
    let model =
        ScriptedModel::new().agent("main", [call(Turn::new(), "env", json!({})), Turn::new().text("Seen.")]);
    let server =
        rig.server().with_env("GIVEN", "${CARGO_MANIFEST_DIR}-x").with_env("DEFAULT", "${NO_SUCH:-y}");
    let harness = harness(model, server).build().unwrap();
    let (_, text) = results(&events(harness.stream_events("go")).await).remove(0);
    let known: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (&known["GIVEN"], &known["DEFAULT"]),
        (&json!(concat!(env!("CARGO_MANIFEST_DIR"), "-x")), &json!("y"))
    );
    assert!(known.get("PATH").is_some());
    // Cargo sets this one for the test, which did not pass it on.
    assert!(
        std::env::var("CARGO_MANIFEST_DIR").is_ok() && known.get("CARGO_MANIFEST_DIR").is_none(),
        "{known}"
    );
}

#[tokio::test]
async fn a_server_that_does_not_start_is_said_and_the_run_goes_on() {
    async fn check(server: Server, expected: &str) {
        let model = ScriptedModel::new().agent("main", [Turn::new().text("Without it.")]);
        let harness = harness(model, server).build().unwrap();
        assert_eq!(harness.call("go").await.unwrap().text(), "Without it.");
        harness.ready().await;
        assert_eq!(
            harness.diagnostics().iter().map(ToString::to_string).collect::<Vec<_>>(),
            [format!("error: the MCP server \"rig\" can't be used: {expected}")]
        );
    }
    let none = "`/no/such/program --flag` does not start: No such file or directory (os error 2)";
    check(Server::command("/no/such/program", ["--flag"]), none).await;
    let unset = Server::command("cat", ["${NO_SUCH_VARIABLE}"]);
    check(
        unset,
        "the environment has no variable NO_SUCH_VARIABLE; set it, or write ${NO_SUCH_VARIABLE:-default}",
    )
    .await;
    let rig = Rig::new();
    let silent = rig.server_with(&["--silent"]).with_start_timeout(Duration::from_secs(1));
    check(silent, "it did not answer within 1 s; does it speak MCP? (signal: 15 (SIGTERM))").await;
    assert!(!rig.is_alive());
    // What it says goes into no message if it is a secret.
    let broken = rig.server_with(&["--broken"]).with_env("TOKEN", "${CARGO_MANIFEST_DIR}");
    let harness = harness(ScriptedModel::new(), broken).build().unwrap();
    harness.ready().await;
    let warning = harness.diagnostics()[0].to_string();
    assert!(warning.ends_with("(exit status: 4); it said last: my token is [secret]"), "{warning}");
    let refused = Server::http("http://127.0.0.1:9/mcp?key=${CARGO_MANIFEST_DIR}");
    let harness = self::harness(ScriptedModel::new(), refused).build().unwrap();
    harness.ready().await;
    let warning = harness.diagnostics()[0].to_string();
    assert!(
        warning.contains("onnection refused") && !warning.contains(env!("CARGO_MANIFEST_DIR")),
        "{warning}"
    );
}

#[tokio::test]
async fn it_dies_with_the_harness_however_stubborn() {
    let rig = Rig::new();
    let harness = harness(ScriptedModel::new(), rig.server_with(&["--stubborn"])).build().unwrap();
    harness.ready().await;
    assert!(rig.is_alive());
    drop(harness);
    rig.until_dead().await;
    assert_eq!((rig.count("ignores its end"), rig.count("end")), (1, 0), "{:?}", rig.log());

    // A runtime that goes away takes it along at once.
    let rig = Rig::new();
    let server = rig.server_with(&["--stubborn"]);
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let harness = self::harness(ScriptedModel::new(), server).build().unwrap();
        runtime.block_on(harness.ready());
        drop(runtime);
    })
    .join()
    .unwrap();
    rig.until_dead().await;
}

#[tokio::test]
async fn specs_say_whose_tools_an_agent_has() {
    async fn check(build: impl Fn(AgentSpec) -> AgentSpec, listed_only: bool, expected: &str) {
        let rig = Rig::new();
        let (model, seen) = Offered::new(
            ScriptedModel::new()
                .agent("main", [spawn(Turn::new(), "kid"), Turn::new().text("Done.")])
                .agent("kid", [Turn::new().text("Hi.")]),
        );
        let spec = build(AgentSpec::new("kid", "K"));
        let harness =
            harness(model, rig.server().with_listed_only(listed_only)).with_subagent(spec).build().unwrap();
        events(harness.stream_events("go")).await;
        let of = |agent: &str| seen.lock().unwrap().iter().find(|(id, _)| id == agent).unwrap().1.clone();
        assert_eq!(
            (of("main"), of("kid")),
            (if listed_only { "" } else { ALL }.to_owned(), expected.to_owned())
        );
        let mut warnings = harness.diagnostics();
        warnings.retain(|warning| !warning.message().contains("broken"));
        assert!(warnings.is_empty(), "{warnings:?}");
    }
    check(|spec| spec, false, ALL).await;
    check(|spec| spec, true, "").await;
    check(|spec| spec.with_mcp_servers(["rig"]), true, ALL).await;
    check(|spec| spec.with_mcp_servers([""; 0]), false, "").await;
    check(|spec| spec.with_tools(["mcp__rig__echo"]), false, "echo").await;
    check(|spec| spec.with_tools(["mcp__rig__e*", "mcp__rig__die"]), false, "die echo env").await;
    check(|spec| spec.with_disallowed_tools(["mcp__rig__*"]), false, "").await;
    let rig = Rig::new();
    let kid = AgentSpec::new("kid", "K").with_mcp_servers(["rick"]);
    let built = harness(ScriptedModel::new(), rig.server()).with_subagent(kid).build();
    let known = "agent \"kid\" lists MCP server \"rick\", which is not configured; known: rig";
    assert_eq!(built.unwrap_err().to_string(), known);
}

#[tokio::test]
async fn an_agent_has_a_server_of_its_own_if_it_may() {
    let rig = Rig::new();
    let log = rig.log_file();
    let declaration = json!({"command": env!("CARGO_BIN_EXE_mcp_server"), "args": [log], "tools": ["echo"]});
    let mut kid = AgentSpec::new("kid", "K");
    kid.mcp_servers = Some(vec![McpServer::declared("rig", declaration)]);
    let script = || {
        ScriptedModel::new()
            .agent("main", [spawn(spawn(Turn::new(), "kid"), "kid"), Turn::new().text("Done.")])
            .agent("kid", [call(Turn::new(), "echo", json!({"text": "mine"})), Turn::new().text("Hi.")])
    };
    let build = |may: bool| {
        let (model, seen) = Offered::new(script());
        let harness = Harness::builder("main", model)
            .with_subagent(kid.clone())
            .with_agent_servers(may)
            .build()
            .unwrap();
        (harness, seen)
    };
    let (harness, seen) = build(true);
    events(harness.stream_events("go")).await;
    assert_eq!(rig.count("call echo"), 2);
    assert_eq!(rig.count("start"), 1, "one for all instances");
    let seen = seen.lock().unwrap().clone();
    assert!(
        seen.contains(&("main".into(), String::new())) && seen.contains(&("kid".into(), "echo".into())),
        "{seen:?}"
    );
    let (refused, _) = build(false);
    let why = "error: agent \"kid\": MCP server \"rig\": agents may not start servers here; declare it for the program, or allow it \
               with `agent_servers`";
    assert_eq!(refused.diagnostics().iter().map(ToString::to_string).collect::<Vec<_>>(), [why]);
}

#[tokio::test]
async fn an_address_that_an_agent_declares_is_public_or_allowed() {
    // Nothing listens there.
    let url = "http://127.0.0.1:9/mcp";
    let mut kid = AgentSpec::new("kid", "K");
    kid.mcp_servers = Some(vec![McpServer::declared("near", json!({ "url": url }))]);
    let why = async |spec: &AgentSpec, change: fn(HarnessBuilder) -> HarnessBuilder| {
        let harness = Harness::builder("main", ScriptedModel::new()).with_agent_servers(true);
        let harness = change(harness.with_subagent(spec.clone())).build().unwrap();
        harness.ready().await;
        harness.diagnostics().iter().map(ToString::to_string).collect::<String>()
    };
    let refused = why(&kid, |builder| builder).await;
    assert!(refused.contains("127.0.0.1 is not a public address; `remote_hosts` allows"), "{refused}");
    let allowed = why(&kid, |builder| builder.with_remote_host("127.0.0.1".parse().unwrap())).await;
    assert!(allowed.contains(url) && !allowed.contains("public"), "{allowed}");
    // A name is resolved within the reach.
    kid.mcp_servers = Some(vec![McpServer::declared("near", json!({ "url": "http://localhost:9/mcp" }))]);
    let refused = why(&kid, |builder| builder).await;
    assert!(refused.contains("which is not public"), "{refused}");
    // The program's own are its matter.
    let own =
        |builder: HarnessBuilder| builder.with_mcp_server("own", Server::http("http://127.0.0.1:9/mcp"));
    let own = why(&AgentSpec::new("kid", "K"), own).await;
    assert!(own.contains("127.0.0.1:9") && !own.contains("public"), "{own}");
}

/// Returns an agent's file that declares a server with these arguments.
fn declaring(rig: &Rig, more: &str, prompt: &str) -> String {
    let (program, log) = (env!("CARGO_BIN_EXE_mcp_server"), rig.log_file());
    let server = json!({"command": program, "args": [log, more]});
    format!("---\ndescription: A kid\nmcp_servers: {{rig: {server}}}\n---\n{prompt}\n")
}

#[tokio::test]
async fn what_a_file_declares_counts_once_it_is_trusted_and_again_when_it_changes() {
    let (rig, ws) = (Rig::new(), TempDir::new().unwrap());
    let file = ws.path().join("subagents/kid.md");
    fs::create_dir(file.parent().unwrap()).unwrap();
    let write = |more: &str, prompt: &str| fs::write(&file, declaring(&rig, more, prompt)).unwrap();
    write("", "One.");
    let model = ScriptedModel::new()
        .agent("main", (0..9).flat_map(|_| [spawn(Turn::new(), "kid"), Turn::new().text("Done.")]))
        .agent("kid", (0..9).map(|_| Turn::new().text("Hi.")));
    let (seen, trusted): (Arc<Mutex<String>>, Arc<Mutex<String>>) = Default::default();
    let (sees, trusts, home) = (seen.clone(), trusted.clone(), ws.path().to_owned());
    let harness = Harness::builder("main", model)
        .with_workspace(ws.path())
        .with_agent_servers(true)
        .with_trust(move |workspace, part| {
            assert_eq!((workspace, part.file()), (&*home, "subagents/kid.md"));
            *sees.lock().unwrap() = part.hash();
            part.hash() == *trusts.lock().unwrap()
        })
        .build()
        .unwrap();
    let session = harness.open_session("s").await.unwrap();
    let run = async || {
        let ended = events(session.run("go").unwrap()).await;
        assert!(ended.iter().filter(|event| !event.is_root()).count() > 0, "the kid works in any case");
        let warned = harness.diagnostics().iter().any(|found| found.code() == Code::Untrusted);
        (rig.count("start"), warned)
    };
    assert_eq!(run().await, (0, true), "it is not trusted");
    trusted.lock().unwrap().clone_from(&seen.lock().unwrap());
    write("", "Two, with a longer prompt.");
    assert_eq!(run().await, (1, false), "it is trusted when it is read again");
    write("--more", "Three, changed in the session.");
    assert_eq!(run().await, (1, true), "what has changed is not trusted, and not started");
    harness.shutdown(Duration::ZERO).await;
}

#[tokio::test]
async fn plan_mode_believes_trusted_servers_only() {
    async fn check(trusted: bool, expected: ToolState) {
        let rig = Rig::new();
        let model = ScriptedModel::new().agent(
            "main",
            [call(Turn::new(), "echo", json!({"text": "plan"})), Turn::new().text("Planned.")],
        );
        let harness = harness(model, rig.server().with_trust(trusted)).build().unwrap();
        let run = harness.stream_events(RunRequest::new("go").with_plan_mode(true));
        let seen = results(&events(run).await);
        assert_eq!(seen[0].0, expected, "{seen:?} {:?}", harness.diagnostics());
    }
    check(true, ToolState::Success).await;
    check(false, ToolState::Denied).await;
}

#[test]
fn a_server_has_a_name() {
    let built = Harness::builder("main", ScriptedModel::new())
        .with_mcp_server("my server", Server::command("a", [""; 0]))
        .build();
    let error =
        "\"my server\" is not a valid name for an MCP server: use at most 32 letters, digits, - and single _";
    assert_eq!(built.unwrap_err().to_string(), error);
}

/// Returns what `plain` answers after these calls, on a server with that habit.
async fn after(calls: &[&str], server: Server) -> Vec<(ToolState, String)> {
    let turns = calls.iter().map(|name| call(Turn::new(), name, json!({})));
    let model = ScriptedModel::new().agent("main", turns.chain([Turn::new().text("Done.")]));
    let harness = harness(model, server).build().unwrap();
    let results = results(&events(harness.stream_events("go")).await);
    harness.shutdown(Duration::ZERO).await;
    results
}

#[tokio::test]
async fn a_server_that_reads_no_more_is_ended_all_the_same() {
    let rig = Rig::new();
    // More than the pipe holds, so that writing it never ends.
    let big = call(Turn::new(), "plain", json!({ "text": "y".repeat(1 << 20) }));
    let model = ScriptedModel::new().agent("main", [big, Turn::new().text("Done.")]);
    let server = rig.odd("deaf").with_timeout(Duration::from_secs(1));
    let harness = harness(model, server).build().unwrap();
    let (state, _) = results(&events(harness.stream_events("go")).await).remove(0);
    assert_eq!(state, ToolState::Error);
    let ended = tokio::time::timeout(Duration::from_secs(15), harness.shutdown(Duration::ZERO)).await;
    assert!(ended.is_ok() && !rig.is_alive(), "{:?}", rig.log());
}

#[tokio::test]
async fn a_death_is_noticed_though_a_child_holds_its_pipe() {
    let rig = Rig::new();
    let results = after(&["die", "plain"], rig.odd("family")).await;
    assert!(results[0].1.contains("it closed the connection (exit status: 3)"), "{results:?}");
    assert_eq!(results[1], (ToolState::Success, "plain".to_owned()));
    assert_eq!(rig.count("start"), 2);
    assert!(!rig.lives("child "), "what it started ends with it");
}

#[test]
fn a_client_outlives_its_runtime() {
    let rig = Rig::new();
    let plain = |turn| call(turn, "plain", json!({}));
    let model = ScriptedModel::new().agent(
        "main",
        [plain(Turn::new()), Turn::new().text("1"), plain(Turn::new()), Turn::new().text("2")],
    );
    let harness = harness(model, rig.odd("none")).build().unwrap();
    for number in 1..=2 {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let events: Vec<_> = runtime.block_on(async {
            let session = harness.open_session("s").await.unwrap();
            session.run("go").unwrap().collect().await
        });
        assert_eq!(results(&events), [(ToolState::Success, "plain".to_owned())], "{number}");
        assert_eq!(rig.count("start"), number);
        runtime.block_on(async {
            if number == 2 {
                tokio::time::timeout(Duration::from_secs(10), harness.shutdown(Duration::ZERO))
                    .await
                    .unwrap();
            }
        });
    }
    // Without a runtime it fails, and no caller hangs.
    let client = mainstem::mcp::Client::new("rig", rig.odd("none")).unwrap();
    futures_util::FutureExt::now_or_never(mainstem::tool::ToolSource::ready(&client)).unwrap();
    let problems = mainstem::tool::ToolSource::problems(&client);
    assert!(problems[0].contains("there is no reactor running"), "{problems:?}");
}

#[tokio::test]
async fn progress_of_a_call_that_is_over_is_no_other_calls() {
    let rig = Rig::new();
    // A new connection counts its calls from the same number.
    let results = after(&["plain", "plain", "die", "plain", "plain"], rig.odd("late")).await;
    let mut late: Vec<_> =
        results.iter().flat_map(|(_, text)| text.lines()).filter(|line| line.contains(": of ")).collect();
    assert!(results.iter().all(|(_, text)| text.matches(": of ").count() <= 1), "{results:?}");
    late.sort_unstable();
    let said = late.len();
    late.dedup();
    assert_eq!(late.len(), said, "{results:?}");
}

#[tokio::test]
async fn every_call_of_a_dropped_run_is_cancelled() {
    let rig = Rig::new();
    let many = (0..200).fold(Turn::new(), |turn, _| call(turn, "hang", json!({})));
    let harness = harness(ScriptedModel::new().agent("main", [many]), rig.server()).build().unwrap();
    let mut run = harness.stream_events("go");
    let all_begun = async {
        while rig.count("call hang") < 200 {
            tokio::time::sleep(ms(20)).await;
        }
    };
    tokio::select! {
        () = all_begun => {}
        () = async { while run.next().await.is_some() {} } => panic!("they hang"),
    }
    drop(run);
    let began = Instant::now();
    while rig.count("cancelled") < 200 {
        assert!(began.elapsed() < Duration::from_secs(20), "{} of 200", rig.count("cancelled"));
        tokio::time::sleep(ms(20)).await;
    }
}

#[tokio::test]
async fn limits_of_time_are_what_they_say() {
    let rig = Rig::new();
    let results = after(&["plain"], rig.odd("none").with_timeout(Duration::MAX)).await;
    assert_eq!(results, [(ToolState::Success, "plain".to_owned())]);
    // Each word about its progress gives a call the same time again.
    let slow = call(Turn::new(), "count", json!({ "to": 4, "pause": 500 }));
    let model = ScriptedModel::new().agent("main", [slow, Turn::new().text("Done.")]);
    let harness = harness(model, rig.server().with_timeout(Duration::from_secs(1))).build().unwrap();
    let (state, text) = self::results(&events(harness.stream_events("go")).await).remove(0);
    assert!(state == ToolState::Success && text.ends_with("counted"), "{text}");
}

#[tokio::test]
async fn a_list_without_an_end_has_one() {
    let rig = Rig::new();
    let client = mainstem::mcp::Client::new("rig", rig.odd("eager")).unwrap();
    let began = Instant::now();
    mainstem::tool::ToolSource::ready(&client).await;
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    tokio::time::sleep(ms(500)).await;
    assert!(rig.count("list") < 10, "it is not asked without a pause: {}", rig.count("list"));
    client.shutdown().await;
    // What was shut down is not started again.
    let starts = rig.count("start");
    mainstem::tool::ToolSource::ready(&client).await;
    tokio::time::sleep(ms(200)).await;
    assert_eq!(rig.count("start"), starts);
    let client = mainstem::mcp::Client::new("rig", rig.odd("pages")).unwrap();
    mainstem::tool::ToolSource::ready(&client).await;
    let problems = mainstem::tool::ToolSource::problems(&client);
    assert!(problems[0].contains("it lists more than 1000 tools"), "{problems:?}");
}
