//! AgentScope's Agent Protocol on both sides: our remote agents at our server of it, and at one
//! that does what AgentScope's does.

mod broken;
mod java;
mod restart;

use futures_util::StreamExt;
use mainstem::{model::scripted::Turn, prelude::*, spec};
use mainstem_server::{Protocol, Server, Tokens};
use mainstem_testing::{
    remote::{Abilities, Act, FAR, FarSide, check},
    render,
};
use serde_json::json;
use tokio::{net::TcpListener, task::JoinHandle};

use crate::{
    anywhere::TOKEN,
    chain::{builder, child_end, events, local, nameless, remote, scripts, steered},
    support::Spawns,
};

/// Serves a harness over the Agent Protocol.
pub(super) async fn serve(harness: Harness) -> (String, JoinHandle<()>) {
    let tokens = Tokens::new().with_token(TOKEN, None).unwrap();
    let server = Server::new(harness).with_tokens(tokens).with_protocol(Protocol::AgentProtocol);
    let server = server.build().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    #[expect(clippy::disallowed_methods, reason = "aborted by the test")]
    let serving = tokio::spawn(async move { server.serve(listener, Default::default()).await.unwrap() });
    (url, serving)
}

fn far(id: &str, url: &str) -> AgentSpec {
    remote(id, url).with_protocol(spec::Protocol::AgentScope)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_is_the_fleet_that_one_process_has() {
    let all = ["main", "second", "third"]
        .into_iter()
        .fold(ScriptedModel::new(), |model, name| scripts(name, model));
    let one =
        builder("main", all).with_subagent(local("second")).with_subagent(local("third")).build().unwrap();
    let here = events(&one).await;
    let below =
        ["second", "third"].into_iter().fold(ScriptedModel::new(), |model, name| scripts(name, model));
    let second = builder("second", below).with_subagent(local("third")).build().unwrap();
    let (url, serving) = serve(second).await;
    let main = scripts("main", ScriptedModel::new());
    let first = builder("main", main).with_subagent(far("second", &url)).build().unwrap();
    let there = events(&first).await;
    assert_eq!(nameless(&there), nameless(&here));
    assert_eq!(child_end(&there, "second"), (Outcome::Success, ""));
    serving.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rules_that_deny_reach_a_task() {
    let says = |say: &str| Turn::new().call("echo", json!({ "say": say }));
    let second = ScriptedModel::new().agent("second", [says("a"), says("b"), Turn::new().text("So.")]);
    let (url, serving) = serve(builder("second", second).build().unwrap()).await;
    let main = scripts("main", ScriptedModel::new());
    let deny = RuleSet::default().with_pattern(Effect::Deny, "echo(say: a)").unwrap();
    let first = builder("main", main).with_subagent(far("second", &url)).with_permissions(deny);
    let text = render(&events(&first.build().unwrap()).await);
    assert!(text.contains("echo is denied by the rule \\\"echo(say: a)\\\""), "{text}");
    assert!(text.contains("TOOL_RESULT_TEXT_DELTA \"{\\\"say\\\":\\\"b\\\"}\""), "{text}");
    serving.abort();
}

/// AgentScope's own server.
struct AgentScope(java::Version);

#[async_trait]
impl FarSide for AgentScope {
    async fn serve(&self, act: Act) -> String {
        java::Java::start(act, self.0).await.0
    }

    fn declare(&self, builder: HarnessBuilder, url: &str) -> HarnessBuilder {
        builder.with_subagent(far(FAR, url))
    }

    async fn broken(&self) -> Vec<String> {
        if self.0 == java::Version::Verbose { broken::servers().await } else { Vec::new() }
    }

    fn abilities(&self) -> Abilities {
        match self.0 {
            java::Version::Verbose | java::Version::Early => Abilities::default(),
            java::Version::Typed => {
                Abilities { arguments: false, results: false, nested: false, ..Abilities::default() }
            }
            java::Version::Polled => Abilities {
                thinking: false,
                arguments: false,
                results: false,
                nested: false,
                live: false,
                resumes: false,
                ..Abilities::default()
            },
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agents_of_agentscope_keep_the_contract() {
    check(&AgentScope(java::Version::Verbose)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agents_of_older_servers_keep_the_contract_without_payloads() {
    check(&AgentScope(java::Version::Typed)).await;
}

/// Two turns of one child: the second is a further message.
async fn two_turns(url: &str) -> Vec<String> {
    let main =
        ScriptedModel::new().agent("main", [Turn::new().spawn(FAR, "first"), Turn::new().text("All done.")]);
    let first = builder("main", main).with_subagent(far(FAR, url)).build().unwrap();
    let turns = crate::chain::two_turns(&first, FAR, "second <b>").await;
    turns.into_iter().map(|(_, answer)| answer).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_further_message_continues_the_conversation() {
    // At a server that continues sessions, it is a task of the same one.
    let model = ScriptedModel::new().agent(FAR, [Turn::new().text("One."), Turn::new().text("Two.")]);
    let served = builder(FAR, model).build().unwrap();
    let (url, serving) = serve(served.clone()).await;
    assert_eq!(two_turns(&url).await, ["One.", "Two."]);
    let sessions = served.sessions().opened();
    assert_eq!(sessions.len(), 1, "one session, two tasks");
    assert_eq!(sessions[0].runs().len(), 2);
    serving.abort();
    // AgentScope's knows no earlier task, so what was said is in the message.
    let (url, java) = java::Java::start(Act::Answers, java::Version::Verbose).await;
    assert_eq!(two_turns(&url).await.len(), 2);
    let inputs = java.inputs.lock().unwrap().clone();
    assert_eq!(inputs[0], "first");
    insta::assert_snapshot!(inputs[1], @r#"
    This continues a conversation. Its messages so far:

    <conversation>
    <message role="user">
    first
    </message>
    <message role="assistant">
    Paris has 309 stations.
    </message>
    </conversation>

    The next message:

    second <b>
    "#);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_does_not_stream_is_polled_and_that_is_said() {
    let side = AgentScope(java::Version::Polled);
    let url = side.serve(Act::Answers).await;
    let main =
        ScriptedModel::new().agent("main", [Turn::new().spawn(FAR, "go"), Turn::new().text("All done.")]);
    let first = builder("main", main).with_subagent(far(FAR, &url)).build().unwrap();
    insta::assert_snapshot!(nameless(&events(&first).await).replace(&url, "<url>"), @r#"
    main AGENT_START main "go"
    main MODEL_CALL_START scripted #1
    main TOOL_CALL_START agent_spawn (call…)
    main TOOL_CALL_DELTA "{\"agent_id\":\"far\",\"task\":\"go\"}" (call…)
    main TOOL_CALL_END agent_spawn (call…)
    main MODEL_CALL_END tool_calls
    main TOOL_RESULT_START agent_spawn {"agent_id":"far","task":"go"} (call…)
      far#… AGENT_START far "go"
      far#… STREAM_FALLBACK <url>: 500 Internal Server Error: streaming is disabled
      far#… MODEL_CALL_START far #1
      far#… TEXT_BLOCK_START
      far#… TEXT_BLOCK_DELTA "Paris has 309 stations."
      far#… TEXT_BLOCK_END
      far#… MODEL_CALL_END stop
      far#… AGENT_RESULT "Paris has 309 stations."
      far#… AGENT_END success 
    main TOOL_RESULT_TEXT_DELTA "agent_key: agent:far:…\nagent_id: far\nsession_"… (call…)
    main TOOL_RESULT_END agent_spawn success (call…)
    main MODEL_CALL_START scripted #2
    main TEXT_BLOCK_START
    main TEXT_BLOCK_DELTA "All done."
    main TEXT_BLOCK_END
    main MODEL_CALL_END stop
    main AGENT_RESULT "All done."
    main AGENT_END success
    "#);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_ended_before_it_was_read_has_its_answer() {
    let (url, _java) = java::Java::start(Act::Calls, java::Version::Early).await;
    let main =
        ScriptedModel::new().agent("main", [Turn::new().spawn(FAR, "go"), Turn::new().text("All done.")]);
    let first = builder("main", main).with_subagent(far(FAR, &url)).build().unwrap();
    let events = events(&first).await;
    let text = nameless(&events);
    assert_eq!(child_end(&events, FAR), (Outcome::Success, ""), "{text}");
    assert!(text.contains("AGENT_RESULT \"Seen.\""), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approval_is_found_by_polling() {
    let (url, _java) = java::Java::start(Act::Asks, java::Version::Polled).await;
    let main =
        ScriptedModel::new().agent("main", [Turn::new().spawn(FAR, "go"), Turn::new().text("All done.")]);
    let first = builder("main", main).with_subagent(far(FAR, &url)).build().unwrap();
    let mut asked = Vec::new();
    let events = steered(&first, async |run, event| {
        if let EventKind::RequireUserConfirm { confirm_id, tool_calls, .. } = &event.kind {
            asked.push(tool_calls[0].arguments.clone());
            run.confirm(confirm_id, Decision::Allow).unwrap();
        }
    })
    .await;
    assert_eq!(asked, [r#"{"at":"a"}"#]);
    assert_eq!(child_end(&events, FAR), (Outcome::Success, ""));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_has_the_user_and_the_attributes_of_its_caller() {
    let model = ScriptedModel::new().agent(FAR, [Turn::new().text("One.")]);
    let served = builder(FAR, model).build().unwrap();
    let (url, serving) = serve(served.clone()).await;
    let main =
        ScriptedModel::new().agent("main", [Turn::new().spawn(FAR, "go"), Turn::new().text("All done.")]);
    let first = builder("main", main).with_subagent(far(FAR, &url)).build().unwrap();
    let options = RunOptions::new().with_user("ann").with_attribute("tenant", "acme");
    let events: Vec<_> = first.stream_events(RunRequest::new("go").with_options(options)).collect().await;
    let child =
        events.iter().find_map(|event| event.source().map(|source| source.session_id.clone())).unwrap();
    let session = served.sessions().find(&child).await.unwrap().expect("the session of the child");
    let start = session.log().subscribe_from(1).try_next().unwrap();
    let EventKind::AgentStart { settings: Some(settings), .. } = &start.kind else { panic!("{start}") };
    assert_eq!((settings.user.as_deref(), &settings.attributes["tenant"]), (Some("ann"), &"acme".into()));
    serving.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_approves_a_call_of_an_agent_below_a_task() {
    for (decision, expected) in [
        (Decision::Allow, "TOOL_RESULT_END echo success"),
        (Decision::Deny("not now".to_owned()), "not now"),
        (Decision::AllowWith(json!({ "say": "edited" })), "can't be edited"),
    ] {
        let asks = RuleSet::default().with_pattern(Effect::Ask, "echo").unwrap();
        let spawn = [Turn::new().spawn("third", "look"), Turn::new().text("It is so.")];
        let model = scripts("third", ScriptedModel::new()).agent("second", spawn);
        let second = builder("second", model).with_subagent(local("third")).with_permissions(asks);
        let (url, serving) = serve(second.build().unwrap()).await;
        let main = scripts("main", ScriptedModel::new());
        let first = builder("main", main).with_subagent(far("second", &url)).build().unwrap();
        let mut asked = 0;
        let events = steered(&first, async |run, event| {
            if let EventKind::RequireUserConfirm { confirm_id, .. } = &event.kind {
                assert_eq!((event.depth(), event.agent_id()), (2, "third"));
                run.confirm(confirm_id, decision.clone()).unwrap();
                asked += 1;
            }
        })
        .await;
        let text = render(&events);
        assert_eq!(asked, 1, "{text}");
        assert!(text.contains(expected), "{expected}\n{text}");
        assert_eq!(child_end(&events, "second"), (Outcome::Success, ""), "{text}");
        serving.abort();
    }
}
