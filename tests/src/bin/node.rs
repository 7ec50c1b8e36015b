//! A server that shares a database with others, for tests that kill, pause and cut it off.

use std::{error::Error, io::Write as _, time::Duration};

use mainstem::{model::scripted::Turn, prelude::*, spec, workspace::SessionFiles};
use mainstem_postgres::{Node, Settings};
use mainstem_server::{OnLost, Server, Tokens};
use serde_json::{Map, Value, json};
use tokio::{net::TcpListener, time::timeout};
use tokio_util::sync::CancellationToken;

/// A port on which nothing listens.
const NOWHERE: &str = "http://127.0.0.1:9";

/// How many turns the script of the leader has: more than any session of the tests needs.
const TURNS: usize = 400;

/// How long runs may continue after a signal to stop, in milliseconds, unless `GRACE_MS` says it.
const GRACE: u64 = 300;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, name, lease, tokens, files, workspace] = &*arguments else {
        return Err("usage: node <url> <name> <lease in ms> <tokens> <files> <workspace>".into());
    };
    std::fs::create_dir_all(workspace)?;
    let tokens = if tokens.is_empty() { Tokens::new() } else { Tokens::parse(tokens)? };
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(false).init();
    let lease = Duration::from_millis(lease.parse()?);
    let node = Node::join(Settings::parse(url)?.with_name(name).with_lease(lease)).await?;
    let far = AgentSpec::new("far", "F").with_url(std::env::var("FAR").unwrap_or_else(|_| NOWHERE.into()));
    let harness = Harness::builder("main", script())
        .with_remote_host("127.0.0.1".parse()?)
        .with_subagent(far)
        .with_subagent(AgentSpec::new("kid", "K"))
        .with_subagent(AgentSpec::new("keen", "K").with_on_lost(spec::OnLost::Resume))
        .with_tool(tool_fn("poke", "P", |_, _: Map<String, Value>| async { Ok::<_, ToolError>("ok") }))
        .with_permissions(RuleSet::default().with_pattern(Effect::Ask, "poke")?)
        .with_workspace(workspace)
        .with_file_tools(true)
        .with_session_files(SessionFiles::open(files)?)
        .with_journal(node.journal())
        .with_task_store(node.tasks())
        .build()?;
    // A run that waits for an approval is one of them.
    let server = Server::new(harness.clone()).with_tokens(tokens).with_max_runs(400);
    let closes = std::env::var_os("CLOSE_LOST").is_some();
    let server = server.with_on_lost(if closes { OnLost::Close } else { OnLost::Resume }).build()?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    writeln!(std::io::stdout(), "{}", listener.local_addr()?.port())?;
    let stop = CancellationToken::new();
    let grace = std::env::var("GRACE_MS").map_or(Ok(GRACE), |grace| grace.parse())?;
    let grace = Duration::from_millis(grace);
    let stopped = async {
        let mut signal = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
        signal.recv().await;
        let _ = timeout(grace, server.drain()).await;
        harness.shutdown(Duration::from_secs(2)).await;
        stop.cancel();
        std::io::Result::Ok(())
    };
    tokio::try_join!(
        async { server.serve(listener, stop.clone()).await.map_err(Box::<dyn Error>::from) },
        async { Ok(stopped.await?) }
    )?;
    if let Some(journal) = harness.journal() {
        journal.close().await?;
    }
    Ok(())
}

/// A leader that, turn by turn, looks at its files and starts two children, writes a file and asks
/// for an approval, and answers. In a session that begins with `<far>` or `<kid>`, it starts that
/// agent in the background, once; then it asks for an approval if it is told to wait. In one that
/// begins with `<keen>`, it waits for that agent, which goes on when its server has ended. In one
/// that begins with `<ask>`, it asks for an approval again and again.
fn script() -> ScriptedModel {
    let spawn = |task: &str| json!({ "agent_id": "kid", "task": task });
    let turn = |number: usize| match number % 3 {
        0 => Turn::new()
            .pace(Duration::from_millis(5))
            .say("I ask two children for what they know of it.")
            .call("list_files", json!({}))
            .call("agent_spawn", spawn("left"))
            .call("agent_spawn", spawn("right")),
        1 => Turn::new()
            .text("May I?")
            .call("write_file", json!({ "path": format!("turn-{number}"), "content": "that" }))
            .call("poke", json!({})),
        _ => Turn::new().pace(Duration::from_millis(5)).say("That is all that there is to say about it."),
    };
    let words = "one two three four five six seven eight nine ten";
    let background = |agent: &str, waits: bool| {
        let spawn = json!({ "agent_id": agent, "task": "look slowly", "timeout_seconds": 0 });
        let turn = move |number: usize| match number {
            0 => Turn::new().call("agent_spawn", spawn.clone()),
            1 if waits => Turn::new().call("poke", json!({})),
            _ => Turn::new().text("Begun."),
        };
        (0..TURNS).map(turn)
    };
    let keen = |number: usize| match number {
        0 => Turn::new().call("agent_spawn", json!({ "agent_id": "keen", "task": "look" })),
        _ => Turn::new().text("Begun."),
    };
    ScriptedModel::new()
        .agent_on("main", "<keen>", (0..TURNS).map(keen))
        .agent(
            "keen",
            [Turn::new().pace(Duration::from_millis(300)).say(words), Turn::new().text("So it is.")],
        )
        .agent_on("main", "<far> and wait", background("far", true))
        .agent_on("main", "<far>", background("far", false))
        .agent_on("main", "<kid>", background("kid", false))
        .agent_on("main", "<ask>", (0..TURNS).map(|_| Turn::new().call("poke", json!({}))))
        .agent("main", (0..TURNS).map(turn))
        .agent_on("kid", "slowly", [Turn::new().pace(Duration::from_millis(300)).say(words)])
        .agent("kid", [Turn::new().pace(Duration::from_millis(15)).say(words)])
}
