//! The whole path, from a server's bytes to the caller's stream: OpenAI's wire format on the
//! loopback.

use std::{collections::BTreeSet, time::Duration};

use mainstem::{model::scripted::Turn, prelude::*};
use mainstem_testing::{ModelServer, laws};
use serde_json::Value;

use crate::support::{OpenNow, Spawns, ms};

async fn fleet(turns_of_a: Turn) -> (ModelServer, Harness) {
    let model = ScriptedModel::new()
        .agent_on(
            "m",
            "go",
            [Turn::new().text("I ask.").spawn("a", "left").spawn("a", "right"), Turn::new().text("Done.")],
        )
        .agent("m", [turns_of_a]);
    let server = ModelServer::start(model).await.unwrap();
    let model = OpenAi::new("m").with_base_url(&server.base_url()).unwrap();
    let harness = Harness::builder("main", model).with_subagent(AgentSpec::new("a", "A")).build().unwrap();
    (server, harness)
}

#[tokio::test]
async fn children_stream_side_by_side_and_nobody_asks_twice() {
    let (server, harness) = fleet(Turn::new().pace(ms(5)).say("one two three four five six")).await;
    let events: Vec<_> = harness.stream_events("go").collect().await;
    laws(&events).unwrap();
    let speakers: Vec<_> = events
        .iter()
        .filter(|event| matches!(event.kind, EventKind::TextBlockDelta { .. }))
        .filter_map(|event| event.agent_key().cloned())
        .collect();
    let changes = speakers.windows(2).filter(|pair| pair[0] != pair[1]).count();
    assert!(changes >= 3, "the twins' words interleave: {speakers:?}");
    assert_eq!(server.requests().len(), 4, "two turns of the root and one of each child");
    let tasks: BTreeSet<_> = server.requests().iter().map(last_text).collect();
    assert_eq!(tasks.len(), 4, "no request is repeated: {tasks:?}");
}

#[tokio::test]
async fn who_leads_a_run_by_choice_has_its_own_prompt() {
    let turns = [Turn::new().text("One."), Turn::new().text("Two.")];
    let server = ModelServer::start(ScriptedModel::new().agent("m", turns)).await.unwrap();
    let model = OpenAi::new("m").with_base_url(&server.base_url()).unwrap();
    let reviewer = AgentSpec::new("reviewer", "R").with_prompt("You review.");
    let harness = Harness::builder("main", model).with_system_prompt("You are main.").with_subagent(reviewer);
    let harness = harness.build().unwrap();
    let session = harness.session("s");
    session.run(RunRequest::new("go").with_agent("reviewer")).unwrap().reply().await.unwrap();
    session.run("on").unwrap().reply().await.unwrap();
    let prompts: Vec<_> =
        server.requests().iter().map(|body| body["messages"][0]["content"].to_string()).collect();
    assert!(prompts[0].contains("You review.") && !prompts[0].contains("You are main."), "{prompts:?}");
    assert!(prompts[1].contains("You are main.") && !prompts[1].contains("You review."), "{prompts:?}");
    let unknown = session.run(RunRequest::new("no").with_agent("stranger")).unwrap().reply().await;
    let unknown = unknown.unwrap_err().to_string();
    assert!(unknown.contains("stranger") && unknown.contains("reviewer"), "{unknown}");
}

/// Reads until both children's answers are on their way.
async fn until_both_work(server: &ModelServer, run: &mut Run) {
    while server.answering() < 2 || run.handle().fleet().running().count() < 3 {
        run.next().await;
    }
}

fn last_text(body: &Value) -> String {
    let messages = body["messages"].as_array().unwrap();
    messages.last().unwrap()["content"].to_string()
}

#[tokio::test]
async fn the_first_words_do_not_wait_for_the_last() {
    let (server, harness) = fleet(Turn::new().text("first").hang()).await;
    let mut children = harness.stream_events("go").children().text();
    for _ in 0..2 {
        assert_eq!(children.next().await.unwrap(), "first");
    }
    assert_eq!(server.answering(), 2, "both answers are still being sent");
}

#[tokio::test]
async fn a_dropped_stream_closes_the_connections() {
    let (server, harness) = fleet(Turn::new().text("first").hang()).await;
    let mut run = harness.stream_events("go");
    until_both_work(&server, &mut run).await;
    drop(run);
    assert!(server.is_quiet_within(ms(100)).await, "{} connections are left", server.answering());
    assert_eq!(server.cut(), 2);
}

#[tokio::test]
async fn a_cancelled_run_closes_the_connections_and_says_so() {
    let (server, harness) = fleet(Turn::new().text("first").hang()).await;
    let mut run = harness.stream_events("go");
    until_both_work(&server, &mut run).await;
    run.handle().cancel();
    let rest: Vec<_> = run.collect().await;
    let EventKind::AgentEnd { outcome, .. } = &rest[rest.len() - 1].kind else { panic!("no ending") };
    assert_eq!(*outcome, Outcome::Cancelled);
    assert!(server.is_quiet_within(ms(100)).await);
}

#[tokio::test]
async fn a_caller_that_pauses_holds_the_servers_back() {
    let (server, harness) = fleet(Turn::new().repeat("0123456789abcdef".repeat(64), 20_000)).await;
    let mut run = harness.stream_events("go");
    until_both_work(&server, &mut run).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(server.answering(), 2, "twenty megabytes are not read ahead");
}

#[tokio::test]
async fn a_refusal_says_who_and_what() {
    let model = ScriptedModel::new().agent("m", [Turn::new().rate_limited(1)]);
    let server = ModelServer::start(model).await.unwrap();
    let model = OpenAi::new("m").with_base_url(&server.base_url()).unwrap().with_api_key("sk-secret");
    let harness = Harness::builder("main", model).build().unwrap();
    let error = harness.call("go").await.unwrap_err();
    let RunError::Agent(error) = error else { panic!("{error}") };
    let error = error.model_error().unwrap();
    assert_eq!(error.status(), Some(429));
    assert!(
        error.to_string().contains("127.0.0.1") && error.to_string().contains("too many requests"),
        "{error}"
    );
    assert!(!format!("{error} {error:?} {harness:?}").contains("sk-secret"));
}
