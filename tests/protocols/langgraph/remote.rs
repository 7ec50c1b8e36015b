//! A graph of LangGraph's development server as a child of ours.

use std::{
    sync::OnceLock,
    time::{Duration, Instant},
};

use mainstem::{prelude::*, spec::Protocol};
use mainstem_testing::{laws, render};
use serde_json::json;

use crate::{
    child::{Process, end, events, request, shown, steered, text},
    proxy::{Fault, proxy},
    restart::check_each_cut,
};

/// Returns the address of LangGraph's development server, which is started once; `None` if its
/// packages are not installed.
fn dev_server() -> Option<&'static str> {
    static SERVER: OnceLock<Option<Process>> = OnceLock::new();
    let server = SERVER.get_or_init(|| Process::start("langgraph", "dev_server.py", "http://"));
    server.as_ref().map(|server| server.said.as_str())
}

fn graph(url: &str, name: &str) -> AgentSpec {
    AgentSpec::new("far", "Helps")
        .with_url(format!("{url}/assistants/{name}"))
        .with_protocol(Protocol::LangGraph)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_graph_thinks_speaks_and_calls_tools() {
    let Some(url) = dev_server() else { return };
    let events = events(graph(url, "agent")).await;
    insta::assert_snapshot!(shown(&events));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn graphs_that_tools_run_are_agents_below() {
    let Some(url) = dev_server() else { return };
    let events = events(graph(url, "team")).await;
    let starts: Vec<_> = events
        .iter()
        .filter(|event| matches!(event.kind, EventKind::AgentStart { .. }))
        .filter_map(|event| event.source())
        .map(|source| (source.agent_id.to_string(), source.depth, source.parent_tool_call_id.is_some()))
        .collect();
    let helper = || ("researcher".to_owned(), 2, true);
    assert_eq!(starts, [("far".to_owned(), 1, true), helper(), helper()], "{}", render(&events));
    assert_eq!(text(&events, "researcher").matches("It ").count(), 2);
    assert_eq!(text(&events, "far"), "I ask two.Both agree.");
    assert_eq!(end(&events, "far"), (Outcome::Success, ""));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_answer_of_a_node_that_is_a_graph_is_that_of_the_run() {
    let Some(url) = dev_server() else { return };
    let events = events(graph(url, "nested")).await;
    assert_eq!(text(&events, "helper"), "I look.It is so.", "{}", render(&events));
    assert_eq!(text(&events, "far"), "It is so.");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_without_parts_is_said() {
    let Some(url) = dev_server() else { return };
    assert_eq!(text(&events(graph(url, "plain")).await, "far"), "You said: go");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broken_node_is_the_error_of_the_child() {
    let Some(url) = dev_server() else { return };
    let all = events(graph(url, "broken")).await;
    assert_eq!(end(&all, "far"), (Outcome::Error, "ValueError: the node is broken"), "{}", render(&all));
    assert_eq!(text(&all, "far"), "I try.");
    assert_eq!(text(&all, "main"), "All done.");
    let all = events(graph(url, "unknown")).await;
    let (outcome, why) = end(&all, "far");
    assert!(outcome == Outcome::Error && why.contains("Invalid assistant: 'unknown'"), "{why}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_interrupt_asks_a_person_and_resumes() {
    let Some(url) = dev_server() else { return };
    let answered = async |graph_name: &str, decision: Decision| {
        let mut asked = String::new();
        let events = steered(graph(url, graph_name), async |run, event| {
            if let EventKind::RequireUserConfirm { confirm_id, tool_calls, .. } = &event.kind {
                asked = format!("{} {}", tool_calls[0].name, tool_calls[0].arguments);
                run.confirm(confirm_id, decision.clone()).unwrap();
            }
        })
        .await;
        assert_eq!(end(&events, "far"), (Outcome::Success, ""), "{}", render(&events));
        (asked, text(&events, "far"))
    };
    let asked = |asked: &str, said: &str| (asked.to_owned(), said.to_owned());
    let send = r#"send {"to":"you","interrupt":{"action":"send","to":"you"}}"#;
    assert_eq!(answered("mailer", Decision::Allow).await, asked(send, "Done: sent to you"));
    let deny = Decision::Deny("not today".into());
    assert_eq!(answered("mailer", deny).await, asked(send, "Done: not sent: False"));
    let city = r#"interrupt {"value":"Which city?"}"#;
    let answer = Decision::AllowWith(json!("Bern"));
    assert_eq!(answered("ask", answer).await, asked(city, "You said Bern."));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn text_arrives_before_the_end_and_a_cancel_stops_the_run() {
    let Some(url) = dev_server() else { return };
    let (mut thread, started) = (String::new(), Instant::now());
    let events = steered(graph(url, "slow"), async |run, event| {
        if let EventKind::TextBlockDelta { delta, .. } = &event.kind
            && event.agent_id() == "far"
            && delta == "3 "
        {
            // The run takes 20 s.
            assert_eq!(status(url, "slow").await, "running");
            run.cancel_because(CancelReason::user("a test"));
        }
    })
    .await;
    assert!(started.elapsed() < Duration::from_secs(15));
    assert!(text(&events, "far").starts_with("0 1 2 3 "));
    assert_eq!(end(&events, "far").0, Outcome::Cancelled);
    for _ in 0..100 {
        thread = status(url, "slow").await;
        if thread != "running" {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(thread, "interrupted");
}

/// Returns the status of the latest run of a graph.
async fn status(url: &str, graph: &str) -> String {
    let body = json!({ "metadata": { "graph_id": graph }, "limit": 1, "sort_by": "created_at", "sort_order": "desc" });
    let threads = request(url, "POST", "/threads/search", "", Some(&body)).await;
    let id = threads[0]["thread_id"].as_str().unwrap();
    let runs = request(url, "GET", &format!("/threads/{id}/runs"), "", None).await;
    runs[0]["status"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cut_stream_goes_on_and_nothing_is_said_twice() {
    let Some(url) = dev_server() else { return };
    let expected: String = (0..300).map(|number| format!("{number} ")).collect();
    for fault in [Fault::Cut(30_000), Fault::Cut(77_777), Fault::LoseFirst] {
        let url = proxy(url, fault).await;
        let events = events(graph(&url, "counting")).await;
        assert_eq!(text(&events, "far"), expected, "{}", render(&events));
        assert_eq!(end(&events, "far"), (Outcome::Success, ""));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_does_not_stream_is_awaited() {
    let Some(url) = dev_server() else { return };
    let url = proxy(url, Fault::NoStream).await;
    let events = events(graph(&url, "agent")).await;
    insta::assert_snapshot!(shown(&events));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_further_message_continues_the_thread() {
    let Some(url) = dev_server() else { return };
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
        .with_subagent(graph(url, "plain"))
        .build()
        .unwrap();
    let events: Vec<_> = harness.stream_events("go").collect().await;
    laws(&events).unwrap();
    assert_eq!(text(&events, "far"), "You said: goYou said: again", "{}", render(&events));
    let body = json!({ "metadata": { "graph_id": "plain" }, "limit": 100 });
    let threads = request(url, "POST", "/threads/search", "", Some(&body)).await;
    let lengths =
        threads.as_array().unwrap().iter().map(|one| one["values"]["messages"].as_array().unwrap().len());
    assert!(lengths.into_iter().any(|length| length == 4), "{threads}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_background_task_outlives_its_process() {
    let Some(url) = dev_server() else { return };
    for name in ["agent", "team", "plain"] {
        check_each_cut(graph(url, name), "go").await;
    }
}
