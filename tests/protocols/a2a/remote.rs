//! Servers of the official SDK in Python as remote children of ours.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Stdio},
    time::Duration,
};

use mainstem::{event::Decision, prelude::*, spec::Protocol};
use mainstem_testing::{laws, render};
use serde_json::json;

use crate::{
    restart::check_each_cut,
    support::{Folder, Served},
};

/// A server in Python, killed when it is dropped.
struct Peer {
    url: String,
    process: Child,
}

impl Peer {
    /// Starts a server with these arguments; `None` if its packages are not installed.
    fn start(arguments: &[&str]) -> Option<Self> {
        let mut command = Folder::find("a2a")?.command("server.py");
        let mut process =
            command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut url).unwrap();
        Some(Self { url: url.trim().to_owned(), process })
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A fleet whose root spawns the remote agent with its own task, and sends it further messages.
fn fleet(url: &str, tasks: &[&str]) -> Harness {
    let (first, further) = tasks.split_first().unwrap();
    let spawn = Turn::new().call("agent_spawn", json!({ "agent_id": "far", "task": first, "label": "it" }));
    let sends =
        further.iter().map(|task| Turn::new().call("agent_send", json!({ "label": "it", "message": task })));
    let turns = std::iter::once(spawn).chain(sends).chain([Turn::new().text("Done.")]);
    let far = AgentSpec::new("far", "Helps").with_url(url).with_protocol(Protocol::A2a);
    Harness::builder("main", ScriptedModel::new().agent("main", turns))
        .with_remote_host("127.0.0.1".parse().unwrap())
        .with_subagent(far)
        .build()
        .unwrap()
}

/// Runs a fleet to its end, calls a function with each event, and returns what the remote child
/// does, a line for each event.
async fn run(harness: &Harness, mut steer: impl FnMut(&RunHandle, &AgentEvent)) -> String {
    let mut run = harness.stream_events(RunRequest::new("go"));
    let (handle, mut events) = (run.handle(), Vec::new());
    let read = async {
        while let Some(event) = run.next().await {
            steer(&handle, &event);
            events.push(event);
        }
    };
    tokio::time::timeout(Duration::from_secs(30), read).await.unwrap_or_else(|_| panic!("it hangs"));
    laws(&events).unwrap_or_else(|error| panic!("{error}\n{}", render(&events)));
    let lines = events.iter().filter(|event| !event.is_root()).map(line);
    lines.collect::<Vec<_>>().join("\n")
}

fn line(event: &AgentEvent) -> String {
    let what = match &event.kind {
        EventKind::TextBlockDelta { delta, .. }
        | EventKind::ThinkingBlockDelta { delta, .. }
        | EventKind::DataBlockDelta { delta, .. }
        | EventKind::ToolCallDelta { delta, .. }
        | EventKind::ToolResultTextDelta { delta, .. } => format!("{delta:?}"),
        EventKind::AgentEnd { outcome, error, .. } => {
            let error = error.as_ref().map(|error| format!(" {}: {}", error.code, error.message));
            format!("{outcome:?}{}", error.unwrap_or_default())
        }
        EventKind::ToolResultEnd { state, .. } => format!("{state:?}"),
        EventKind::StreamFallback { reason } => reason.clone(),
        _ => String::new(),
    };
    let depth = "  ".repeat(usize::from(event.depth().saturating_sub(1)));
    format!("{depth}{} {what}", event.kind.name()).trim_end().to_owned()
}

/// What a remote child does with these tasks, on a server with these arguments.
async fn does(arguments: &[&str], tasks: &[&str]) -> Option<String> {
    let peer = Peer::start(arguments)?;
    Some(run(&fleet(&peer.url, tasks), |_, _| {}).await)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn artifacts_are_the_text_of_a_child() {
    let Some(rpc) = does(&["rpc"], &["stream"]).await else { return };
    insta::assert_snapshot!(rpc, @r#"
    AGENT_START
    CUSTOM
    MODEL_CALL_START
    THINKING_BLOCK_START
    THINKING_BLOCK_DELTA "I begin."
    THINKING_BLOCK_END
    TEXT_BLOCK_START
    TEXT_BLOCK_DELTA "Paris "
    TEXT_BLOCK_DELTA "has "
    TEXT_BLOCK_DELTA "309 stations."
    TEXT_BLOCK_END
    TEXT_BLOCK_START
    TEXT_BLOCK_DELTA "\n```json\n{\"stations\":309.0}\n```\n"
    TEXT_BLOCK_END
    DATA_BLOCK_START
    DATA_BLOCK_DELTA "cG5n"
    DATA_BLOCK_END
    MODEL_CALL_END
    AGENT_RESULT
    AGENT_END Success
    "#);
    assert_eq!(does(&["rest"], &["stream"]).await.unwrap(), rpc);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_end_of_a_task_is_one_of_a_child() {
    let Some(peer) = Peer::start(&["rpc"]) else { return };
    let mut ends = Vec::new();
    for task in ["answer", "message", "fail", "reject", "auth"] {
        let all = run(&fleet(&peer.url, &[task]), |_, _| {}).await;
        let text: Vec<_> = all.lines().filter(|line| line.starts_with("TEXT_BLOCK_DELTA")).collect();
        ends.push(format!("{task}: {} {}", text.join(" "), all.lines().last().unwrap()));
    }
    insta::assert_snapshot!(ends.join("\n"), @r#"
    answer: TEXT_BLOCK_DELTA "You said answer." AGENT_END Success
    message: TEXT_BLOCK_DELTA "Just a message." AGENT_END Success
    fail: TEXT_BLOCK_DELTA "I try." AGENT_END Error remote_failed: the remote agent failed: the disk is full
    reject:  AGENT_END Error remote_rejected: the remote agent rejected the task: not my field
    auth:  AGENT_END Error remote_auth_required: the remote agent requires authentication; give it as a header of the declaration: log in at https://login.example
    "#);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_further_message_continues_the_conversation() {
    let Some(all) = does(&["rpc"], &["hello", "again"]).await else { return };
    assert!(all.contains("TEXT_BLOCK_DELTA \"You said hello, then again.\""), "{all}");
}

/// Answers each request for approval.
fn answers(decision: Decision) -> impl FnMut(&RunHandle, &AgentEvent) {
    move |run, event| {
        if let EventKind::RequireUserConfirm { confirm_id, .. } = &event.kind {
            run.confirm(confirm_id, decision.clone()).unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_answers_what_a_remote_agent_asks() {
    let Some(peer) = Peer::start(&["rest"]) else { return };
    let answer = json!({ "question": "Which city?", "answer": "Rome" });
    let all = run(&fleet(&peer.url, &["ask"]), answers(Decision::AllowWith(answer))).await;
    insta::assert_snapshot!(all, @r#"
    AGENT_START
    CUSTOM
    MODEL_CALL_START
    THINKING_BLOCK_START
    THINKING_BLOCK_DELTA "I begin."
    THINKING_BLOCK_END
    TOOL_CALL_START
    TOOL_CALL_DELTA "{\"question\":\"Which city?\",\"answer\":\"\"}"
    TOOL_CALL_END
    MODEL_CALL_END
    REQUIRE_USER_CONFIRM
    USER_CONFIRM_RESULT
    TOOL_RESULT_START
    TOOL_RESULT_TEXT_DELTA "Rome"
    TOOL_RESULT_END Success
    MODEL_CALL_START
    THINKING_BLOCK_START
    THINKING_BLOCK_DELTA "I begin."
    THINKING_BLOCK_END
    TEXT_BLOCK_START
    TEXT_BLOCK_DELTA "You said ask, then Rome."
    TEXT_BLOCK_END
    MODEL_CALL_END
    AGENT_RESULT
    AGENT_END Success
    "#);
    let polled = Peer::start(&["rpc", "poll"]).unwrap();
    let all = run(&fleet(&polled.url, &["ask"]), answers(Decision::Deny("why?".into()))).await;
    assert!(all.contains("TEXT_BLOCK_DELTA \"You said ask, then no: why?.\""), "{all}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_is_not_streamed_is_polled() {
    let Some(all) = does(&["rpc", "poll"], &["cut"]).await else { return };
    assert!(all.contains("STREAM_FALLBACK the server does not stream"), "{all}");
    assert_eq!(texts(&all), "one two three four five", "{all}");
}

/// Joins the texts of a child.
fn texts(all: &str) -> String {
    let deltas = all.lines().filter_map(|line| line.strip_prefix("TEXT_BLOCK_DELTA "));
    deltas.map(|delta| serde_json::from_str::<String>(delta).unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_is_cut_goes_on_without_loss_or_repetition() {
    for binding in ["rpc", "rest"] {
        let Some(all) = does(&[binding], &["cut"]).await else { return };
        assert_eq!(texts(&all), "one two three four five", "{all}");
        assert!(all.ends_with("AGENT_END Success"), "{all}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_ends_the_task_there() {
    let Some(peer) = Peer::start(&["rpc"]) else { return };
    let begun = std::time::Instant::now();
    let all = run(&fleet(&peer.url, &["slow"]), |run, event| {
        if matches!(event.kind, EventKind::TextBlockDelta { .. }) && !event.is_root() {
            run.cancel_because(CancelReason::user("a test"));
        }
    })
    .await;
    assert!(begun.elapsed() < Duration::from_secs(10) && all.contains("AGENT_END Cancelled"), "{all}");
    let all = run(&fleet(&peer.url, &["cancels"]), |_, _| {}).await;
    assert_eq!(texts(&all), "1 cancelled", "{all}");
}

/// A fleet on another server of ours: a root with a helper, which asks before it shouts.
fn far() -> Harness {
    let spawn = json!({ "agent_id": "helper", "task": "help" });
    let model = ScriptedModel::new()
        .agent_on(
            "far",
            "delegate",
            [Turn::new().text("I ask.").call("agent_spawn", spawn), Turn::new().text("Done.")],
        )
        .agent(
            "helper",
            [
                Turn::new().thinking("Hm.").call("shout", json!({ "word": "hey" })),
                Turn::new().text("I help."),
            ],
        );
    let shout = |_, _: serde_json::Map<String, serde_json::Value>| async move { Ok::<_, ToolError>("HEY") };
    Harness::builder("far", model)
        .with_tool(tool_fn("shout", "Shouts", shout))
        .with_subagent(AgentSpec::new("helper", "Helps").with_tools(["shout"]))
        .with_permissions(RuleSet::default().with_pattern(Effect::Ask, "shout").unwrap())
        .build()
        .unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_of_ours_shows_the_agents_below_its_own() {
    let served = Served::start(&far(), &[mainstem_server::Protocol::A2a]).await;
    let spec = AgentSpec::new("far", "Helps")
        .with_url(&served.url)
        .with_header("Authorization", "Bearer ${MAINSTEM_TEST_TOKEN:-secret-of-the-tests}");
    let spawn = || Turn::new().call("agent_spawn", json!({ "agent_id": "far", "task": "delegate this" }));
    let near = |protocol| {
        let model = ScriptedModel::new().agent("main", [spawn(), Turn::new().text("So.")]);
        let builder = Harness::builder("main", model).with_remote_host("127.0.0.1".parse().unwrap());
        builder.with_subagent(spec.clone().with_protocol(protocol)).build().unwrap()
    };
    // The extension shows what Mainstem's own protocol shows.
    let all = nameless(&run(&near(Protocol::A2a), answers(Decision::Allow)).await);
    let own = run(&near(Protocol::Mainstem), answers(Decision::Allow)).await;
    assert_eq!(all, nameless(&own));
    insta::assert_snapshot!(all, @r#"
    AGENT_START
    MODEL_CALL_START
    TEXT_BLOCK_START
    TEXT_BLOCK_DELTA "I ask."
    TEXT_BLOCK_END
    TOOL_CALL_START
    TOOL_CALL_DELTA "{\"agent_id\":\"helper\",\"task\":\"help\"}"
    TOOL_CALL_END
    MODEL_CALL_END
    TOOL_RESULT_START
      AGENT_START
      MODEL_CALL_START
      THINKING_BLOCK_START
      THINKING_BLOCK_DELTA "Hm."
      THINKING_BLOCK_END
      TOOL_CALL_START
      TOOL_CALL_DELTA "{\"word\":\"hey\"}"
      TOOL_CALL_END
      MODEL_CALL_END
      REQUIRE_USER_CONFIRM
      USER_CONFIRM_RESULT
      TOOL_RESULT_START
      TOOL_RESULT_TEXT_DELTA "HEY"
      TOOL_RESULT_END Success
      MODEL_CALL_START
      TEXT_BLOCK_START
      TEXT_BLOCK_DELTA "I help."
      TEXT_BLOCK_END
      MODEL_CALL_END
      AGENT_RESULT
      AGENT_END Success
    TOOL_RESULT_END Success
    MODEL_CALL_START
    TEXT_BLOCK_START
    TEXT_BLOCK_DELTA "Done."
    TEXT_BLOCK_END
    MODEL_CALL_END
    AGENT_RESULT
    AGENT_END Success
    "#);
}

/// Returns a timeline without the ids in the result of `agent_spawn`.
fn nameless(all: &str) -> String {
    let lines = all.lines().filter(|line| !line.contains("agent_key: "));
    lines.collect::<Vec<_>>().join("\n")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_background_task_outlives_its_process() {
    for arguments in [&["rpc"][..], &["rest"], &["rpc", "poll"]] {
        let Some(peer) = Peer::start(arguments) else { return };
        let far = AgentSpec::new("far", "Helps").with_url(&peer.url).with_protocol(Protocol::A2a);
        check_each_cut(far.clone(), "stream").await;
        check_each_cut(far, "answer").await;
    }
}
