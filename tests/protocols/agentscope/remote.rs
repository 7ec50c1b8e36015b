//! An agent of AgentScope's service as a child of ours.

use std::{
    sync::OnceLock,
    time::{Duration, Instant},
};

use futures_util::StreamExt;
use mainstem::{
    event::TaskStatus, model::scripted::Turn, policy::PlanMode, prelude::*, remote::Remotes, spec::Protocol,
};
use mainstem_testing::{laws, render};
use serde_json::{Value, json};

use crate::{
    child::{Process, end, events, harness, request, shown, steered, text},
    proxy::{Fault, proxy},
    restart::{Killed, check_each_cut},
};

/// The user whose agents the service has.
const USER: &str = "X-User-ID: tests\r\n";

/// The service, and the ids of its agents.
struct Service {
    url: String,
    agents: Value,
    _process: Process,
}

/// Returns the service, which is started once; `None` if its packages are not installed.
fn service() -> Option<&'static Service> {
    static SERVICE: OnceLock<Option<Service>> = OnceLock::new();
    let service = SERVICE.get_or_init(|| {
        let process = Process::start("agentscope", "server.py", "{")?;
        let said: Value = serde_json::from_str(&process.said).unwrap();
        let url = said["url"].as_str().unwrap().to_owned();
        Some(Service { url, agents: said["agents"].clone(), _process: process })
    });
    service.as_ref()
}

fn agent(url: &str, name: &str) -> AgentSpec {
    AgentSpec::new("far", "Helps")
        .with_url(format!("{url}/agents/{name}"))
        .with_header("X-User-ID", "tests")
        .with_protocol(Protocol::AgentScope)
}

impl Service {
    fn agent(&self, name: &str) -> AgentSpec {
        agent(&self.url, name)
    }

    async fn get(&self, path: &str) -> Value {
        request(&self.url, "GET", path, USER, None).await
    }

    /// Returns the sessions of an agent that are children of ours, the latest first.
    async fn sessions(&self, name: &str) -> Vec<Value> {
        let id = self.agents[name].as_str().unwrap();
        let page = self.get(&format!("/sessions/?agent_id={id}")).await;
        let all = page["sessions"].as_array().unwrap().clone();
        let is_ours =
            |one: &Value| one["session"]["config"]["name"].as_str().unwrap().starts_with("Mainstem ");
        all.into_iter().filter(is_ours).collect()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_thinks_speaks_and_calls_tools() {
    let Some(service) = service() else { return };
    let all = events(service.agent("chat")).await;
    insta::assert_snapshot!(without_times(&shown(&all)));
    let all = events(service.agent("shows")).await;
    assert!(render(&all).contains("TOOL_RESULT_DATA_DELTA"), "{}", render(&all));
    assert_eq!((text(&all, "far").as_str(), end(&all, "far")), ("Seen.", (Outcome::Success, "")));
    let all = events(service.agent("picture")).await;
    assert!(render(&all).contains("DATA_BLOCK_START image/png"), "{}", render(&all));
    assert_eq!(end(&all, "far"), (Outcome::Success, ""));
}

/// Returns a text without the lines of the reminder that has the time.
fn without_times(text: &str) -> String {
    let lines = text.lines().map(|line| match line.split_once("<current-time>") {
        Some((before, _)) => before,
        None => line,
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_of_a_reply_is_that_of_the_child() {
    let Some(service) = service() else { return };
    let all = events(service.agent("broken")).await;
    let why = "The reply failed with an unknown error. (unknown)";
    assert_eq!(end(&all, "far"), (Outcome::Error, why), "{}", render(&all));
    assert_eq!((text(&all, "far").as_str(), text(&all, "main").as_str()), ("I try.", "All done."));
    let all = events(service.agent("endless")).await;
    assert_eq!(end(&all, "far").0, Outcome::MaxIterations, "{}", render(&all));
    let all = events(service.agent("silent")).await;
    assert_eq!(end(&all, "far").0, Outcome::Error, "{}", render(&all));
    let check = async |name: &str, expected: &str| {
        let all = events(service.agent(name)).await;
        let (outcome, why) = end(&all, "far");
        assert!(outcome == Outcome::Error && why.contains(expected), "{why}");
    };
    check("unknown", "no agent \"unknown\" for this user; it has: ").await;
    check("unset", "no session of the agent \"unset\" has a model").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_service_says_of_an_agent_what_it_is() {
    let Some(service) = service() else { return };
    let remotes = Remotes::new().with_host("127.0.0.1".parse().unwrap());
    let described = async |spec: &AgentSpec| match remotes.describe(spec).await {
        Ok(found) => format!("{} {}", found.protocol, found.about),
        Err(error) => error.to_string(),
    };
    let check = async |spec: AgentSpec, expected: &str| {
        let said = described(&spec).await;
        assert!(said.contains(expected), "{said}");
    };
    check(service.agent("chat"), "agentscope chat, at an AgentScope service 2.0.11").await;
    let unnamed = AgentSpec::new("echo", "Helps").with_url(&service.url).with_header("X-User-ID", "tests");
    check(unnamed, "agentscope echo, at an AgentScope service").await;
    check(service.agent("nope"), "no agent \"nope\" for this user").await;
    let no_user = AgentSpec::new("far", "Helps").with_url(format!("{}/agents/chat", service.url));
    check(no_user.clone(), "its agents are those of a user").await;
    let all = events(no_user.clone()).await;
    assert!(end(&all, "far").1.contains("declare the header X-User-ID"), "{}", render(&all));
    // The user of the run is the service's.
    let session = harness(no_user).open_session("users").await.unwrap();
    let all: Vec<_> = session.run(RunRequest::new("go").with_user("tests")).unwrap().collect().await;
    assert_eq!(end(&all, "far"), (Outcome::Success, ""), "{}", render(&all));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approval_is_asked_for_here_and_answered_there() {
    let Some(service) = service() else { return };
    let (mut asked, mut decisions) =
        (Vec::new(), [Decision::AllowWith(json!({ "to": "us" })), Decision::Deny("no".into())].into_iter());
    let all = steered(service.agent("mailer"), async |run, event| {
        if let EventKind::RequireUserConfirm { confirm_id, tool_calls, .. } = &event.kind {
            asked.push(tool_calls[0].arguments.clone());
            run.confirm(confirm_id, decisions.next().unwrap()).unwrap();
        }
    })
    .await;
    assert_eq!(asked, [r#"{"to": "you"}"#, r#"{"to": "me"}"#]);
    let said = text(&all, "far");
    assert!(said.starts_with("Done: sent to us; ") && !said.contains("sent to me"), "{said}");
    assert_eq!(end(&all, "far"), (Outcome::Success, ""), "{}", render(&all));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_is_lost_on_its_way_is_sent_again() {
    let Some(service) = service() else { return };
    let url = proxy(&service.url, Fault::LoseAnswer).await;
    let all = steered(agent(&url, "sender"), async |run, event| {
        if let EventKind::RequireUserConfirm { confirm_id, .. } = &event.kind {
            run.confirm(confirm_id, Decision::Allow).unwrap();
        }
    })
    .await;
    assert_eq!(text(&all, "far"), "Done: sent to you", "{}", render(&all));
    assert_eq!(end(&all, "far"), (Outcome::Success, ""), "{}", render(&all));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_of_the_caller_is_run_here() {
    let Some(service) = service() else { return };
    let all = steered(service.agent("asker").with_tools(["ask_caller"]), async |run, event| {
        if let EventKind::RequireExternalExecution { tool_calls, .. } = &event.kind {
            assert_eq!(tool_calls[0].name, "ask_caller");
            run.submit_tool_result(&tool_calls[0].id, "Bern").unwrap();
        }
    })
    .await;
    assert_eq!(text(&all, "far"), "You said: Bern", "{}", render(&all));
    assert_eq!(end(&all, "far"), (Outcome::Success, ""), "{}", render(&all));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn text_arrives_before_the_end_and_a_cancel_stops_the_reply() {
    let Some(service) = service() else { return };
    let started = Instant::now();
    let all = steered(service.agent("slow"), async |run, event| {
        if let EventKind::TextBlockDelta { delta, .. } = &event.kind
            && event.agent_id() == "far"
            && delta == "3 "
        {
            // The reply takes 20 s.
            assert_eq!(service.sessions("slow").await[0]["status"], "running");
            run.cancel_because(CancelReason::user("a test"));
        }
    })
    .await;
    assert!(started.elapsed() < Duration::from_secs(15));
    assert!(text(&all, "far").starts_with("0 1 2 3 "));
    assert_eq!(end(&all, "far").0, Outcome::Cancelled);
    for _ in 0..100 {
        if service.sessions("slow").await[0]["status"] == "idle" {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the reply goes on at the service");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cut_stream_goes_on_and_nothing_is_said_twice() {
    let Some(service) = service() else { return };
    let expected: String = (0..300).map(|number| format!("{number} ")).collect();
    for fault in [Fault::Cut(77_777), Fault::Cut(120_000), Fault::LoseFirst] {
        let url = proxy(&service.url, fault).await;
        let all = events(agent(&url, "counting")).await;
        assert_eq!(text(&all, "far"), expected, "{}", render(&all));
        assert_eq!(end(&all, "far"), (Outcome::Success, ""));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_further_message_continues_the_session() {
    let Some(service) = service() else { return };
    let send = json!({ "label": "it", "message": "again" });
    let model = ScriptedModel::new().agent(
        "main",
        [
            Turn::new().call("agent_spawn", json!({ "agent_id": "far", "task": "go", "label": "it" })),
            Turn::new().call("agent_send", send),
            Turn::new().text("All done."),
        ],
    );
    let harness = Harness::builder("main", model)
        .with_remote_host("127.0.0.1".parse().unwrap())
        .with_subagent(service.agent("echo"))
        .build()
        .unwrap();
    let all: Vec<_> = harness.stream_events("go").collect().await;
    laws(&all).unwrap();
    assert_eq!(text(&all, "far"), "You said: goYou said: go | again", "{}", render(&all));
    assert_eq!(service.sessions("echo").await.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_only_reads_in_plan_mode() {
    let Some(service) = service() else { return };
    let harness = harness(service.agent("mailer"));
    let session = harness.open_session("planned").await.unwrap();
    session.set_plan_mode(PlanMode::On);
    let mut run = session.run("go").unwrap();
    let mut all = Vec::new();
    while let Some(event) = run.next().await {
        all.push(event);
    }
    laws(&all).unwrap();
    let ours = service.sessions("mailer").await;
    assert_eq!(ours[0]["session"]["state"]["permission_context"]["mode"], "explore", "{}", render(&all));
    assert!(!text(&all, "far").contains("sent to"), "{}", render(&all));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_background_task_outlives_its_process() {
    let Some(service) = service() else { return };
    for name in ["chat", "shows", "echo"] {
        check_each_cut(service.agent(name), "go").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reply_that_goes_on_is_found_by_the_next_process() {
    let Some(service) = service() else { return };
    let killed = Killed::after("TOOL_RESULT_END", service.agent("steady")).await;
    let (all, said, task) = killed.end().await;
    let whole: String = (0..40).map(|number| format!("{number} ")).collect();
    assert_eq!(said, format!("I look.{whole}"), "{}", render(&all));
    assert_eq!((task.status, task.result.as_deref()), (TaskStatus::Completed, Some(&*whole)));
    // It was killed within the answer, too.
    let killed = Killed::after("TEXT_BLOCK_DELTA", service.agent("counted")).await;
    let (all, said, task) = killed.end().await;
    assert_eq!(said, whole, "{}", render(&all));
    assert_eq!(task.status, TaskStatus::Completed, "{task:?}");
    let text = render(&all);
    assert_eq!(text.matches("STREAM_FALLBACK").count(), 1, "{text}");
    assert_eq!(service.sessions("counted").await.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_service_asked_is_asked_again_after_a_restart() {
    let Some(service) = service() else { return };
    let killed = Killed::after("REQUIRE_USER_CONFIRM", service.agent("sender")).await;
    killed.confirm(Decision::Allow).await;
    let (all, said, task) = killed.end().await;
    assert_eq!(
        (task.status, said.as_str()),
        (TaskStatus::Completed, "Done: sent to you"),
        "{}",
        render(&all)
    );
    let killed = Killed::after("TEXT_BLOCK_DELTA", service.agent("slow")).await;
    assert_eq!(killed.cancel().await.status, TaskStatus::Cancelled);
    for _ in 0..100 {
        if service.sessions("slow").await[0]["status"] == "idle" {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the reply goes on at the service");
}
