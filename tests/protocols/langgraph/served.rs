//! The official SDKs, unchanged, as clients of our server.

use mainstem::{
    encode::{Encoder, LangGraph, LangGraphOptions, StreamMode},
    message::Usage,
    prelude::*,
};
use mainstem_server::Protocol;
use serde_json::json;

use crate::{
    agui::fleets::random as random_fleets,
    proxy::{Fault, proxy},
    support::{Folder, Served},
};

/// Runs a scenario of a script against a server, and returns what it prints; `None` if the packages
/// are not installed.
async fn run(script: &str, scenario: &str, model: ScriptedModel, fault: Option<Fault>) -> Option<String> {
    let folder = Folder::find("langgraph")?;
    let server = Served::start(&harness(model), &[Protocol::LangGraph]).await;
    let url = match fault {
        Some(fault) => proxy(&server.url, fault).await,
        None => server.url.clone(),
    };
    let said = folder.run(script, &format!("{url}#{scenario}")).await;
    Some(without_ids(&said))
}

/// Replaces UUIDs.
fn without_ids(text: &str) -> String {
    const LENGTH: usize = 36;
    let is_id = |part: &str| part.bytes().filter(|byte| *byte == b'-').count() == 4;
    let is_part = |c: char| c.is_ascii_hexdigit() || c == '-';
    let (mut rest, mut out) = (text, String::new());
    while let Some(c) = rest.chars().next() {
        let word = rest.get(..LENGTH).filter(|word| word.chars().all(is_part) && is_id(word));
        let taken = word.map_or_else(|| c.len_utf8(), |_| LENGTH);
        out.push_str(word.map_or_else(|| &rest[..taken], |_| "<id>"));
        rest = &rest[taken..];
    }
    out
}

fn harness(model: ScriptedModel) -> Harness {
    let send = |_, given: serde_json::Map<String, serde_json::Value>| async move {
        Ok::<_, ToolError>(format!("sent to {}", given["to"].as_str().unwrap_or_default()))
    };
    Harness::builder("main", model)
        .with_tool(tool_fn("send", "Sends", send))
        .with_subagent(AgentSpec::new("researcher", "Finds out"))
        .with_permissions(RuleSet::default().with_pattern(Effect::Ask, "send").unwrap())
        .build()
        .unwrap()
}

/// A leader that thinks and asks a child, and then answers a second message.
fn team() -> ScriptedModel {
    let spawn = json!({ "agent_id": "researcher", "task": "north" });
    let first = Turn::new().thinking("Hm.").text("I ask ").text("one.").call("agent_spawn", spawn);
    let turns = [first, Turn::new().text("All ").text("done."), Turn::new().text("Nothing new.")];
    ScriptedModel::new().agent("main", turns).agent("researcher", [Turn::new().text("It is ").text("cold.")])
}

fn long() -> ScriptedModel {
    let turn = (0..400).fold(Turn::new(), |turn, number| turn.text(format!("{number} ")));
    ScriptedModel::new().agent("main", [turn])
}

fn sender() -> ScriptedModel {
    let call = || Turn::new().call("send", json!({ "to": "you" }));
    let turns = [
        call(),
        Turn::new().text("Sent."),
        call(),
        Turn::new().text("Not sent."),
        call(),
        Turn::new().text("Sent."),
    ];
    ScriptedModel::new().agent("main", turns)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn python_reads_a_run_in_several_modes() {
    let Some(said) = run("sdk.py", "stream", team(), None).await else { return };
    insta::assert_snapshot!(said, @r#"
    assistants ['main'] main
    first metadata last end
    modes ['custom', 'custom|child', 'end', 'messages', 'messages|child', 'metadata', 'updates', 'updates|child', 'values', 'values|child']
    texts {'': 'I ask one.All done.', 'child': 'It is cold.'}
    ordered True
      human 'go'
      ai 'I ask one.' task{"description": "north", "subagent_type": "researcher"}
      tool 'agent_key: agent:researcher:<id>\nagent_id: researcher\nsession_id: sub-<id>\nstatus: completed\nreply:\nIt is cold.'
      ai 'All done.'
    state True []
    history [True]
    run success [True]
    joined True
    resumed True
    waited ["human 'and now?'", "ai 'Nothing new.'"] 6
    thread idle 6
    "#);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn python_reads_growing_messages() {
    let Some(said) = run("sdk.py", "messages", team(), None).await else { return };
    insta::assert_snapshot!(said, @r#"
    ai 'I ask one.' task{"description": "north", "subagent_type": "researcher"}
    tool 'agent_key: agent:researcher:<id>\nagent_id: researcher\nsession_id: sub-<id>\nstatus: completed\nreply:\nIt is cold.'
    ai 'All done.'
    "#);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn python_goes_on_after_a_cut() {
    for bytes in [20_000, 33_333] {
        let Some(said) = run("sdk.py", "long", long(), Some(Fault::Cut(bytes))).await else { return };
        assert_eq!(said, "text True True\nids True\n");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn python_answers_an_interrupt() {
    let Some(said) = run("sdk.py", "interrupt", sender(), None).await else { return };
    insta::assert_snapshot!(said, @r#"
    asked [{'name': 'send', 'args': {'to': 'you'}, 'description': 'send requires approval'}] end
    state ['tools'] True
    thread interrupted
    then ["tool 'sent to you'", "ai 'Sent.'"] end
    asked [{'name': 'send', 'args': {'to': 'you'}, 'description': 'send requires approval'}] end
    state ['tools'] True
    thread interrupted
    then ["tool 'send was denied: not today'", "ai 'Not sent.'"] end
    waited ['__interrupt__']
    resumed ["ai 'Sent.'"]
    "#);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn python_cancels_a_run() {
    let model = ScriptedModel::new().agent("main", [Turn::new().text("I hang").hang()]);
    let Some(said) = run("sdk.py", "cancel", model, None).await else { return };
    assert_eq!(said, "rejected 409 True\nrun interrupted\nstream error UserInterrupt\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn python_reads_why_a_request_is_refused() {
    let Some(said) = run("sdk.py", "refusals", team(), None).await else { return };
    insta::assert_snapshot!(said, @r#"
    404 there is no session "no-such-thread"
    404 there is no run "run-1"
    422 stream_mode "events" is not supported; this server has values, updates, messages, messages-tuple, custom
    422 `interrupt_before` is not supported by this server
    422 the input has messages of a person (`human`), not of "ai"
    404 this server runs main, not "unknown"
    404 Not Found
    401 invalid token
    "#);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_parser_and_the_messages_of_the_sdk_read_frames_of_random_fleets() {
    let Some(folder) = Folder::find("langgraph") else { return };
    let count = if std::env::var_os("RUN_SLOW_TESTS").is_some() { 500 } else { 60 };
    let mut fleets = random_fleets(count).await;
    for seed in 0..8 {
        fleets.push(harness(random(seed)).stream_events("go").collect().await);
    }
    let files = tempfile::TempDir::new().unwrap();
    for (number, events) in fleets.iter().enumerate() {
        let mut options = LangGraphOptions::new("run-1", "s", "main");
        options.modes = StreamMode::ALL.into_iter().collect();
        options.subgraphs = true;
        let mut encoder = LangGraph::new(options);
        let mut bytes = encoder.begin().to_vec();
        events.iter().for_each(|event| bytes.extend_from_slice(&encoder.event(event)));
        bytes.extend_from_slice(&encoder.end());
        std::fs::write(files.path().join(format!("{number:04}")), bytes).unwrap();
    }
    let said = folder.run("sdk.py", &format!("{}#parse", files.path().display())).await;
    assert_eq!(said, "metadata end metadata error True\n");
}

/// Returns scripts of a leader and its children that differ with the seed.
fn random(seed: u64) -> ScriptedModel {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1);
    let mut next = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut said = |mut turn: Turn| {
        for part in 0..next(6) {
            turn = match next(3) {
                0 => turn.thinking(format!("thought {part} ")),
                _ => turn.text(format!("é{part} \"quoted\"\n")),
            };
        }
        turn
    };
    let mut turns = Vec::new();
    for number in 0..3 {
        let task = format!("task {number}");
        let turn = said(Turn::new().usage(Usage::new(number, 2)));
        turns.push(turn.call("agent_spawn", json!({ "agent_id": "researcher", "task": task })));
    }
    turns.push(said(Turn::new()).text("Done."));
    let children = (0..3).map(|_| said(Turn::new()).text("It is so."));
    let children: Vec<_> = children.collect();
    ScriptedModel::new().agent("main", turns).agent("researcher", children)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn javascript_shows_children_as_subagents() {
    let Some(said) = run("sdk.mjs", "subagents", team(), None).await else { return };
    insta::assert_snapshot!(said, @r#"
    complete researcher north "agent_key: agent:researcher:<id>\nagent_id: researcher\nsession_id: sub-<id>\nstatus: completed\nreply:\nIt is cold." ["ai It is cold."]
      human "go"
      ai "I ask one."
      tool "agent_key: agent:researcher:<id>\nagent_id: researcher\nsession_id: sub-<id>\nstatus: completed\nreply:\nIt is cold."
      ai "All done."
    "#);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn javascript_goes_on_after_a_cut_and_answers_an_interrupt() {
    let Some(said) = run("sdk.mjs", "long", long(), Some(Fault::Cut(90_000))).await else { return };
    assert_eq!(said, "text true ids true\n");
    let Some(said) = run("sdk.mjs", "interrupt", sender(), None).await else { return };
    assert_eq!(
        said,
        "asked [{\"name\":\"send\",\"args\":{\"to\":\"you\"},\"description\":\"send requires approval\"}]\ndone \"Sent.\"\n"
    );
}
