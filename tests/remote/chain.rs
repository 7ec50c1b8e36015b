//! Children on other servers: their events are those of local children.

use std::time::{Duration, Instant};

use mainstem::{message::Usage, model::scripted::Turn, prelude::*, spec::Permission};
use mainstem_testing::{laws, render};
use serde_json::json;
use tokio::task::JoinHandle;

use crate::{
    anywhere::{cut, serve, timeless},
    support::{Spawns, ms},
};

/// The scripts of three agents, of which each spawns the next.
pub(crate) fn scripts(name: &str, model: ScriptedModel) -> ScriptedModel {
    let turns = match name {
        "main" => vec![Turn::new().spawn("second", "find out"), Turn::new().text("All done.")],
        "second" => vec![
            Turn::new().thinking("Hm.").text("I ask ").text("another.").spawn("third", "look"),
            Turn::new().call("echo", json!({ "say": "a" })).call("echo", json!({ "say": "b" })),
            Turn::new().text("It is so."),
        ],
        _ => vec![Turn::new().call("echo", json!({ "say": "c" })), Turn::new().text("I ").text("see.")],
    };
    model.agent(name, turns)
}

fn script(name: &str) -> ScriptedModel {
    scripts(name, ScriptedModel::new())
}

pub(crate) fn builder(root: &str, model: ScriptedModel) -> HarnessBuilder {
    let echo = |_, given: serde_json::Map<String, serde_json::Value>| async move {
        Ok::<_, ToolError>(serde_json::Value::Object(given).to_string())
    };
    Harness::builder(root, model)
        .with_remote_host("127.0.0.1".parse().unwrap())
        .with_tool(tool_fn("echo", "Echoes", echo))
}

pub(crate) fn local(id: &str) -> AgentSpec {
    AgentSpec::new(id, "Helps").with_tools(["echo", "agent_spawn"])
}

pub(crate) fn remote(id: &str, url: &str) -> AgentSpec {
    AgentSpec::new(id, "Helps")
        .with_url(url)
        .with_header("Authorization", "Bearer ${MAINSTEM_TEST_TOKEN:-the-token-of-the-harness}")
}

/// Three agents in a chain, each on a server of its own but for the first.
struct Chain {
    first: Harness,
    second: Harness,
    third: Harness,
    servers: Vec<JoinHandle<()>>,
}

impl Chain {
    async fn start() -> Self {
        Self::with(script("main"), script("second"), builder("third", script("third"))).await
    }

    async fn with(main: ScriptedModel, second: ScriptedModel, third: HarnessBuilder) -> Self {
        let third = third.build().unwrap();
        let (url, serving_third) = serve(third.clone()).await;
        let second = builder("second", second).with_subagent(remote("third", &url)).build().unwrap();
        let (url, serving_second) = serve(second.clone()).await;
        let first = builder("main", main).with_subagent(remote("second", &url)).build().unwrap();
        Self { first, second, third, servers: vec![serving_second, serving_third] }
    }
}

impl Drop for Chain {
    fn drop(&mut self) {
        self.servers.iter().for_each(JoinHandle::abort);
    }
}

pub(crate) async fn events(harness: &Harness) -> Vec<AgentEvent> {
    steered(harness, async |_, _| {}).await
}

/// Reads a run to the end of its background tasks and calls a function with each event.
pub(crate) async fn steered(
    harness: &Harness,
    mut steer: impl AsyncFnMut(&RunHandle, &AgentEvent),
) -> Vec<AgentEvent> {
    let options = RunOptions::new().with_background(Background::Wait);
    let mut run = harness.stream_events(RunRequest::new("go").with_options(options));
    let (handle, mut events) = (run.handle(), Vec::new());
    let read = async {
        while let Some(event) = run.next().await {
            steer(&handle, &event).await;
            events.push(event);
        }
    };
    tokio::time::timeout(Duration::from_secs(30), read).await.unwrap();
    laws(&events).unwrap_or_else(|error| panic!("{error}\n{}", render(&events)));
    events
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_chain_of_servers_is_the_fleet_that_one_process_has() {
    let all = ["main", "second", "third"]
        .into_iter()
        .fold(ScriptedModel::new(), |model, name| scripts(name, model));
    let one =
        builder("main", all).with_subagent(local("second")).with_subagent(local("third")).build().unwrap();
    let here = events(&one).await;
    let chain = Chain::start().await;
    let there = events(&chain.first).await;
    assert_eq!(nameless(&there), nameless(&here));
    let sources = |events: &[AgentEvent]| -> Vec<_> {
        let of =
            |event: &AgentEvent| Some((event.source()?.depth, without_ids(event.source()?.path.as_ref())));
        events.iter().map(of).collect()
    };
    assert_eq!(sources(&there), sources(&here));
    // An event of the third server has the id of the second, from which it came.
    let ids: Vec<_> =
        there.iter().filter_map(|event| event.metadata.as_ref()?["remoteId"].as_str()).collect();
    let numbers: Vec<u64> = ids.iter().map(|id| id.rsplit('.').next().unwrap().parse().unwrap()).collect();
    assert!(numbers.len() > 20 && numbers.is_sorted_by(|a, b| a < b), "{ids:?}");
    let of_second = |event: &&AgentEvent| event.agent_id() == "second";
    let session = there.iter().find(of_second).unwrap().source().unwrap().session_id.as_str();
    assert!(ids.iter().all(|id| id.starts_with(session)), "{ids:?}");
    insta::assert_snapshot!(nameless(&there));
}

/// Returns a timeline without times, ids, and the tokens that depend on the length of ids.
pub(crate) fn nameless(events: &[AgentEvent]) -> String {
    let lines = timeless(events);
    let lines = lines.lines().map(|line| {
        let (line, tokens) = match line.split_once(" tok") {
            Some((line, rest)) => (line.trim_end_matches(|c: char| c.is_ascii_digit() || c == '/'), rest),
            None => (line, ""),
        };
        let parts = line.split("call-").map(|part| part.trim_start_matches(|c: char| c.is_ascii_digit()));
        without_ids(&parts.collect::<Vec<_>>().join("call-")) + tokens
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Replaces what looks like a UUID or a hash.
fn without_ids(text: &str) -> String {
    let is_id = |c: char| c.is_ascii_hexdigit() || c == '-';
    let (mut out, mut rest) = (String::new(), text);
    while let Some(start) = rest.find(is_id) {
        let end = rest[start..].find(|c| !is_id(c)).map_or(rest.len(), |end| start + end);
        out.push_str(&rest[..start]);
        out.push_str(if end - start >= 32 { "…" } else { &rest[start..end] });
        rest = &rest[end..];
    }
    out + rest
}

/// Waits until no run of a harness is active; panics after a second.
pub(crate) async fn idle(harness: &Harness) {
    let is_active = || harness.sessions().opened().iter().any(|session| session.active().is_some());
    for _ in 0..100 {
        if !is_active() {
            return;
        }
        tokio::time::sleep(ms(10)).await;
    }
    panic!("a run is still active");
}

pub(crate) fn child_end<'a>(events: &'a [AgentEvent], agent: &str) -> (Outcome, &'a str) {
    let ends: Vec<_> = events.iter().filter(|event| event.agent_id() == agent).collect();
    match &ends.last().unwrap().kind {
        EventKind::AgentEnd { outcome, error, .. } => {
            (*outcome, error.as_ref().map_or("", |error| error.message.as_str()))
        }
        other => panic!("{other}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_approves_a_call_two_servers_away() {
    let asks = RuleSet::default().with_pattern(Effect::Ask, "echo").unwrap();
    let third = builder("third", script("third")).with_permissions(asks);
    let chain = Chain::with(script("main"), script("second"), third).await;
    let mut asked = 0;
    let events = steered(&chain.first, async |run, event| {
        if let EventKind::RequireUserConfirm { confirm_id, tool_calls, .. } = &event.kind {
            assert_eq!((event.depth(), event.agent_id(), tool_calls[0].name.as_str()), (2, "third", "echo"));
            run.confirm(confirm_id, Decision::AllowWith(json!({ "say": "edited" }))).unwrap();
            asked += 1;
        }
    })
    .await;
    assert_eq!(asked, 1);
    let text = render(&events);
    assert!(text.contains("TOOL_RESULT_TEXT_DELTA \"{\\\"say\\\":\\\"edited\\\"}\""), "{text}");
    let answered = events.iter().filter(|event| matches!(event.kind, EventKind::UserConfirmResult { .. }));
    assert_eq!(answered.count(), 1, "{text}");
    assert_eq!(child_end(&events, "second"), (Outcome::Success, ""), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_stops_the_last_server_within_a_second() {
    let third = builder("third", ScriptedModel::new().agent("third", [Turn::new().text("I hang").hang()]));
    let chain = Chain::with(script("main"), script("second"), third).await;
    let mut cancelled = None;
    let events = steered(&chain.first, async |run, event| {
        if event.agent_id() == "third" && matches!(event.kind, EventKind::TextBlockDelta { .. }) {
            run.cancel_because(CancelReason::user("a test"));
            cancelled.get_or_insert_with(Instant::now);
        }
    })
    .await;
    for harness in [&chain.second, &chain.third] {
        idle(harness).await;
    }
    let after = cancelled.unwrap().elapsed();
    assert!(after < ms(1_000), "it took {after:?}");
    assert_eq!(child_end(&events, "second").0, Outcome::Cancelled, "{}", render(&events));
    assert_eq!(child_end(&events, "third").0, Outcome::Cancelled, "{}", render(&events));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_drop_stops_the_last_server_within_a_second() {
    let third = builder("third", ScriptedModel::new().agent("third", [Turn::new().text("I hang").hang()]));
    let chain = Chain::with(script("main"), script("second"), third).await;
    let mut run = chain.first.stream_events("go");
    while let Some(event) = run.next().await {
        if event.agent_id() == "third" && matches!(event.kind, EventKind::TextBlockDelta { .. }) {
            break;
        }
    }
    let mut log = run.handle().subscribe_from(1);
    drop(run);
    let dropped = Instant::now();
    for harness in [&chain.second, &chain.third] {
        idle(harness).await;
    }
    let after = dropped.elapsed();
    assert!(after < ms(1_000), "it took {after:?}");
    let events: Vec<_> = std::iter::from_fn(|| log.try_next()).collect();
    laws(&events).unwrap_or_else(|error| panic!("{error}\n{}", render(&events)));
    assert_eq!(child_end(&events, "third").0, Outcome::Cancelled, "{}", render(&events));
}

/// Has the root call an agent, then sends that one a further message; returns its turns and
/// answers.
pub(crate) async fn two_turns(first: &Harness, agent: &str, message: &str) -> Vec<(u32, String)> {
    let session = first.open_session("s").await.unwrap();
    let events: Vec<_> = session.run("go").unwrap().collect().await;
    laws(&events).unwrap();
    let key = session.children()[0].agent_key.clone();
    let mut log = session.log().subscribe();
    session.send(&key, message, SendMode::Queue).unwrap();
    while let Some(event) = log.next().await {
        if matches!(event.kind, EventKind::AgentEnd { .. }) {
            break;
        }
    }
    let mut log = session.log().subscribe_from(1);
    let events: Vec<_> = std::iter::from_fn(|| log.try_next()).collect();
    laws(&events).unwrap_or_else(|error| panic!("{error}\n{}", render(&events)));
    let turns = events.iter().filter_map(|event| match &event.kind {
        EventKind::AgentResult { result } if event.agent_id() == agent => {
            Some((event.source()?.turn, result.text()))
        }
        _ => None,
    });
    turns.collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_further_message_continues_the_conversation_at_the_remote() {
    let main = ScriptedModel::new().agent(
        "main",
        [
            Turn::new().spawn("second", "first"),
            Turn::new().call("agent_list", json!({})),
            Turn::new().text("All done."),
        ],
    );
    let second = ScriptedModel::new().agent("second", [Turn::new().text("One."), Turn::new().text("Two.")]);
    let (url, serving) = serve(builder("second", second).build().unwrap()).await;
    let first = builder("main", main).with_subagent(remote("second", &url)).build().unwrap();
    let turns = two_turns(&first, "second", "second").await;
    let mut log = first.open_session("s").await.unwrap().log().subscribe_from(1);
    let events: Vec<_> = std::iter::from_fn(|| log.try_next()).collect();
    assert_eq!(turns, [(1, "One.".to_owned()), (2, "Two.".to_owned())], "{}", render(&events));
    serving.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_can_not_be_reached_is_an_error_of_the_child_alone() {
    #[track_caller]
    fn check(events: &[AgentEvent], expected: &str) {
        let (outcome, error) = child_end(events, "second");
        assert_eq!(outcome, Outcome::Error);
        assert!(error.contains(expected), "{error:?} has no {expected:?}");
        assert_eq!(child_end(events, "main"), (Outcome::Success, ""));
    }
    let (url, serving) = serve(builder("second", script("second")).build().unwrap()).await;
    let first = |spec: AgentSpec| builder("main", script("main")).with_subagent(spec).build().unwrap();
    let wrong = AgentSpec::new("second", "Helps")
        .with_url(&*url)
        .with_header("Authorization", "Bearer ${NONE:-wrong}");
    check(&events(&first(wrong)).await, "invalid token");
    check(&events(&first(remote("second", &format!("{url}/v1/agents/missing")))).await, "missing");
    serving.abort();
    let refused = builder("main", script("main")).with_subagent(remote("second", "http://10.0.0.1")).build();
    let error = refused.unwrap_err().to_string();
    assert!(error.contains("10.0.0.1 is not a public address"), "{error}");
    let missing = AgentSpec::new("second", "Helps")
        .with_url("https://a.example")
        .with_header("X-Key", "${NO_SUCH_VARIABLE}");
    let error = builder("main", script("main")).with_subagent(missing).build().unwrap_err().to_string();
    assert!(error.contains("NO_SUCH_VARIABLE"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rule_here_denies_what_a_remote_asks_for() {
    let rules = |effect| RuleSet::default().with_pattern(effect, "echo").unwrap();
    let third = builder("third", script("third")).with_permissions(rules(Effect::Ask)).build().unwrap();
    let (url, serving) = serve(third).await;
    let main = ScriptedModel::new()
        .agent("main", [Turn::new().spawn("third", "look"), Turn::new().text("All done.")]);
    let first = builder("main", main).with_subagent(remote("third", &url));
    let first = first.with_permissions(rules(Effect::Deny)).build().unwrap();
    let events = steered(&first, async |_, event| {
        assert!(!matches!(event.kind, EventKind::RequireUserConfirm { .. }), "a person is asked");
    })
    .await;
    let text = render(&events);
    assert!(text.contains("echo is denied by the rule \\\"echo\\\""), "{text}");
    assert_eq!(child_end(&events, "third"), (Outcome::Success, ""), "{text}");
    serving.abort();
}

/// The third server has no rules; those of the run, of the parent and of the declaration reach it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rules_hold_two_servers_away() {
    let deny = |pattern: &str| RuleSet::default().with_pattern(Effect::Deny, pattern).unwrap();
    let says = |say: &str| Turn::new().call("echo", json!({ "say": say }));
    let third = ScriptedModel::new()
        .agent("third", [says("run"), says("harness"), says("spec"), says("free"), Turn::new().text("So.")]);
    let (url, serving_third) = serve(builder("third", third).build().unwrap()).await;
    let second = ScriptedModel::new()
        .agent("second", [Turn::new().spawn("third", "look"), Turn::new().text("It is so.")]);
    let second = builder("second", second).with_subagent(remote("third", &url)).build().unwrap();
    let (url, serving_second) = serve(second).await;
    let spec = remote("second", &url).with_permission("echo(say: spec)", Permission::Deny);
    let first = builder("main", script("main")).with_subagent(spec);
    let first = first.with_permissions(deny("echo(say: harness)").with_origin("a file")).build().unwrap();
    let request = RunRequest::new("go").with_rules(deny("echo(say: run)"));
    let events: Vec<_> = first.stream_events(request).collect().await;
    laws(&events).unwrap_or_else(|error| panic!("{error}\n{}", render(&events)));
    let text = render(&events);
    for say in ["run", "harness", "spec"] {
        assert!(
            text.contains(&format!("echo is denied by the rule \\\"echo(say: {say})\\\"\"")),
            "{say}: {text}"
        );
    }
    assert!(text.contains("TOOL_RESULT_TEXT_DELTA \"{\\\"say\\\":\\\"free\\\"}\""), "{text}");
    assert!(!text.contains("a file"), "where a rule is written stays here: {text}");
    serving_third.abort();
    serving_second.abort();
}

/// A person answers at the remote itself; here the request ends with that answer, and the remote is
/// not told once more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_at_the_remote_is_the_answer_here() {
    let asks = RuleSet::default().with_pattern(Effect::Ask, "echo").unwrap();
    let third = builder("third", script("third")).with_permissions(asks).build().unwrap();
    let (url, serving) = serve(third.clone()).await;
    for (decision, expected) in [
        (Decision::Allow, (true, r#"{"say":"c"}"#, None)),
        (Decision::AllowWith(json!({ "say": "there" })), (true, r#"{"say":"there"}"#, None)),
        (Decision::Deny("not there".to_owned()), (false, r#"{"say":"c"}"#, Some("not there"))),
    ] {
        let spawn = json!({ "agent_id": "third", "task": "look", "timeout_seconds": 0 });
        let main = ScriptedModel::new()
            .agent("main", [Turn::new().call("agent_spawn", spawn), Turn::new().text("All done.")]);
        let first = builder("main", main).with_subagent(remote("third", &url)).build().unwrap();
        let events = steered(&first, async |_, event| {
            if matches!(event.kind, EventKind::RequireUserConfirm { .. }) {
                let session = third.open_session(event.source().unwrap().session_id.as_str()).await.unwrap();
                let open = session.fleet().confirmations.keys().next().unwrap().clone();
                session.confirm(&open, decision.clone()).unwrap();
            }
        })
        .await;
        let results: Vec<_> = events
            .iter()
            .filter_map(|event| match &event.kind {
                EventKind::UserConfirmResult { confirm_results, .. } => Some(&confirm_results[0]),
                _ => None,
            })
            .collect();
        let [result] = results[..] else { panic!("{}", render(&events)) };
        let shown = (result.confirmed, &*result.tool_call.arguments, result.reason.as_deref());
        assert_eq!(shown, expected, "{}", render(&events));
        assert!(render(&events).contains("waiting_confirm → running"), "{}", render(&events));
    }
    serving.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_budget_here_covers_what_a_remote_spends() {
    let usage = Usage::new(50_000, 0);
    let second = ScriptedModel::new()
        .agent("second", [Turn::new().usage(usage).call("echo", json!({})), Turn::new().text("It is so.")]);
    let run = async |tokens: u64| {
        let (url, serving) = serve(builder("second", second.clone()).build().unwrap()).await;
        let first = builder("main", script("main")).with_subagent(remote("second", &url));
        let first = first.with_budget(Budget::default().with_tokens(tokens)).build().unwrap();
        let events = events(&first).await;
        serving.abort();
        events
    };
    let roomy = run(1_000_000).await;
    assert_eq!(child_end(&roomy, "second"), (Outcome::Success, ""), "{}", render(&roomy));
    // The remote refuses its next call by the budget that it was given; the first server its own,
    // because it has counted what the remote used.
    let tight = run(50_500).await;
    for agent in ["second", "main"] {
        let (outcome, error) = child_end(&tight, agent);
        assert_eq!(outcome, Outcome::Error, "{}", render(&tight));
        assert!(error.contains("token budget"), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_remote_with_lower_limits_keeps_them() {
    let third = builder("third", script("third")).with_max_depth(0);
    let chain = Chain::with(script("main"), script("second"), third).await;
    let events = events(&chain.first).await;
    assert_eq!(child_end(&events, "third"), (Outcome::Success, ""), "{}", render(&events));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_is_cut_again_and_again_shows_nothing_twice() {
    let whole = events(&Chain::start().await.first).await;
    let slow = std::env::var_os("RUN_SLOW_TESTS").is_some();
    for bytes in (2_000..6_000).step_by(if slow { 37 } else { 1_301 }) {
        let third = builder("third", script("third")).build().unwrap();
        let (url, serving_third) = serve(third).await;
        let second =
            builder("second", script("second")).with_subagent(remote("third", &url)).build().unwrap();
        let (url, serving_second) = serve(second).await;
        let (proxy, cutting) = cut(&url, bytes).await;
        let first = builder("main", script("main")).with_subagent(remote("second", &proxy)).build().unwrap();
        assert_eq!(nameless(&events(&first).await), nameless(&whole), "{bytes} bytes a connection");
        [serving_third, serving_second, cutting].iter().for_each(JoinHandle::abort);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_remote_child_goes_on_in_the_background() {
    let main = ScriptedModel::new().agent(
        "main",
        [
            Turn::new().call(
                "agent_spawn",
                json!({ "agent_id": "second", "task": "find out", "timeout_seconds": 0 }),
            ),
            Turn::new().text("Meanwhile."),
            Turn::new().text("All done."),
        ],
    );
    let third = builder("third", script("third")).build().unwrap();
    let (url, serving_third) = serve(third).await;
    let second = builder("second", script("second")).with_subagent(remote("third", &url)).build().unwrap();
    let (url, serving_second) = serve(second).await;
    let first = builder("main", main).with_subagent(remote("second", &url)).build().unwrap();
    let events = events(&first).await;
    let text = render(&events);
    assert_eq!(child_end(&events, "second"), (Outcome::Success, ""), "{text}");
    assert_eq!(child_end(&events, "third"), (Outcome::Success, ""), "{text}");
    let in_task = events.iter().filter(|event| event.depth() == 2);
    assert!(
        in_task.clone().count() > 5 && in_task.clone().all(|event| event.source().unwrap().task_id.is_some()),
        "{text}"
    );
    [serving_third, serving_second].iter().for_each(JoinHandle::abort);
}

/// The fleet of a remote whose agent has a call run by its caller.
async fn with_call_for_the_caller(tools: &[&str]) -> Vec<AgentEvent> {
    let third = ScriptedModel::new()
        .agent("third", [Turn::new().call("browse", json!({})), Turn::new().text("Seen.")]);
    let browse = ExternalTool::new("browse", "Opens a page at the caller's", json!({ "type": "object" }));
    let (url, serving) = serve(builder("third", third).with_tool(browse).build().unwrap()).await;
    let main = ScriptedModel::new()
        .agent("main", [Turn::new().spawn("third", "look"), Turn::new().text("All done.")]);
    let spec = remote("third", &url).with_tools(tools.iter().copied());
    let first = builder("main", main).with_subagent(spec).build().unwrap();
    let events = steered(&first, async |run, event| {
        if let EventKind::RequireExternalExecution { tool_calls, .. } = &event.kind {
            run.submit_tool_result(&tool_calls[0].id, "a page").unwrap();
        }
    })
    .await;
    serving.abort();
    events
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_remote_has_the_calls_run_that_its_declaration_names() {
    let named = render(&with_call_for_the_caller(&["browse"]).await);
    assert!(named.contains("TOOL_RESULT_TEXT_DELTA \"a page\""), "{named}");
    let other = render(&with_call_for_the_caller(&[]).await);
    assert!(other.contains("browse is not among the tools"), "{other}");
    assert!(!other.contains("REQUIRE_EXTERNAL_EXECUTION"), "{other}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_running_remote_is_not_steered() {
    let second = ScriptedModel::new().agent("second", [Turn::new().text("I hang").hang()]);
    let (url, serving) = serve(builder("second", second).build().unwrap()).await;
    let first = builder("main", script("main")).with_subagent(remote("second", &url)).build().unwrap();
    let mut refused = None;
    steered(&first, async |run, event| {
        if event.depth() == 1 && matches!(event.kind, EventKind::TextBlockDelta { .. }) {
            let sent = run.send(event.agent_key().unwrap(), "faster", SendMode::Steer);
            refused = Some(sent.unwrap_err().to_string());
            run.cancel();
        }
    })
    .await;
    assert!(refused.unwrap().ends_with("send with mode queue"));
    serving.abort();
}
