//! What a turn takes with it to a Mainstem server, and what stays here.

use std::sync::Arc;

use futures_util::StreamExt;
use mainstem::{
    journal::{Journal, MemoryJournal},
    message::ToolState,
    model::scripted::Turn,
    policy::PlanMode,
    prelude::*,
    remote::TraceContext,
    spec::Protocol,
    task::{MemoryTaskStore, TaskFilter, TaskStore},
};
use mainstem_testing::render;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    task::JoinHandle,
    time::Instant,
};

use crate::{
    anywhere::{serve, serve_with},
    chain::{builder, child_end, events, local, remote, scripts},
    support::ms,
};

/// A variable that each test has, as the secret of a header.
const SECRET: &str = "CARGO_MANIFEST_DIR";

/// A remote agent with a secret in a header.
fn with_secret(url: &str) -> AgentSpec {
    remote("second", url).with_header("X-Secret", format!("${{{SECRET}}}"))
}

/// A caller that spawns `second` and answers.
fn caller() -> ScriptedModel {
    scripts("main", ScriptedModel::new())
}

/// The protocols that take all of a turn with them.
const WHOLE: [Protocol; 2] = [Protocol::Mainstem, Protocol::A2a];

/// Serves an agent in a protocol, and returns a spec of it.
async fn served(harness: &Harness, protocol: Protocol) -> (AgentSpec, JoinHandle<()>) {
    let more = (protocol == Protocol::A2a).then_some(mainstem_server::Protocol::A2a);
    let (url, serving) = serve_with(harness.clone(), more).await;
    (remote("second", &url).with_protocol(protocol), serving)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_has_the_user_the_attributes_and_the_budget_of_its_caller() {
    for protocol in WHOLE {
        let model = ScriptedModel::new().agent("second", [Turn::new().text("One.")]);
        let second = builder("second", model).build().unwrap();
        let (spec, serving) = served(&second, protocol).await;
        let first = builder("main", caller()).with_subagent(spec).build().unwrap();
        let budget = Budget::default().with_time_seconds(60).with_tokens(50_000);
        let options = RunOptions::new().with_user("ann").with_attribute("tenant", "acme").with_budget(budget);
        let events: Vec<_> = first.stream_events(RunRequest::new("go").with_options(options)).collect().await;
        let child = events.iter().find_map(|event| Some(event.source()?.session_id.clone())).unwrap();
        let session = second.sessions().find(&child).await.unwrap().expect("the session of the child");
        let start = session.log().subscribe_from(1).try_next().unwrap();
        let EventKind::AgentStart { settings: Some(settings), .. } = &start.kind else { panic!("{start}") };
        let told = (settings.user.as_deref(), settings.attributes.get("tenant"), settings.attributes.len());
        assert_eq!(told, (Some("ann"), Some(&"acme".into()), 1), "{protocol}");
        // What is left of both.
        let (time, tokens) = (settings.budget.time_seconds.unwrap(), settings.budget.tokens.unwrap());
        let is_left = (50..=60).contains(&time) && (40_000..50_000).contains(&tokens);
        assert!(is_left, "{protocol}: {:?}", settings.budget);
        serving.abort();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_rules_of_its_caller_hold_at_the_remote() {
    for protocol in WHOLE {
        let turns = [Turn::new().call("echo", json!({})), Turn::new().text("So.")];
        let second = builder("second", ScriptedModel::new().agent("second", turns)).build().unwrap();
        let (spec, serving) = served(&second, protocol).await;
        let rules = RuleSet::default().with_pattern(Effect::Deny, "echo").unwrap();
        let first = builder("main", caller()).with_subagent(spec).with_permissions(rules).build().unwrap();
        let all = events(&first).await;
        assert_eq!(child_end(&all, "second"), (Outcome::Success, ""), "{protocol}\n{}", render(&all));
        let denied = all.iter().filter(|event| {
            event.depth() == 1
                && matches!(event.kind, EventKind::ToolResultEnd { state: ToolState::Denied, .. })
        });
        assert_eq!(denied.count(), 1, "{protocol}\n{}", render(&all));
        serving.abort();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_remote_plans_as_long_as_its_caller_does() {
    for protocol in WHOLE {
        let turns = ["One.", "Two.", "Three."].map(|text| Turn::new().text(text));
        let second = builder("second", ScriptedModel::new().agent("second", turns)).build().unwrap();
        let (spec, serving) = served(&second, protocol).await;
        let first = builder("main", caller()).with_subagent(spec).build().unwrap();
        let session = first.open_session("s").await.unwrap();
        let mut modes = Vec::new();
        for mode in [PlanMode::On, PlanMode::Off, PlanMode::On] {
            session.set_plan_mode(mode);
            let mut log = session.log().subscribe();
            match session.children().first() {
                None => _ = session.run("go").unwrap().collect::<Vec<_>>().await,
                Some(child) => {
                    session.send(&child.agent_key.clone(), "further", SendMode::Queue).unwrap();
                    while !matches!(log.next().await.unwrap().kind, EventKind::AgentEnd { .. }) {}
                }
            }
            let mut log = session.log().subscribe_from(1);
            let events = std::iter::from_fn(|| log.try_next());
            let child =
                events.into_iter().find_map(|event| Some(event.source()?.session_id.clone())).unwrap();
            modes.push(second.sessions().find(&child).await.unwrap().unwrap().plan_mode());
        }
        assert_eq!(modes, [PlanMode::On, PlanMode::Off, PlanMode::On], "{protocol}");
        serving.abort();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_remote_has_no_more_levels_than_its_caller_leaves_it() {
    for (protocol, levels, has_third) in
        WHOLE.into_iter().flat_map(|protocol| [(protocol, 1, false), (protocol, 2, true)])
    {
        let model = scripts("third", scripts("second", ScriptedModel::new()));
        let second = builder("second", model).with_subagent(local("third")).build().unwrap();
        let (spec, serving) = served(&second, protocol).await;
        let first = builder("main", caller()).with_subagent(spec).with_max_depth(levels);
        let all = events(&first.build().unwrap()).await;
        assert_eq!(child_end(&all, "second"), (Outcome::Success, ""), "{protocol}\n{}", render(&all));
        let third = all.iter().any(|event| event.agent_id() == "third");
        assert_eq!(third, has_third, "{protocol}, {levels} levels\n{}", render(&all));
        serving.abort();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_remote_stops_when_the_time_of_its_caller_is_used_up() {
    for protocol in WHOLE {
        let turns =
            [Turn::new().pace(ms(400)).say("a b c d e").call("echo", json!({})), Turn::new().text("So.")];
        let second = builder("second", ScriptedModel::new().agent("second", turns)).build().unwrap();
        let (spec, serving) = served(&second, protocol).await;
        let first = builder("main", caller()).with_subagent(spec);
        let first = first.with_budget(Budget::default().with_time_seconds(1)).build().unwrap();
        let all = events(&first).await;
        let (outcome, why) = child_end(&all, "second");
        // The remote has the same time, and may be the first to find that it is used up.
        let is_stopped = matches!(outcome, Outcome::Cancelled | Outcome::Timeout);
        assert!(is_stopped && why.contains("time budget"), "{protocol}: {why}\n{}", render(&all));
        // Nothing goes on there.
        let is_active = || second.sessions().opened().iter().any(|session| session.active().is_some());
        let begun = Instant::now();
        while is_active() {
            assert!(begun.elapsed() < ms(1_000), "{protocol}: the remote goes on without time");
            tokio::time::sleep(ms(10)).await;
        }
        serving.abort();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_remote_child_that_exceeds_its_time_is_promoted_and_goes_on_live() {
    let words = "one two three four five six seven eight nine ten";
    let spawn = json!({ "agent_id": "second", "task": "count", "timeout_seconds": 1 });
    let main =
        [Turn::new().call("agent_spawn", spawn), Turn::new().text("Meanwhile."), Turn::new().text("Done.")];
    let slow = ScriptedModel::new().agent("second", [Turn::new().pace(ms(200)).say(words)]);
    let (url, serving) = serve(builder("second", slow).build().unwrap()).await;
    let first = builder("main", ScriptedModel::new().agent("main", main));
    let first = first.with_subagent(remote("second", &url)).build().unwrap();
    let all = events(&first).await;
    let text = render(&all);
    assert_eq!(text.matches("TASK_UPDATED").count(), 2, "{text}");
    assert_eq!(child_end(&all, "second"), (Outcome::Success, ""), "{text}");
    let promoted = all.iter().position(|event| event.kind.name() == "TASK_UPDATED").unwrap();
    let said = |events: &[AgentEvent]| {
        let is_said = |event: &&AgentEvent| event.depth() == 1 && event.kind.name() == "TEXT_BLOCK_DELTA";
        events.iter().filter(is_said).count()
    };
    let (before, after) = (said(&all[..promoted]), said(&all[promoted..]));
    assert!(after > 1 && before + after == 10, "{before} and {after}\n{text}");
    serving.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_header_with_a_secret_is_in_no_event_and_no_record() {
    let (journal, store) = (Arc::new(MemoryJournal::new()), Arc::new(MemoryTaskStore::new()));
    let (url, serving) =
        serve(builder("second", scripts("second", ScriptedModel::new())).build().unwrap()).await;
    let spawn = json!({ "agent_id": "second", "task": "find out", "timeout_seconds": 0 });
    let main =
        [Turn::new().call("agent_spawn", spawn), Turn::new().text("Begun."), Turn::new().text("Done.")];
    let first = builder("main", ScriptedModel::new().agent("main", main))
        .with_subagent(with_secret(&url))
        .with_journal(journal.clone())
        .with_task_store(store.clone())
        .build()
        .unwrap();
    let session = first.open_session("s").await.unwrap();
    let options = RunOptions::new().with_background(Background::Wait);
    session.run(RunRequest::new("go").with_options(options)).unwrap().reply().await.unwrap();
    let kept = journal.read(session.id(), 1, 10_000).await.unwrap();
    let tasks = store.list(&TaskFilter::default()).await.unwrap();
    assert!(kept.iter().any(|event| event.agent_id() == "second") && tasks.len() == 1);
    let all = kept.iter().map(AgentEvent::to_json).collect::<String>();
    let all = format!("{all}{}", serde_json::to_string(&tasks).unwrap());
    assert!(all.contains(SECRET) && !all.contains(&std::env::var(SECRET).unwrap()), "{all}");
    serving.abort();
}

/// A server that repeats what it was sent in each refusal. To a client that asks what it is, it
/// shows a card of A2A, and answers as AgentScope does for a task that it does not have.
async fn echoing() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let interface = json!({ "url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0" });
    let card = json!({
        "name": "second", "description": "Helps", "version": "1", "supportedInterfaces": [interface],
        "capabilities": { "streaming": true }, "skills": [],
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
    });
    #[expect(clippy::disallowed_methods, reason = "ends with the test's runtime")]
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = vec![0; 8192];
            let length = stream.read(&mut request).await.unwrap_or_default();
            let request = String::from_utf8_lossy(&request[..length]).into_owned();
            let (status, body) = if request.contains("/agent-card.json") {
                ("200 OK", card.clone())
            } else if request.contains("/tasks/no-such-task") {
                ("200 OK", json!({ "task_id": "no-such-task", "status": "unknown" }))
            } else {
                ("403 Forbidden", json!({ "detail": request, "error": request, "title": request }))
            };
            let body = body.to_string();
            let head = format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\n");
            let head = format!("{head}content-length: {}\r\nconnection: close\r\n\r\n", body.len());
            let _ = stream.write_all(format!("{head}{body}").as_bytes()).await;
        }
    });
    url
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_that_a_remote_repeats_is_not_shown() {
    let check = async |spec: AgentSpec, variable: &str, value: &str| {
        let protocol = spec.protocol.unwrap();
        let first = builder("main", caller()).with_subagent(spec).with_remote_variable(variable, value);
        let all = events(&first.build().unwrap()).await;
        let (outcome, why) = child_end(&all, "second");
        assert!(outcome == Outcome::Error && why.contains("403 Forbidden"), "{protocol}: {why}");
        let text = all.iter().map(AgentEvent::to_json).collect::<String>();
        assert!(!text.contains(value), "{protocol}: {why}");
        // It was sent, and repeated.
        assert!(protocol == Protocol::Mainstem || why.contains("x-secret"), "{protocol}: {why}");
    };
    let of_environment = std::env::var(SECRET).unwrap();
    for protocol in [Protocol::Mainstem, Protocol::A2a, Protocol::LangGraph, Protocol::AgentScope] {
        let spec = with_secret(&echoing().await).with_protocol(protocol);
        check(spec.clone(), "ANOTHER", &of_environment).await;
        check(spec, SECRET, "from-a-vault-17").await;
    }
}

/// A server of Mainstem does, too: `telemetry` among the tests of the command line.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_of_another_protocol_gets_the_trace_of_its_caller() {
    const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    for protocol in [Protocol::A2a, Protocol::LangGraph, Protocol::AgentScope] {
        let spec = remote("second", &echoing().await).with_protocol(protocol);
        let trace = TraceContext::new(|| Some(TRACE.to_owned()));
        let first = builder("main", caller()).with_subagent(spec).with_trace_context(trace).build().unwrap();
        let all = events(&first).await;
        let (_, why) = child_end(&all, "second");
        assert!(why.contains(&format!("traceparent: {TRACE}")), "{protocol}: {why}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_variable_of_the_program_counts_before_one_of_the_environment() {
    let second = ScriptedModel::new().agent("second", [Turn::new().text("One.")]);
    let (url, serving) = serve(builder("second", second).build().unwrap()).await;
    let spec = AgentSpec::new("second", "Helps")
        .with_url(url)
        .with_header("Authorization", format!("Bearer ${{{SECRET}}}"));
    let first = builder("main", caller()).with_subagent(spec);
    let told = first.clone().with_remote_variable(SECRET, "the-token-of-the-harness");
    let all = events(&told.build().unwrap()).await;
    assert_eq!(child_end(&all, "second"), (Outcome::Success, ""), "{}", render(&all));
    // An empty value is none.
    let refused = first.with_remote_variable(SECRET, "").build().unwrap_err().to_string();
    assert!(refused.contains(SECRET), "{refused}");
    serving.abort();
}
