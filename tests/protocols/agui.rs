//! Our server read by AG-UI's official clients: 1.0, and the last one without subagents.

use std::time::Duration;

use mainstem::{model::scripted::Turn, prelude::*};
use mainstem_server::Protocol;
use serde_json::{Map, Value, json};

use crate::support::{Folder, Served};

pub(crate) mod fleets;

fn spawn(agent: &str, task: &str) -> Turn {
    and_spawn(Turn::new(), agent, json!({ "task": task }))
}

fn and_spawn(turn: Turn, agent: &str, mut with: Value) -> Turn {
    with["agent_id"] = agent.into();
    turn.call("agent_spawn", with)
}

fn builder(model: ScriptedModel) -> HarnessBuilder {
    let poke =
        |_, given: Map<String, Value>| async move { Ok::<_, ToolError>(Value::Object(given).to_string()) };
    let agents = ["a", "b", "mid", "leaf", "failing", "slow"];
    let harness = Harness::builder("main", model).with_tool(tool_fn("poke", "Pokes", poke));
    agents.into_iter().fold(harness, |harness, id| {
        harness.with_subagent(AgentSpec::new(id, "Helps").with_tools(["poke", "agent_spawn"]))
    })
}

/// Runs a scenario of the script, and returns what it prints.
async fn played(harness: &Harness, scenario: &str) -> Option<String> {
    let folder = Folder::find("agui")?;
    let served = Served::start(harness, &[Protocol::AgUi]).await;
    Some(folder.run("client.mjs", &format!("{}#{scenario}", served.url)).await)
}

/// A fleet with everything that a fleet can have.
fn fleet() -> Harness {
    let parallel = and_spawn(spawn("a", "find A"), "mid", json!({ "task": "ask below", "label": "middle" }));
    let send = Turn::new().call("agent_send", json!({ "label": "middle", "message": "once more" }));
    let model = ScriptedModel::new()
        .agent(
            "main",
            [
                parallel,
                spawn("failing", "try"),
                send,
                and_spawn(Turn::new(), "slow", json!({ "task": "take your time", "timeout_seconds": 0 })),
                Turn::new().wait(Duration::from_secs(1)).thinking("So.").text("All ").text("done."),
            ],
        )
        .agent(
            "a",
            [Turn::new().thinking("Hm.").call("poke", json!({ "at": 1 })), Turn::new().text("A is 1.")],
        )
        .agent(
            "mid",
            [spawn("leaf", "look"), Turn::new().text("It is below."), Turn::new().text("Still there.")],
        )
        .agent("leaf", [Turn::new().text("I am below.")])
        .agent("failing", [Turn::new().text("I try").cut()])
        .agent("slow", [Turn::new().text("I begin").wait(Duration::from_secs(600)).text(" and end.")]);
    builder(model).build().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fleet_is_subagents_of_the_client() {
    let Some(seen) = played(&fleet(), "children").await else { return };
    insta::assert_snapshot!(seen, @r#"
    a#1, called by root: success, A is 1.
    failing#1, called by root: error: the connection was cut
    mid#1, called by root: success, It is below.
    mid#2, called by root: success, Still there.
    mid/leaf#1, called by mid: success, I am below.
    slow#1, called by root: suspended (detached)
    assistant : All done.
    assistant a: A is 1.
    assistant failing: I try
    assistant leaf: I am below.
    assistant mid: It is below.
    assistant mid: Still there.
    assistant slow: I begin
    reasoning : So.
    reasoning a: Hm.
    tool : agent_key: …
    tool : agent_key: …
    tool : agent_key: …
    tool : agent_key: …
    tool : agent_key: …
    tool a: {"at":1}
    tool mid: agent_key: …
    user : go
    {outcome:[{type:success}],theirs:{kept:true},fleet:[main ended success,a ended success,mid ended success,leaf ended success,failing ended error,slow waiting ]}
    {unmarked:0,marked:true}
    {isSame:true}
    "#);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_without_a_version_gets_one_conversation() {
    let Some(seen) = played(&fleet(), "old").await else { return };
    insta::assert_snapshot!(seen, @r#"
    assistant : All done.
    assistant a: A is 1.
    assistant failing: I try
    assistant leaf: I am below.
    assistant mid: It is below.
    assistant mid: Still there.
    assistant slow: I begin
    reasoning : Hm.
    reasoning : So.
    tool : agent_key: …
    tool : agent_key: …
    tool : agent_key: …
    tool : agent_key: …
    tool : agent_key: …
    tool : agent_key: …
    tool : {"at":1}
    user : go
    {subagents:[],outcome:[{type:success}],fleet:[main ended success,a ended success,mid ended success,leaf ended success,failing ended error,slow waiting ]}
    {tagged:0}
    user : go
    tool : agent_key: …
    tool : agent_key: …
    tool : agent_key: …
    tool : agent_key: …
    tool : agent_key: …
    reasoning : So.
    assistant : All done.
    "#);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn approvals_of_any_depth_are_interrupts() {
    let both = and_spawn(spawn("a", "poke"), "mid", json!({ "task": "go below" }));
    let poke = |at: &str| Turn::new().text("May I?").call("poke", json!({ "at": at }));
    let model = ScriptedModel::new()
        .agent("main", [both, Turn::new().text("Done.")])
        .agent("a", [poke("one"), Turn::new().text("a ends")])
        .agent("mid", [spawn("leaf", "poke"), Turn::new().text("mid ends")])
        .agent("leaf", [poke("two"), Turn::new().text("leaf ends")]);
    let rules = RuleSet::default().with_pattern(Effect::Ask, "poke").unwrap();
    let harness = builder(model).with_permissions(rules).build().unwrap();
    let Some(seen) = played(&harness, "approval").await else { return };
    insta::assert_snapshot!(seen, @r#"
    {reason:tool_call,message:agent `a` asks to run `poke`,call:true,subagent:a,answer:[approved]}
    {reason:tool_call,message:agent `leaf` asks to run `poke`,call:true,subagent:leaf,answer:[approved]}
    a#1, called by root: suspended
    mid#1, called by root: suspended
    mid/leaf#1, called by mid: suspended
    {suspended:[1,1,1]}
    HTTP 404: {"type":"/problems/not-found","title":"Not Found","status":404,"detail":"there is no session \"t-other\"","code":"not_found"}
    HTTP 404
    HTTP 422
    {again:true}
    {outcome:[{type:success}],pending:0}
    a#1, called by root: success, a ends
    mid#1, called by root: success, mid ends
    mid/leaf#1, called by mid: success, leaf ends
    assistant : Done.
    assistant a: May I?
    assistant a: a ends
    assistant leaf: May I?
    assistant leaf: leaf ends
    assistant mid: mid ends
    tool : agent_key: …
    tool : agent_key: …
    tool a: {"at":"edited"}
    tool leaf: poke was denied: not that
    tool mid: agent_key: …
    user : go
    {repeated:[{type:success}]}
    "#);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_of_the_frontend_is_called_and_answered() {
    let model = ScriptedModel::new().agent(
        "main",
        [Turn::new().call("locate", json!({ "exact": true })), Turn::new().text("You are there.")],
    );
    let Some(seen) = played(&builder(model).build().unwrap(), "tool").await else { return };
    insta::assert_snapshot!(seen, @r#"
    {outcome:success,call:{name:locate,arguments:{\exact\:true}}}
    user : where am I?
    tool : in Paris
    assistant : You are there.
    {results:1,outcome:{type:success}}
    {code:tool_name_taken,message:two tools are named \poke\; rename one}
    HTTP 422
    HTTP 409
    "#);
}

fn slow_speaker(wait: Duration) -> Harness {
    let turn = Turn::new().text("I begin").wait(wait).text(" and end.");
    builder(ScriptedModel::new().agent("main", [turn])).build().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_abort_cancels_the_run() {
    let harness = slow_speaker(Duration::from_secs(600));
    let Some(seen) = played(&harness, "abort").await else { return };
    insta::assert_snapshot!(seen, @"{texts:[user : go,assistant : I begin],ended:0}");
    let session = harness.open_session("t-abort").await.unwrap();
    let ended = async {
        while session.active().is_some() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), ended).await.unwrap();
    assert_eq!(session.runs()[0].end.as_ref().unwrap().outcome, Outcome::Cancelled);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_reconnects_has_each_text_once() {
    let Some(seen) = played(&slow_speaker(Duration::from_secs(3)), "reconnect").await else { return };
    insta::assert_snapshot!(seen, @r#"
    user : go
    assistant : I begin
    user : go
    assistant : I begin and end.
    {type:success}
    "#);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_history_of_a_client_is_told_once() {
    let model =
        ScriptedModel::new().agent("main", [Turn::new().text("You are Ada."), Turn::new().text("Ada.")]);
    let harness = builder(model).build().unwrap();
    let Some(seen) = played(&harness, "history").await else { return };
    insta::assert_snapshot!(seen, @r#"
    system : Be brief.
    user : I am Ada.
    assistant : Hello Ada.
    user : parts
    assistant : You are Ada.
    user : And now?
    assistant : Ada.
    "#);
    let [session] = &harness.sessions().opened()[..] else { panic!("the thread has one session") };
    let told: Vec<_> = session.history().iter().map(|message| message.text()).collect();
    insta::assert_debug_snapshot!(told, @r#"
    [
        "<context>\n- page: settings\n</context>\n\n<earlier_conversation>\nsystem: Be brief.\nuser: I am Ada.\nassistant: Hello Ada.\n</earlier_conversation>\n\nWho am I?",
        "You are Ada.",
        "And now?",
        "Ada.",
    ]
    "#);
}
