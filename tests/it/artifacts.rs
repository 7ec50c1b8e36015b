//! Results that are too long for a conversation: the model gets their beginning and end, and the
//! path of the rest.

use mainstem::{message::ToolState, model::scripted::Turn, prelude::*, tool::MAX_RESULT_BYTES};
use mainstem_testing::{laws, render};
use serde_json::{Map, Value, json};

use crate::support::{OpenNow, Spawns, harness};

const LINES: usize = 20_000;

/// Returns the text of the tool.
fn long() -> String {
    (1..=LINES).map(|n| format!("line {n}\n")).collect()
}

fn says(name: &str, text: impl Fn() -> Result<String, ToolError> + Send + Sync + 'static) -> impl Tool {
    let text = std::sync::Arc::new(text);
    tool_fn(name, "Says much", move |_, _: Map<String, Value>| {
        let text = text.clone();
        async move { text() }
    })
}

/// Runs to the end; checks that events are at most as long as results may be.
async fn run(harness: HarnessBuilder) -> Vec<AgentEvent> {
    let events: Vec<_> = harness.build().unwrap().stream_events("go").collect().await;
    laws(&events).unwrap_or_else(|error| panic!("{error}\n{}", render(&events)));
    for event in &events {
        let is_said = matches!(event.kind, EventKind::AgentResult { .. } | EventKind::TextBlockDelta { .. });
        assert!(is_said || event.to_json().len() < 2 * MAX_RESULT_BYTES, "{}", event.kind.name());
    }
    events
}

/// Returns the results of a tool, as the model reads them, from every calling agent.
fn results(events: &[AgentEvent], tool: &str) -> Vec<(ToolState, String)> {
    let ends = events.iter().filter_map(|event| match &event.kind {
        EventKind::ToolResultEnd { tool_call_id, tool_call_name, state, .. } if &**tool_call_name == tool => {
            Some((event.reply_id(), tool_call_id, *state))
        }
        _ => None,
    });
    ends.map(|(reply, call, state)| {
        let text =
            events.iter().filter(|event| event.reply_id() == reply).filter_map(|event| match &event.kind {
                EventKind::ToolResultTextDelta { tool_call_id, delta } if tool_call_id == call => {
                    Some(delta.as_str())
                }
                _ => None,
            });
        (state, text.collect())
    })
    .collect()
}

#[tokio::test(start_paused = true)]
async fn a_long_result_is_a_file_where_its_agent_works() {
    let calls = || {
        [
            Turn::new().call("much", json!({})),
            Turn::new()
                .call("read_file", json!({ "path": "artifacts/s/call-1.txt", "offset": 695, "limit": 1 })),
            Turn::new().text("Read."),
        ]
    };
    let dir = tempfile::tempdir().unwrap();
    let model = ScriptedModel::new().agent("main", calls());
    let harness = harness(model)
        .with_workspace(dir.path())
        .with_file_tools(true)
        .with_tool(says("much", || Ok(long())));
    let harness = harness.build().unwrap();
    let events: Vec<_> = harness.session("s").run("go").unwrap().collect().await;
    laws(&events).unwrap();
    let (state, text) = results(&events, "much").remove(0);
    let (note, shown) = text.split_once('\n').unwrap();
    insta::assert_snapshot!(note, @r#"[The result is too long: 208894 bytes in 20000 lines. All of it is in the file "artifacts/s/call-1.txt"; what is left out here begins in its line 695.]"#);
    assert!(shown.starts_with("line 1\n") && shown.ends_with("line 20000\n") && text.len() < 9 << 10);
    assert_eq!(state, ToolState::Success);
    assert_eq!(std::fs::read_to_string(dir.path().join("artifacts/s/call-1.txt")).unwrap(), long());
    let (_, read) = results(&events, "read_file").remove(0);
    assert!(read.starts_with("695\tline 695\n"), "{read}");
}

#[tokio::test(start_paused = true)]
async fn a_childs_result_is_in_its_own_place_and_its_reply_in_its_parents() {
    let dir = tempfile::tempdir().unwrap();
    let model = ScriptedModel::new()
        .agent("main", [Turn::new().spawn("kid", "go"), Turn::new().text("Done.")])
        .agent("kid", [Turn::new().call("much", json!({})), Turn::new().repeat("so it goes\n", 10_000)]);
    let much = says("much", || Ok(long()));
    let events = run(harness(model)
        .with_workspace(dir.path())
        .with_file_tools(true)
        .with_tool(much)
        .with_subagent(AgentSpec::new("kid", "K")))
    .await;
    let kid = events.iter().find_map(|event| event.source()).unwrap();
    let session = events[0].session_id();
    let own = format!("agents/kid/_/{session}/{}/artifacts/{}", kid.session_id, kid.session_id);
    let files = |path: &str| std::fs::read_dir(dir.path().join(path)).unwrap().count();
    assert_eq!((files(&own), files(&format!("artifacts/{session}"))), (1, 1));
    let (state, reply) = results(&events, "agent_spawn").remove(0);
    assert_eq!(state, ToolState::Success);
    let (note, shown) = reply.split_once('\n').unwrap();
    assert!(note.contains(&format!("in the file \"artifacts/{session}/")), "{note}");
    assert!(
        shown.starts_with("agent_key: agent:kid:") && shown.contains("\nreply:\nso it goes\n"),
        "its head is there"
    );
}

/// A child that fails leaves its artifacts, and its parent learns their names.
#[tokio::test(start_paused = true)]
async fn the_artifacts_of_a_child_that_fails_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let model = ScriptedModel::new()
        .agent("main", [Turn::new().spawn("kid", "go"), Turn::new().text("It failed.")])
        .agent("kid", [Turn::new().call("much", json!({})), Turn::new().text("It is").cut()]);
    let much = says("much", || Ok(long()));
    let kid = AgentSpec::new("kid", "K");
    let harness = harness(model).with_workspace(dir.path()).with_file_tools(true);
    let events = run(harness.with_tool(much).with_subagent(kid)).await;
    let kid = events.iter().find_map(|event| event.source()).unwrap();
    let (state, report) = results(&events, "agent_spawn").remove(0);
    assert_eq!(state, ToolState::Error);
    let (_, artifacts) = report.split_once("\nartifacts of its workspace: ").unwrap();
    let (artifact, rest) = artifacts.split_once('\n').unwrap();
    assert!(rest.starts_with("partial_reply:\nIt is\n"), "{report}");
    let own = format!("agents/kid/_/{}/{}", events[0].session_id(), kid.session_id);
    assert_eq!(std::fs::read_to_string(dir.path().join(own).join(artifact)).unwrap(), long());
}

#[tokio::test(start_paused = true)]
async fn without_a_workspace_it_is_cut_and_that_is_said() {
    let model = ScriptedModel::new().agent(
        "main",
        [
            Turn::new().call("much", json!({})).call("fails", json!({})).call("short", json!({})),
            Turn::new().text("Done."),
        ],
    );
    let tools = harness(model)
        .with_tool(says("much", || Ok(long())))
        .with_tool(says("fails", || Err(ToolError::new("no ".repeat(50_000)))))
        .with_tool(says("short", || Ok("x".repeat(MAX_RESULT_BYTES))));
    let events = run(tools).await;
    let (state, text) = results(&events, "much").remove(0);
    assert_eq!(state, ToolState::Success);
    assert!(
        text.contains("What is left out here is not kept; ask for less at once.]\nline 1\n"),
        "{}",
        &text[..200]
    );
    assert!(text.len() <= MAX_RESULT_BYTES);
    let (state, text) = results(&events, "fails").remove(0);
    assert!(state == ToolState::Error && text.contains("150000 bytes") && text.len() <= MAX_RESULT_BYTES);
    assert_eq!(results(&events, "short"), [(ToolState::Success, "x".repeat(MAX_RESULT_BYTES))], "just fits");
}

#[tokio::test(start_paused = true)]
async fn without_file_tools_nothing_is_stored_that_its_agent_cannot_read() {
    let model =
        ScriptedModel::new().agent("main", [Turn::new().call("much", json!({})), Turn::new().text("Done.")]);
    let dir = tempfile::tempdir().unwrap();
    let events = run(harness(model).with_workspace(dir.path()).with_tool(says("much", || Ok(long())))).await;
    let (_, text) = results(&events, "much").remove(0);
    assert!(text.contains("What is left out here is not kept; ask for less at once.]"), "{}", &text[..200]);
    assert!(!dir.path().join("artifacts").exists());
}

#[tokio::test(start_paused = true)]
async fn progress_stops_where_a_result_is_full() {
    let model = ScriptedModel::new()
        .agent("main", [Turn::new().call("babble", json!({})), Turn::new().text("Done.")]);
    let babble = tool_fn("babble", "Babbles", |cx: ToolContext, _: Map<String, Value>| async move {
        for _ in 0..20 {
            cx.progress("ä".repeat(5_000)).await;
        }
        Ok::<_, ToolError>("the end")
    });
    let (_, text) = results(&run(harness(model).with_tool(babble)).await, "babble").remove(0);
    let (said, rest) = text.split_once('\n').unwrap();
    assert_eq!(said.len(), MAX_RESULT_BYTES);
    assert_eq!(rest, "[this is too long; what comes after it was left out]\nthe end");
}

#[tokio::test(start_paused = true)]
async fn what_the_caller_submits_is_bounded_too() {
    let model = ScriptedModel::new()
        .agent("main", [Turn::new().call("ask_me", json!({})), Turn::new().text("Done.")]);
    let tool = ExternalTool::new("ask_me", "Asks", json!({ "type": "object" }));
    let dir = tempfile::tempdir().unwrap();
    let mut run = harness(model)
        .with_workspace(dir.path())
        .with_file_tools(true)
        .with_tool(tool)
        .build()
        .unwrap()
        .stream_events("go");
    let (handle, mut events) = (run.handle(), Vec::new());
    while let Some(event) = run.next().await {
        if let EventKind::RequireExternalExecution { tool_calls, .. } = &event.kind {
            handle.submit_tool_result(&tool_calls[0].id, long()).unwrap();
        }
        assert!(event.to_json().len() < MAX_RESULT_BYTES, "{}", event.kind.name());
        events.push(event);
    }
    laws(&events).unwrap();
    let session = dir.path().join("artifacts").join(events[0].session_id().as_str());
    assert_eq!(std::fs::read_dir(session).unwrap().count(), 1, "kept once");
}
