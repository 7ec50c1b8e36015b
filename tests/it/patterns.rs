//! The five ways to consume a fleet's stream.

use std::sync::{Arc, Mutex};

use mainstem::{event::view::ReplyError, model::scripted::Turn, prelude::*};

use crate::support::{Spawns, harness, ms};

fn fleet() -> Harness {
    let model = ScriptedModel::new()
        .agent(
            "main",
            [
                Turn::new().text("I ask around.").spawn("paris", "p").spawn("rome", "r").spawn("broken", "b"),
                Turn::new().text("Both are fine."),
            ],
        )
        .agent("paris", [Turn::new().pace(ms(10)).say("a big city")])
        .agent("rome", [Turn::new().spawn("guide", "g"), Turn::new().text("an old city")])
        .agent("guide", [Turn::new().pace(ms(7)).say("see the forum")])
        .agent("broken", [Turn::new().cut()]);
    harness(model)
        .with_subagent(AgentSpec::new("paris", "P"))
        .with_subagent(AgentSpec::new("rome", "R").with_tools(["agent_spawn"]))
        .with_subagent(AgentSpec::new("guide", "G"))
        .with_subagent(AgentSpec::new("broken", "B"))
        .build()
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn one_panel_for_each_agent() {
    let panels = Arc::new(Mutex::new(Vec::new()));
    let lanes = fleet().stream_events("go").for_each_lane(|lane| {
        let panels = panels.clone();
        async move {
            let name = lane.key().map_or_else(|| "main".to_owned(), ToString::to_string);
            let text: String = lane.text().collect().await;
            panels.lock().unwrap().push(format!("{name}: {text}"));
        }
    });
    lanes.await;
    let mut panels = panels.lock().unwrap().clone();
    panels.sort();
    insta::assert_snapshot!(panels.join("\n"), @"
    agent:broken:1: 
    agent:guide:1: see the forum
    agent:paris:1: a big city
    agent:rome:1: an old city
    main: I ask around.Both are fine.
    ");
}

#[tokio::test(start_paused = true)]
async fn the_final_reply_of_one_child_while_the_stream_is_drawn() {
    let run = fleet().stream_events("go");
    let handle = run.handle();
    let (events, rome, broken, unknown) = futures_util::join!(
        run.collect::<Vec<_>>(),
        handle.final_reply_of("rome"),
        handle.final_reply_of("broken"),
        handle.final_reply_of("unknown"),
    );
    assert_eq!(rome.unwrap().text(), "an old city");
    assert_eq!(broken, Err(ReplyError::Failed("transport: the connection was cut".into())));
    assert_eq!(unknown, Err(ReplyError::NeverSpawned("unknown".into())));
    assert!(events.len() > 40);
}

#[tokio::test(start_paused = true)]
async fn collect_and_group() {
    let groups = fleet().stream_events("go").collect_by_agent().await;
    let lines: Vec<_> = groups
        .iter()
        .map(|(key, events)| {
            format!("{}: {} events", key.as_ref().map_or("main", |key| key.as_str()), events.len())
        })
        .collect();
    insta::assert_snapshot!(lines.join("\n"), @"
    main: 31 events
    agent:broken:1: 4 events
    agent:guide:1: 10 events
    agent:paris:1: 10 events
    agent:rome:1: 16 events
    ");
}

#[tokio::test(start_paused = true)]
async fn lines_of_json_carry_the_source() {
    let lines: Vec<_> = fleet().stream_events("go").into_ndjson().collect().await;
    let events: Vec<AgentEvent> = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    mainstem_testing::laws(&events).unwrap();
    let guide =
        lines.iter().find(|line| line.contains("TEXT_BLOCK_DELTA") && line.contains("guide")).unwrap();
    insta::assert_snapshot!(guide, @r#"{"type":"TEXT_BLOCK_DELTA","seq":37,"id":"session-1.37","sessionId":"session-1","runId":"run-1","createdAt":"2026-01-01T00:00:00.007000Z","source":{"agentKey":"agent:guide:1","agentId":"guide","agentName":"guide","title":"g","sessionId":"sub-3","parentSessionId":"sub-2","depth":2,"path":"session-1/rome/guide","turn":1,"parentToolCallId":"call-4","streamId":3},"replyId":"reply-4","blockId":"1.1","delta":"see "}"#);
}

#[tokio::test(start_paused = true)]
async fn filter_by_depth_or_path() {
    let words = |view: &'static str| async move {
        let run = fleet().stream_events("go");
        let texts: Vec<String> = match view {
            "depth 1" => run.at_depth(1).text().collect().await,
            "under rome" => run.under_path("session-1/rome").text().collect().await,
            "guide" => run.from_agent("guide").text().collect().await,
            "root" => run.root_only().text().collect().await,
            _ => run.children().max_depth(1).text().collect().await,
        };
        format!("{view}: {}", texts.concat())
    };
    let all = [
        words("depth 1").await,
        words("under rome").await,
        words("guide").await,
        words("root").await,
        words("both").await,
    ];
    insta::assert_snapshot!(all.join("\n"), @"
    depth 1: a big an old citycity
    under rome: see the foruman old city
    guide: see the forum
    root: I ask around.Both are fine.
    both: a big an old citycity
    ");
}

#[tokio::test(start_paused = true)]
async fn the_coarse_stream_has_the_same_story() {
    let events = fleet().stream("go", StreamOptions::default());
    let lines: Vec<_> = events
        .map(|event| {
            let who = event.source.as_ref().map_or("main", |source| &source.agent_id);
            let mark = if event.is_last { "." } else { "…" };
            format!("{who} {:?}{mark} {:?}", event.kind, event.message.text())
        })
        .collect()
        .await;
    insta::assert_snapshot!(lines.join("\n"), @r#"
    main Reasoning… "I ask around."
    main Reasoning. "I ask around."
    rome Reasoning. ""
    broken AgentResult. ""
    main ToolResult… ""
    main ToolResult. ""
    guide Reasoning… "see "
    paris Reasoning… "a "
    guide Reasoning… "the "
    paris Reasoning… "big "
    guide Reasoning… "forum"
    guide Reasoning. "see the forum"
    guide AgentResult. "see the forum"
    rome ToolResult… ""
    rome ToolResult. ""
    rome Reasoning… "an old city"
    rome Reasoning. "an old city"
    rome AgentResult. "an old city"
    main ToolResult… ""
    main ToolResult. ""
    paris Reasoning… "city"
    paris Reasoning. "a big city"
    paris AgentResult. "a big city"
    main ToolResult… ""
    main ToolResult. ""
    main Reasoning… "Both are fine."
    main Reasoning. "Both are fine."
    main AgentResult. "Both are fine."
    "#);
}
