//! One contract for a session, whether it is in this process, on a server, behind a connection that
//! is cut again and again, or recorded.

use std::time::Duration;

use mainstem::client::Server;
use mainstem::{
    api::{AnySession, Begun, Code, Error, EventQuery, Host, NewRun, NewToolResult, RunState, SessionState},
    event::{CancelReason, ChildStatus, Decision, SendMode},
    journal::MemoryJournal,
    model::scripted::Turn,
    prelude::*,
    session::Records,
    task::TaskSet,
};
use mainstem_testing::{CountedIds, laws, render};
use serde_json::{Map, Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

use crate::support::{Spawns, ms};

pub(crate) const TOKEN: &str = "the-token-of-the-harness";

/// Returns a fleet whose child needs an approval, and whose root calls an external tool.
fn fleet() -> Harness {
    let model = ScriptedModel::new()
        .agent_on("main", "<messages>", [Turn::new().text("They were poked.")])
        .agent(
            "main",
            [
                Turn::new().spawn("kid", "poke it"),
                Turn::new().call("browse", json!({})),
                Turn::new().text("Done."),
                Turn::new().text("Half of").hang(),
                Turn::new().text("Done again."),
                Turn::new().text("Noted."),
            ],
        )
        .agent(
            "kid",
            [
                Turn::new().call("poke", json!({ "at": "a" })),
                Turn::new().text("Poked."),
                Turn::new().text("More."),
            ],
        );
    let poke =
        |_, given: Map<String, Value>| async move { Ok::<_, ToolError>(Value::Object(given).to_string()) };
    Harness::builder("main", model)
        .with_ids(CountedIds::default())
        .with_tool(tool_fn("poke", "Pokes", poke))
        .with_tool(ExternalTool::new("browse", "Opens a page at the caller's", json!({ "type": "object" })))
        .with_subagent(AgentSpec::new("kid", "K"))
        .with_permissions(RuleSet::default().with_pattern(Effect::Ask, "poke").unwrap())
        .with_journal(MemoryJournal::new())
        .build()
        .unwrap()
}

fn records(harness: &Harness) -> Records {
    Records::new(TaskSet::in_memory()).with_journal(harness.journal().unwrap().clone())
}

fn has_code<T>(result: Result<T, Error>, code: &Code) {
    let error = result.err().unwrap_or_else(|| panic!("expected {code}"));
    assert!(error.has_code(code), "{error:?}");
}

async fn all(mut events: mainstem::api::Events) -> Vec<AgentEvent> {
    let mut all = Vec::new();
    while let Some(event) = events.next().await {
        all.push(event.unwrap());
    }
    all
}

/// Reads a run to its end; answers its requests.
async fn answered(session: &dyn AnySession, begun: &mut Begun) -> Vec<AgentEvent> {
    let mut events = Vec::new();
    while let Some(event) = begun.events.next().await {
        let event = event.unwrap();
        match &event.kind {
            EventKind::RequireUserConfirm { confirm_id, .. } => {
                has_code(session.run(NewRun::new("another")).await, &Code::RunActive);
                has_code(
                    session.confirm(&"unknown".parse().unwrap(), Decision::Allow).await,
                    &Code::NotAsked,
                );
                assert_eq!(session.view().await.unwrap().state, SessionState::Running);
                session.confirm(confirm_id, Decision::AllowWith(json!({ "at": "b" }))).await.unwrap();
            }
            EventKind::RequireExternalExecution { tool_calls, .. } => {
                let result = NewToolResult { content: "a page".to_owned(), is_error: false };
                has_code(session.submit(&"unknown".into(), &result).await, &Code::NotAsked);
                session.submit(&tool_calls[0].id, &result).await.unwrap();
            }
            _ => {}
        }
        events.push(event);
    }
    laws(&events).unwrap_or_else(|error| panic!("{error}\n{}", render(&events)));
    events
}

/// Calls every function of a session that can be steered; returns the timeline of its first run.
async fn contract(session: &dyn AnySession) -> String {
    let mut begun = session.run(NewRun::new("go")).await.unwrap();
    let events = answered(session, &mut begun).await;
    let run = begun.run.view().await.unwrap();
    assert_eq!((run.status, run.reply.as_deref()), (RunState::Success, Some("Done.")));
    assert_eq!((&run.id, run.first_seq), (begun.run.id(), 1));
    assert!(run.usage.is_some() && run.error.is_none());

    let stored = all(session.events(EventQuery::stored())).await;
    assert_eq!(render(&stored), render(&events));
    let late = all(session.events(EventQuery { after: Some(5), ..EventQuery::stored() })).await;
    assert_eq!(late[0].seq, 6);
    let ends = EventQuery { kind: Some("agent_end".to_owned()), ..EventQuery::stored() };
    assert_eq!(all(session.events(ends)).await.len(), 2);
    let of_run = all(session.events(EventQuery::default().with_run(&run.id))).await;
    assert_eq!(render(&of_run), render(&events), "a run's events have an end");
    let wrong = EventQuery { kind: Some("no_kind".to_owned()), ..EventQuery::stored() };
    has_code(session.events(wrong).next().await.unwrap(), &Code::BadQuery);

    assert_eq!(session.fleet().await.unwrap().seq, events.last().unwrap().seq);
    let view = session.view().await.unwrap();
    assert_eq!((view.state, view.runs, view.first_seq), (SessionState::Idle, 1, 1));
    assert_eq!(view.events(), events.len() as u64);
    let runs = session.runs().await.unwrap();
    assert_eq!((runs.len(), &runs[0].reply), (1, &run.reply));

    let children = session.children().await.unwrap();
    let kid = &children[0];
    assert_eq!((children.len(), kid.status, kid.turns), (1, ChildStatus::Idle, 1));
    has_code(
        session.send(&"agent:no:1".parse().unwrap(), "more", SendMode::Queue).await,
        &Code::UnknownAgent,
    );
    has_code(session.cancel_agent(&"agent:no:1".parse().unwrap()).await, &Code::NotFound);
    session.send(&kid.agent_key, "more", SendMode::Queue).await.unwrap();
    let task = loop {
        match session.tasks().await.unwrap().pop() {
            Some(task) if task.is_over() => break task,
            _ => tokio::time::sleep(ms(5)).await,
        }
    };
    assert!(task.result.as_deref().unwrap_or_default().contains("More."), "{task:?}");
    assert!(!session.cancel_agent(&kid.agent_key).await.unwrap(), "it is idle");

    has_code(session.run(NewRun::resuming()).await, &Code::NothingToResume);
    let mut begun = session.run(NewRun::new("again")).await.unwrap();
    let mut cut = Vec::new();
    while let Some(event) = begun.events.next().await {
        cut.push(event.unwrap());
        if matches!(cut.last().unwrap().kind, EventKind::TextBlockDelta { .. }) {
            begun.run.cancel(CancelReason::user("a test")).await.unwrap();
        }
    }
    assert_eq!(begun.run.view().await.unwrap().status, RunState::Cancelled, "{}", render(&cut));
    let mut begun = session.run(NewRun::resuming()).await.unwrap();
    answered(session, &mut begun).await;
    assert_eq!(begun.run.view().await.unwrap().reply.as_deref(), Some("Done again."));

    compacts(session).await;
    timeless(&events)
}

/// Compacts the conversation.
async fn compacts(session: &dyn AnySession) {
    // Longer than what a summary of it is.
    let mut begun = session.run(NewRun::new("Remember this. ".repeat(100))).await.unwrap();
    answered(session, &mut begun).await;
    let mut begun = session.run(NewRun::compacting()).await.unwrap();
    let compacted = answered(session, &mut begun).await;
    let checkpoints =
        compacted.iter().filter(|event| matches!(event.kind, EventKind::StateCheckpoint { .. }));
    assert_eq!(checkpoints.count(), 1, "{}", render(&compacted));
    let run = begun.run.view().await.unwrap();
    assert_eq!((run.status, run.reply), (RunState::Success, None));
    has_code(session.run(NewRun { resume: true, ..NewRun::compacting() }).await, &Code::BadBody);
}

/// Returns a timeline without the times of its events.
pub(crate) fn timeless(events: &[AgentEvent]) -> String {
    let lines = render(events);
    let lines =
        lines.lines().map(|line| line.trim_start().trim_start_matches(|first: char| first.is_ascii_digit()));
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns a server on loopback.
pub(crate) async fn serve(harness: Harness) -> (String, JoinHandle<()>) {
    serve_with(harness, None).await
}

/// The same, with a further protocol.
pub(crate) async fn serve_with(
    harness: Harness,
    protocol: Option<mainstem_server::Protocol>,
) -> (String, JoinHandle<()>) {
    let tokens = mainstem_server::Tokens::new().with_token(TOKEN, None).unwrap();
    let server = mainstem_server::Server::new(harness).with_tokens(tokens);
    let server = protocol.into_iter().fold(server, |server, protocol| server.with_protocol(protocol));
    let server = server.build().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    #[expect(clippy::disallowed_methods, reason = "aborted by the test")]
    let serving = tokio::spawn(async move { server.serve(listener, Default::default()).await.unwrap() });
    (url, serving)
}

/// Returns a proxy that closes each connection after so many bytes of responses.
pub(crate) async fn cut(url: &str, bytes: usize) -> (String, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (proxy, address) = (format!("http://{}", listener.local_addr().unwrap()), url.replace("http://", ""));
    #[expect(clippy::disallowed_methods, reason = "aborted by the test")]
    let serving = tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let address = address.clone();
            #[expect(clippy::disallowed_methods, reason = "ends with its connection")]
            tokio::spawn(async move {
                let mut server = TcpStream::connect(address).await.unwrap();
                let (mut from_client, mut to_client) = client.split();
                let (from_server, mut to_server) = server.split();
                let mut limited = from_server.take(bytes as u64);
                tokio::select! {
                    _ = tokio::io::copy(&mut from_client, &mut to_server) => {}
                    _ = tokio::io::copy(&mut limited, &mut to_client) => {}
                }
                let _ = to_client.shutdown().await;
            });
        }
    });
    (proxy, serving)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_is_the_same_here_and_on_a_server() {
    let harness = fleet();
    let session = harness.open_session("s").await.unwrap();
    let here = contract(&session).await;
    let events = all(records(&harness).session(&"s".parse().unwrap()).events(EventQuery::stored())).await;
    let log = all(AnySession::events(&session, EventQuery::stored())).await;
    assert_eq!(render(&events), render(&log));

    let harness = fleet();
    let (url, serving) = serve(harness).await;
    let server = Server::at(&url).unwrap().with_token(TOKEN);
    let there = contract(&server.open("s").unwrap()).await;
    assert_eq!(here, there);
    serving.abort();
    insta::assert_snapshot!(here);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_is_cut_again_and_again_loses_nothing() {
    let harness = fleet();
    let (url, serving) = serve(harness).await;
    let direct = Server::at(&url).unwrap().with_token(TOKEN).open("s").unwrap();
    let mut begun = direct.run(NewRun::new("go")).await.unwrap();
    let events = answered(&direct, &mut begun).await;
    let slow = std::env::var_os("RUN_SLOW_TESTS").is_some();
    // The headers, and at least the longest line: with less, no event would arrive.
    for bytes in (2_000..6_000).step_by(if slow { 37 } else { 2_311 }) {
        let (proxy, cutting) = cut(&url, bytes).await;
        let through = Server::at(&proxy).unwrap().with_token(TOKEN).open("s").unwrap();
        let read = all(through.events(EventQuery::default().with_run(begun.run.id())));
        let read = tokio::time::timeout(Duration::from_secs(30), read).await.unwrap();
        assert_eq!(render(&read), render(&events), "{bytes} bytes a connection");
        laws(&read).unwrap();
        cutting.abort();
    }
    serving.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_are_read_and_not_steered() {
    let harness = fleet();
    let session = harness.open_session("s").await.unwrap();
    let mut begun = AnySession::run(&session, NewRun::new("go")).await.unwrap();
    answered(&session, &mut begun).await;
    let records = records(&harness);
    let recorded = records.session(&"s".parse().unwrap());
    assert_eq!(recorded.view().await.unwrap().state, SessionState::Idle);
    assert_eq!(recorded.runs().await.unwrap()[0].reply.as_deref(), Some("Done."));
    assert_eq!(recorded.children().await.unwrap().len(), 1);
    assert_eq!(recorded.fleet().await.unwrap().seq, session.fleet().seq);
    has_code(recorded.run(NewRun::new("go")).await, &Code::NotSteerable);
    has_code(recorded.confirm(&"x".parse().unwrap(), Decision::Allow).await, &Code::NotSteerable);
    has_code(records.session(&"t".parse().unwrap()).view().await, &Code::NotFound);
    has_code(
        records.session(&"t".parse().unwrap()).events(EventQuery::stored()).next().await.unwrap(),
        &Code::NotFound,
    );
    has_code(records.delete_session(&"t".parse().unwrap()).await, &Code::NotFound);
    has_code(records.task(&"t".parse().unwrap()).await, &Code::NotFound);
    // A reader that follows gets the events that are written meanwhile.
    let last = session.fleet().seq;
    let mut live = recorded.events(EventQuery::after(last));
    session.set_plan_mode(mainstem::policy::PlanMode::On);
    let event = tokio::time::timeout(Duration::from_secs(5), live.next()).await.unwrap().unwrap().unwrap();
    assert_eq!(event.seq, last + 1);
}
