//! What this side and other clients say to a remote while its turn runs, in each protocol: cancels,
//! plan mode, decisions and results.

use std::sync::{Arc, Mutex};

use futures_util::{StreamExt, stream};
use mainstem::{
    message::{ConfirmId, ToolCall, ToolCallId},
    model::scripted::Turn,
    policy::PlanMode,
    prelude::*,
    remote::{BegunTurn, RemoteAgent, RemoteControl, RemoteError, RemoteEvent, RemoteTurn},
};
use mainstem_testing::render;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use crate::{
    anywhere::serve,
    chain::{builder, child_end, idle, local, remote, scripts, steered},
    speaks::Speaks,
    support::{Spawns, ms},
};

const ALL: [Speaks; 6] = [
    Speaks::Mainstem,
    Speaks::AgentScope,
    Speaks::A2a,
    Speaks::PlainA2a,
    Speaks::PolledA2a,
    Speaks::LangGraph,
];

/// A caller that spawns `second` and answers.
fn caller() -> ScriptedModel {
    scripts("main", ScriptedModel::new())
}

/// A server's agent that makes a call which needs an approval, and answers.
fn asking() -> Harness {
    let model = ScriptedModel::new()
        .agent("second", [Turn::new().call("echo", json!({ "say": "a" })), Turn::new().text("So.")]);
    let ask = RuleSet::default().with_pattern(Effect::Ask, "echo").unwrap();
    builder("second", model).with_permissions(ask).build().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_stops_the_tasks_of_a_remote() {
    for speaks in ALL {
        let wait = json!({ "agent_id": "third", "task": "look", "timeout_seconds": 0 });
        let model = ScriptedModel::new()
            .agent("second", [Turn::new().call("agent_spawn", wait), Turn::new().text("I hang").hang()])
            .agent("third", [Turn::new().text("I hang, too").hang()]);
        let second = builder("second", model).with_subagent(local("third")).build().unwrap();
        let (url, serving) = speaks.serve(second.clone()).await;
        let first = builder("main", caller()).with_subagent(speaks.declared("second", &url)).build().unwrap();
        let tasks = || second.sessions().opened().iter().map(|one| one.task_set().live()).sum::<usize>();
        let mut is_cancelled = false;
        let events = steered(&first, async |run, event| {
            // A task that is polled shows nothing before it has a state to show.
            let has_begun = event.agent_id() == "second" && event.kind.name() != "AGENT_START";
            if !has_begun || std::mem::replace(&mut is_cancelled, true) {
                return;
            }
            while tasks() == 0 {
                tokio::time::sleep(ms(5)).await;
            }
            run.cancel();
        })
        .await;
        idle(&second).await;
        for _ in 0..200 {
            if tasks() == 0 {
                break;
            }
            tokio::time::sleep(ms(10)).await;
        }
        assert_eq!(tasks(), 0, "{speaks:?}\n{}", render(&events));
        serving.abort();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_protocol_without_plan_mode_begins_nothing_in_it() {
    for speaks in ALL {
        let model = ScriptedModel::new().agent("second", [Turn::new().text("One.")]);
        let second = builder("second", model).build().unwrap();
        let (url, serving) = speaks.serve(second.clone()).await;
        let first = builder("main", caller()).with_subagent(speaks.declared("second", &url)).build().unwrap();
        let session = first.open_session("s").await.unwrap();
        session.set_plan_mode(PlanMode::On);
        let events: Vec<_> = session.run("go").unwrap().collect().await;
        let (outcome, why) = child_end(&events, "second");
        if matches!(speaks, Speaks::Mainstem | Speaks::A2a) {
            assert_eq!(outcome, Outcome::Success, "{speaks:?}: {why}");
        } else {
            assert!(why.contains("so it is not asked in plan mode"), "{speaks:?}: {why}");
            let runs = second.sessions().opened().iter().map(|session| session.runs().len()).sum::<usize>();
            assert_eq!(runs, 0, "{speaks:?}");
        }
        serving.abort();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_result_that_another_client_gives_ends_the_wait_here() {
    let third = ScriptedModel::new()
        .agent("third", [Turn::new().call("browse", json!({})), Turn::new().text("Seen.")]);
    let browse = ExternalTool::new("browse", "Opens a page at the caller's", json!({ "type": "object" }));
    let third = builder("third", third).with_tool(browse).build().unwrap();
    let (url, serving) = serve(third.clone()).await;
    let main = ScriptedModel::new()
        .agent("main", [Turn::new().spawn("third", "look"), Turn::new().text("All done.")]);
    let spec = remote("third", &url).with_tools(["browse"]);
    let first = builder("main", main).with_subagent(spec).build().unwrap();
    let events = steered(&first, async |_, event| {
        if let EventKind::RequireExternalExecution { tool_calls, .. } = &event.kind {
            let there = third.sessions().opened().remove(0);
            there.submit_tool_result(&tool_calls[0].id, "a page of another").unwrap();
        }
    })
    .await;
    let text = render(&events);
    assert!(text.contains("TOOL_RESULT_TEXT_DELTA \"a page of another\""), "{text}");
    assert_eq!(text.matches("EXTERNAL_EXECUTION_RESULT").count(), 1, "{text}");
    assert_eq!(child_end(&events, "third"), (Outcome::Success, ""), "{text}");
    serving.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_decision_that_another_client_makes_ends_the_wait_here() {
    // A protocol that does not tell is asked after some seconds.
    let checked = ALL.map(async |speaks| {
        let second = asking();
        let (url, serving) = speaks.serve(second.clone()).await;
        let first = builder("main", caller()).with_subagent(speaks.declared("second", &url)).build().unwrap();
        let events = steered(&first, async |_, event| {
            if let EventKind::RequireUserConfirm { .. } = &event.kind {
                let there = second.sessions().opened().remove(0);
                let asked = there.fleet().confirmations.keys().next().cloned().unwrap();
                there.confirm(&asked, Decision::Allow).unwrap();
            }
        })
        .await;
        let text = render(&events);
        assert_eq!(child_end(&events, "second"), (Outcome::Success, ""), "{speaks:?}\n{text}");
        let answered = events.iter().filter(|event| event.kind.name() == "USER_CONFIRM_RESULT");
        assert_eq!(answered.count(), 1, "{speaks:?}\n{text}");
        serving.abort();
    });
    futures_util::future::join_all(checked).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_stays_open_until_it_is_answered() {
    // Longer than the pause between two looks at the remote.
    let checked = ALL.map(async |speaks| {
        let second = asking();
        let (url, serving) = speaks.serve(second).await;
        let first = builder("main", caller()).with_subagent(speaks.declared("second", &url)).build().unwrap();
        let mut asked = 0;
        let events = steered(&first, async |run, event| {
            if let EventKind::RequireUserConfirm { confirm_id, .. } = &event.kind {
                asked += 1;
                let (run, id) = (run.clone(), confirm_id.clone());
                #[expect(clippy::disallowed_methods, reason = "the run is polled meanwhile")]
                tokio::spawn(async move {
                    tokio::time::sleep(ms(6_000)).await;
                    run.confirm(&id, Decision::Allow).unwrap();
                });
            }
        })
        .await;
        let text = render(&events);
        assert_eq!((child_end(&events, "second"), asked), ((Outcome::Success, ""), 1), "{speaks:?}\n{text}");
        serving.abort();
    });
    futures_util::future::join_all(checked).await;
}

/// A proxy that drops the connection of the first request which has this text, behind the request.
async fn losing(url: &str, text: &'static str) -> (String, Arc<Mutex<bool>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (proxy, server) = (format!("http://{}", listener.local_addr().unwrap()), url.replace("http://", ""));
    let lost = Arc::new(Mutex::new(false));
    let is_lost = lost.clone();
    #[expect(clippy::disallowed_methods, reason = "ends with the test's runtime")]
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let (server, is_lost) = (server.clone(), is_lost.clone());
            #[expect(clippy::disallowed_methods, reason = "ends with its connection")]
            tokio::spawn(async move { pass(client, server, text, &is_lost).await });
        }
    });
    (proxy, lost)
}

async fn pass(client: TcpStream, server: String, text: &str, is_lost: &Mutex<bool>) -> std::io::Result<()> {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = TcpStream::connect(server).await?.into_split();
    let requests = async {
        let mut bytes = vec![0; 1 << 16];
        loop {
            let length = from_client.read(&mut bytes).await?;
            to_server.write_all(&bytes[..length]).await?;
            let has_text = String::from_utf8_lossy(&bytes[..length]).contains(text);
            if length == 0 || (has_text && !std::mem::replace(&mut *is_lost.lock().unwrap(), true)) {
                return std::io::Result::Ok(());
            }
        }
    };
    tokio::select! {
        biased;
        lost = requests => lost?,
        copied = tokio::io::copy(&mut from_server, &mut to_client) => return copied.map(drop),
    }
    // The request has its effect; its response is lost.
    tokio::time::sleep(ms(100)).await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_whose_response_is_lost_has_its_effect_once() {
    let begins: [(Speaks, &str); 5] = [
        (Speaks::Mainstem, "POST /v1/"),
        (Speaks::AgentScope, "POST /tasks "),
        (Speaks::A2a, "SendStreamingMessage"),
        (Speaks::PlainA2a, "SendStreamingMessage"),
        (Speaks::PolledA2a, "SendMessage"),
    ];
    let answers: [(Speaks, &str); 3] = [
        (Speaks::Mainstem, "/confirmations/"),
        (Speaks::AgentScope, "/resume "),
        (Speaks::A2a, "\"approved\":true"),
    ];
    for (speaks, lost) in begins.into_iter().chain(answers) {
        let second = asking();
        let (url, serving) = speaks.serve(second.clone()).await;
        let (proxy, is_lost) = losing(&url, lost).await;
        let first =
            builder("main", caller()).with_subagent(speaks.declared("second", &proxy)).build().unwrap();
        let events = steered(&first, async |run, event| {
            if let EventKind::RequireUserConfirm { confirm_id, .. } = &event.kind {
                run.confirm(confirm_id, Decision::Allow).unwrap();
            }
        })
        .await;
        let text = render(&events);
        assert_eq!(child_end(&events, "second"), (Outcome::Success, ""), "{speaks:?}, {lost}\n{text}");
        let runs = second.sessions().opened().iter().map(|session| session.runs().len()).sum::<usize>();
        assert_eq!((runs, *is_lost.lock().unwrap()), (1, true), "{speaks:?}, {lost}");
        serving.abort();
    }
}

/// A remote that asks for an approval whatever it was told, and keeps what it hears.
#[derive(Clone)]
struct Asking {
    calls: Vec<ToolCall>,
    decisions: Arc<Mutex<Vec<Decision>>>,
    /// What becomes of an answer.
    answer: Result<(), RemoteError>,
}

impl std::fmt::Debug for Asking {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Asking")
    }
}

#[async_trait]
impl RemoteAgent for Asking {
    async fn begin(&self, _: RemoteTurn) -> Result<BegunTurn, RemoteError> {
        let mut kinds = vec![EventKind::agent_start("far", Role::Assistant, Vec::new())];
        kinds.push(EventKind::model_call_start("m", 1));
        for call in &self.calls {
            let (tool_call_id, name) = (call.id.clone(), Arc::<str>::from(call.name.as_str()));
            kinds.push(EventKind::ToolCallStart {
                tool_call_id: tool_call_id.clone(),
                tool_call_name: name.clone(),
            });
            kinds.push(EventKind::ToolCallDelta {
                tool_call_id: tool_call_id.clone(),
                delta: call.arguments.clone(),
            });
            kinds.push(EventKind::ToolCallEnd {
                tool_call_id,
                tool_call_name: name,
                opaque: Default::default(),
                discarded: false,
            });
        }
        kinds.push(EventKind::model_call_end(mainstem::message::StopReason::ToolCalls, 0));
        kinds.push(EventKind::require_user_confirm("c".parse::<ConfirmId>().unwrap(), self.calls.clone()));
        let events = stream::iter(kinds.into_iter().map(|kind| Ok(RemoteEvent::new(kind))));
        Ok(BegunTurn::new(events.chain(stream::pending()).boxed(), Arc::new(self.clone())))
    }
}

#[async_trait]
impl RemoteControl for Asking {
    async fn cancel(&self, _: &CancelReason) -> Result<(), RemoteError> {
        Ok(())
    }

    async fn confirm(&self, _: &ConfirmId, decision: Decision) -> Result<(), RemoteError> {
        self.decisions.lock().unwrap().push(decision);
        self.answer.clone()
    }

    async fn submit(&self, _: &ToolCallId, _: ToolOutput) -> Result<(), RemoteError> {
        Ok(())
    }
}

/// Lets a remote ask about these calls under rules; returns the decision that it gets, whether a
/// person was asked, and how the child has ended.
async fn asked(
    rules: RuleSet,
    calls: &[ToolCall],
    answer: Result<(), RemoteError>,
) -> (Decision, bool, String) {
    let remote = Asking { calls: calls.to_vec(), decisions: Arc::default(), answer };
    let spec = AgentSpec::new("second", "Far");
    let first = builder("main", caller()).with_remote_agent(spec, remote.clone()).with_permissions(rules);
    let first = first.build().unwrap();
    let mut run = first.stream_events("go");
    let (handle, mut all) = (run.handle(), Vec::new());
    while let Some(event) = run.next().await {
        if let EventKind::RequireUserConfirm { confirm_id, .. } = &event.kind {
            handle.confirm(confirm_id, Decision::Allow).unwrap();
        }
        all.push(event);
        if remote.decisions.lock().unwrap().len() == 1 {
            handle.cancel();
        }
    }
    let is_asked = all.iter().any(|event| event.kind.name() == "REQUIRE_USER_CONFIRM");
    let decision = remote.decisions.lock().unwrap().remove(0);
    (decision, is_asked, child_end(&all, "second").1.to_owned())
}

#[tokio::test(start_paused = true)]
async fn rules_hold_here_for_what_a_remote_asks_whatever_it_was_told() {
    let rule = |effect| RuleSet::default().with_pattern(effect, "echo").unwrap();
    let call = [ToolCall::new("1", "echo", "{}")];
    let (decision, is_asked, _) = asked(rule(Effect::Deny), &call, Ok(())).await;
    let Decision::Deny(why) = decision else { panic!("{decision:?}") };
    assert!(why.contains("denied by the rule") && !is_asked, "{why}");
    let (decision, is_asked, _) = asked(rule(Effect::Ask), &call, Ok(())).await;
    assert!(decision == Decision::Allow && is_asked, "{decision:?}");
    // There is nothing that a person could look at.
    let (decision, is_asked, _) = asked(RuleSet::default(), &[], Ok(())).await;
    assert!(matches!(decision, Decision::Deny(_)) && !is_asked, "{decision:?}");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_cannot_arrive_ends_the_child() {
    let remote = Asking {
        calls: vec![ToolCall::new("1", "echo", "{}")],
        decisions: Arc::default(),
        answer: Err(RemoteError::unreachable("the wire is cut")),
    };
    let first = builder("main", caller()).with_remote_agent(AgentSpec::new("second", "Far"), remote);
    let all = steered(&first.build().unwrap(), async |run, event| {
        if let EventKind::RequireUserConfirm { confirm_id, .. } = &event.kind {
            run.confirm(confirm_id, Decision::Allow).unwrap();
        }
    })
    .await;
    let (outcome, why) = child_end(&all, "second");
    assert!(outcome == Outcome::Error && why.contains("the wire is cut"), "{why}");
}
