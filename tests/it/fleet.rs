//! Parents and children: spawns, twins, grandchildren, failures, caps.

use mainstem::{
    event::{TaskStatus, fold::fold},
    model::scripted::Turn,
    prelude::*,
};
use mainstem_testing::{laws, render, timeline};
use serde_json::json;

use crate::support::{OpenNow, Overheard, Spawns, harness, ms, spawn_args};

fn fleet(model: ScriptedModel) -> HarnessBuilder {
    harness(model)
        .with_subagent(AgentSpec::new("reviewer", "Reviews"))
        .with_subagent(AgentSpec::new("tester", "Tests").with_tools(["lookup", "agent_spawn"]))
        .with_subagent(AgentSpec::new("ghost", "Hidden").with_hidden(true))
}

async fn run(model: ScriptedModel) -> String {
    timeline(fleet(model).build().unwrap().stream_events("review this")).await
}

#[tokio::test(start_paused = true)]
async fn one_child() {
    let model = ScriptedModel::new()
        .agent(
            "main",
            [Turn::new().text("I ask.").spawn("reviewer", "the parser"), Turn::new().text("It is fine.")],
        )
        .agent(
            "reviewer",
            [Turn::new().call("lookup", json!({ "word": "parser", "takes": 5 })), Turn::new().text("Fine.")],
        );
    insta::assert_snapshot!(run(model).await, @r#"
    0 main AGENT_START main "review this"
    0 main MODEL_CALL_START scripted #1
    0 main TEXT_BLOCK_START
    0 main TEXT_BLOCK_DELTA "I ask."
    0 main TEXT_BLOCK_END
    0 main TOOL_CALL_START agent_spawn (call-1)
    0 main TOOL_CALL_DELTA "{\"agent_id\":\"reviewer\",\"task\":\"the parser\"}" (call-1)
    0 main TOOL_CALL_END agent_spawn (call-1)
    0 main MODEL_CALL_END tool_calls
    0 main TOOL_RESULT_START agent_spawn {"agent_id":"reviewer","task":"the parser"} (call-1)
    0   reviewer#1 AGENT_START reviewer "the parser"
    0   reviewer#1 MODEL_CALL_START scripted #1
    0   reviewer#1 TOOL_CALL_START lookup (call-2)
    0   reviewer#1 TOOL_CALL_DELTA "{\"word\":\"parser\",\"takes\":5}" (call-2)
    0   reviewer#1 TOOL_CALL_END lookup (call-2)
    0   reviewer#1 MODEL_CALL_END tool_calls
    0   reviewer#1 TOOL_RESULT_START lookup {"word":"parser","takes":5} (call-2)
    0   reviewer#1 TOOL_RESULT_TEXT_DELTA "parser " (call-2)
    5   reviewer#1 TOOL_RESULT_TEXT_DELTA "found" (call-2)
    5   reviewer#1 TOOL_RESULT_END lookup success (call-2)
    5   reviewer#1 MODEL_CALL_START scripted #2
    5   reviewer#1 TEXT_BLOCK_START
    5   reviewer#1 TEXT_BLOCK_DELTA "Fine."
    5   reviewer#1 TEXT_BLOCK_END
    5   reviewer#1 MODEL_CALL_END stop
    5   reviewer#1 AGENT_RESULT "Fine."
    5   reviewer#1 AGENT_END success 15/15 tok
    5 main TOOL_RESULT_TEXT_DELTA "agent_key: agent:reviewer:1\nagent_id: reviewer\nsession_id: sub-1\nstatus: complet"… (call-1)
    5 main TOOL_RESULT_END agent_spawn success (call-1)
    5 main MODEL_CALL_START scripted #2
    5 main TEXT_BLOCK_START
    5 main TEXT_BLOCK_DELTA "It is fine."
    5 main TEXT_BLOCK_END
    5 main MODEL_CALL_END stop
    5 main AGENT_RESULT "It is fine."
    5 main AGENT_END success 24/39 tok
    "#);
}

#[tokio::test(start_paused = true)]
async fn two_parallel_children_of_one_type() {
    let model = ScriptedModel::new()
        .agent(
            "main",
            [
                Turn::new().spawn("reviewer", "left").spawn("reviewer", "right"),
                Turn::new().text("Both done."),
            ],
        )
        .agent_on("reviewer", "left", [Turn::new().wait(ms(5)).pace(ms(20)).say("left is fine")])
        .agent("reviewer", [Turn::new().pace(ms(10)).say("right has a bug")]);
    insta::assert_snapshot!(run(model).await, @r#"
     0 main AGENT_START main "review this"
     0 main MODEL_CALL_START scripted #1
     0 main TOOL_CALL_START agent_spawn (call-1)
     0 main TOOL_CALL_DELTA "{\"agent_id\":\"reviewer\",\"task\":\"left\"}" (call-1)
     0 main TOOL_CALL_END agent_spawn (call-1)
     0 main TOOL_CALL_START agent_spawn (call-2)
     0 main TOOL_CALL_DELTA "{\"agent_id\":\"reviewer\",\"task\":\"right\"}" (call-2)
     0 main TOOL_CALL_END agent_spawn (call-2)
     0 main MODEL_CALL_END tool_calls
     0 main TOOL_RESULT_START agent_spawn {"agent_id":"reviewer","task":"left"} (call-1)
     0   reviewer#1 AGENT_START reviewer "left"
     0   reviewer#1 MODEL_CALL_START scripted #1
     0 main TOOL_RESULT_START agent_spawn {"agent_id":"reviewer","task":"right"} (call-2)
     0   reviewer#2 AGENT_START reviewer "right"
     0   reviewer#2 MODEL_CALL_START scripted #1
    10   reviewer#2 TEXT_BLOCK_START
    10   reviewer#2 TEXT_BLOCK_DELTA "right has " ×2
    25   reviewer#1 TEXT_BLOCK_START
    25   reviewer#1 TEXT_BLOCK_DELTA "left "
    30   reviewer#2 TEXT_BLOCK_DELTA "a bug" ×2
    40   reviewer#2 TEXT_BLOCK_END
    40   reviewer#2 MODEL_CALL_END stop
    40   reviewer#2 AGENT_RESULT "right has a bug"
    40   reviewer#2 AGENT_END success 6/6 tok
    40 main TOOL_RESULT_TEXT_DELTA "agent_key: agent:reviewer:2\nagent_id: reviewer\nsession_id: sub-2\nstatus: complet"… (call-2)
    40 main TOOL_RESULT_END agent_spawn success (call-2)
    45   reviewer#1 TEXT_BLOCK_DELTA "is fine" ×2
    65   reviewer#1 TEXT_BLOCK_END
    65   reviewer#1 MODEL_CALL_END stop
    65   reviewer#1 AGENT_RESULT "left is fine"
    65   reviewer#1 AGENT_END success 4/4 tok
    65 main TOOL_RESULT_TEXT_DELTA "agent_key: agent:reviewer:1\nagent_id: reviewer\nsession_id: sub-1\nstatus: complet"… (call-1)
    65 main TOOL_RESULT_END agent_spawn success (call-1)
    65 main MODEL_CALL_START scripted #2
    65 main TEXT_BLOCK_START
    65 main TEXT_BLOCK_DELTA "Both done."
    65 main TEXT_BLOCK_END
    65 main MODEL_CALL_END stop
    65 main AGENT_RESULT "Both done."
    65 main AGENT_END success 28/38 tok
    "#);
}

#[tokio::test(start_paused = true)]
async fn twins_are_told_apart() {
    let model = ScriptedModel::new()
        .agent("main", [Turn::new().spawn("reviewer", "a").spawn("reviewer", "b"), Turn::new().text("Done.")])
        .agent("reviewer", [Turn::new().text("ok")]);
    let events: Vec<_> = fleet(model).build().unwrap().stream_events("go").collect().await;
    let starts: Vec<_> =
        events.iter().filter(|e| e.kind.name() == "AGENT_START").filter_map(|e| e.source()).collect();
    let [a, b] = starts[..] else { panic!("two children, not {}", starts.len()) };
    assert_eq!((&a.path, a.depth), (&b.path, b.depth), "the path says what they are");
    assert_ne!(a.agent_key, b.agent_key);
    assert_ne!(a.parent_tool_call_id, b.parent_tool_call_id);
    assert_eq!((a.stream_id, b.stream_id), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn a_grandchild_is_in_the_same_stream() {
    let model = ScriptedModel::new()
        .agent("main", [Turn::new().spawn("tester", "run the tests"), Turn::new().text("All green.")])
        .agent("tester", [Turn::new().spawn("reviewer", "read the log"), Turn::new().text("Green.")])
        .agent("reviewer", [Turn::new().pace(ms(1)).say("no failures")]);
    insta::assert_snapshot!(run(model).await, @r#"
    0 main AGENT_START main "review this"
    0 main MODEL_CALL_START scripted #1
    0 main TOOL_CALL_START agent_spawn (call-1)
    0 main TOOL_CALL_DELTA "{\"agent_id\":\"tester\",\"task\":\"run the tests\"}" (call-1)
    0 main TOOL_CALL_END agent_spawn (call-1)
    0 main MODEL_CALL_END tool_calls
    0 main TOOL_RESULT_START agent_spawn {"agent_id":"tester","task":"run the tests"} (call-1)
    0   tester#1 AGENT_START tester "run the tests"
    0   tester#1 MODEL_CALL_START scripted #1
    0   tester#1 TOOL_CALL_START agent_spawn (call-2)
    0   tester#1 TOOL_CALL_DELTA "{\"agent_id\":\"reviewer\",\"task\":\"read the log\"}" (call-2)
    0   tester#1 TOOL_CALL_END agent_spawn (call-2)
    0   tester#1 MODEL_CALL_END tool_calls
    0   tester#1 TOOL_RESULT_START agent_spawn {"agent_id":"reviewer","task":"read the log"} (call-2)
    0     reviewer#1 AGENT_START reviewer "read the log"
    0     reviewer#1 MODEL_CALL_START scripted #1
    1     reviewer#1 TEXT_BLOCK_START
    1     reviewer#1 TEXT_BLOCK_DELTA "no failures" ×2
    2     reviewer#1 TEXT_BLOCK_END
    2     reviewer#1 MODEL_CALL_END stop
    2     reviewer#1 AGENT_RESULT "no failures"
    2     reviewer#1 AGENT_END success 6/6 tok
    2   tester#1 TOOL_RESULT_TEXT_DELTA "agent_key: agent:reviewer:1\nagent_id: reviewer\nsession_id: sub-2\nstatus: complet"… (call-2)
    2   tester#1 TOOL_RESULT_END agent_spawn success (call-2)
    2   tester#1 MODEL_CALL_START scripted #2
    2   tester#1 TEXT_BLOCK_START
    2   tester#1 TEXT_BLOCK_DELTA "Green."
    2   tester#1 TEXT_BLOCK_END
    2   tester#1 MODEL_CALL_END stop
    2   tester#1 AGENT_RESULT "Green."
    2   tester#1 AGENT_END success 22/28 tok
    2 main TOOL_RESULT_TEXT_DELTA "agent_key: agent:tester:1\nagent_id: tester\nsession_id: sub-1\nstatus: completed\nr"… (call-1)
    2 main TOOL_RESULT_END agent_spawn success (call-1)
    2 main MODEL_CALL_START scripted #2
    2 main TEXT_BLOCK_START
    2 main TEXT_BLOCK_DELTA "All green."
    2 main TEXT_BLOCK_END
    2 main MODEL_CALL_END stop
    2 main AGENT_RESULT "All green."
    2 main AGENT_END success 20/48 tok
    "#);
}

#[tokio::test(start_paused = true)]
async fn a_failing_child_is_an_error_result_and_its_siblings_go_on() {
    let model = ScriptedModel::new()
        .agent(
            "main",
            [Turn::new().spawn("reviewer", "bad").spawn("reviewer", "good"), Turn::new().text("One failed.")],
        )
        .agent_on("reviewer", "bad", [Turn::new().text("Hm").cut()])
        .agent("reviewer", [Turn::new().wait(ms(5)).text("Good.")]);
    insta::assert_snapshot!(run(model).await, @r#"
    0 main AGENT_START main "review this"
    0 main MODEL_CALL_START scripted #1
    0 main TOOL_CALL_START agent_spawn (call-1)
    0 main TOOL_CALL_DELTA "{\"agent_id\":\"reviewer\",\"task\":\"bad\"}" (call-1)
    0 main TOOL_CALL_END agent_spawn (call-1)
    0 main TOOL_CALL_START agent_spawn (call-2)
    0 main TOOL_CALL_DELTA "{\"agent_id\":\"reviewer\",\"task\":\"good\"}" (call-2)
    0 main TOOL_CALL_END agent_spawn (call-2)
    0 main MODEL_CALL_END tool_calls
    0 main TOOL_RESULT_START agent_spawn {"agent_id":"reviewer","task":"bad"} (call-1)
    0   reviewer#1 AGENT_START reviewer "bad"
    0   reviewer#1 MODEL_CALL_START scripted #1
    0   reviewer#1 TEXT_BLOCK_START
    0   reviewer#1 TEXT_BLOCK_DELTA "Hm"
    0   reviewer#1 TEXT_BLOCK_END
    0   reviewer#1 MODEL_CALL_END error
    0   reviewer#1 AGENT_END error 0/0 tok (transport: the connection was cut)
    0 main TOOL_RESULT_TEXT_DELTA "agent_key: agent:reviewer:1\nagent_id: reviewer\nsession_id: sub-1\nstatus: error\ne"… (call-1)
    0 main TOOL_RESULT_END agent_spawn error (call-1)
    0 main TOOL_RESULT_START agent_spawn {"agent_id":"reviewer","task":"good"} (call-2)
    0   reviewer#2 AGENT_START reviewer "good"
    0   reviewer#2 MODEL_CALL_START scripted #1
    5   reviewer#2 TEXT_BLOCK_START
    5   reviewer#2 TEXT_BLOCK_DELTA "Good."
    5   reviewer#2 TEXT_BLOCK_END
    5   reviewer#2 MODEL_CALL_END stop
    5   reviewer#2 AGENT_RESULT "Good."
    5   reviewer#2 AGENT_END success 3/3 tok
    5 main TOOL_RESULT_TEXT_DELTA "agent_key: agent:reviewer:2\nagent_id: reviewer\nsession_id: sub-2\nstatus: complet"… (call-2)
    5 main TOOL_RESULT_END agent_spawn success (call-2)
    5 main MODEL_CALL_START scripted #2
    5 main TEXT_BLOCK_START
    5 main TEXT_BLOCK_DELTA "One failed."
    5 main TEXT_BLOCK_END
    5 main MODEL_CALL_END stop
    5 main AGENT_RESULT "One failed."
    5 main AGENT_END success 28/31 tok
    "#);
}

#[tokio::test(start_paused = true)]
async fn a_panicking_child_is_an_error_result() {
    let model = ScriptedModel::new()
        .agent("main", [Turn::new().spawn("reviewer", "x"), Turn::new().text("It broke.")])
        .agent("reviewer", [Turn::new().text("Hm").panic("boom")]);
    insta::assert_snapshot!(run(model).await, @r#"
    0 main AGENT_START main "review this"
    0 main MODEL_CALL_START scripted #1
    0 main TOOL_CALL_START agent_spawn (call-1)
    0 main TOOL_CALL_DELTA "{\"agent_id\":\"reviewer\",\"task\":\"x\"}" (call-1)
    0 main TOOL_CALL_END agent_spawn (call-1)
    0 main MODEL_CALL_END tool_calls
    0 main TOOL_RESULT_START agent_spawn {"agent_id":"reviewer","task":"x"} (call-1)
    0   reviewer#1 AGENT_START reviewer "x"
    0   reviewer#1 MODEL_CALL_START scripted #1
    0   reviewer#1 TEXT_BLOCK_START
    0   reviewer#1 TEXT_BLOCK_DELTA "Hm"
    0   reviewer#1 TEXT_BLOCK_END
    0   reviewer#1 MODEL_CALL_END error
    0   reviewer#1 AGENT_END error 0/0 tok (panic: a panic in the agent: boom)
    0 main TOOL_RESULT_TEXT_DELTA "agent_key: agent:reviewer:1\nagent_id: reviewer\nsession_id: sub-1\nstatus: error\ne"… (call-1)
    0 main TOOL_RESULT_END agent_spawn error (call-1)
    0 main MODEL_CALL_START scripted #2
    0 main TEXT_BLOCK_START
    0 main TEXT_BLOCK_DELTA "It broke."
    0 main TEXT_BLOCK_END
    0 main MODEL_CALL_END stop
    0 main AGENT_RESULT "It broke."
    0 main AGENT_END success 18/18 tok
    "#);
}

/// Returns the error for a spawn that is not possible.
async fn refusal(agent: &str, arguments: serde_json::Value) -> String {
    let model = ScriptedModel::new()
        .agent("main", [Turn::new().call(agent, arguments), Turn::new().text("I see.")])
        .agent("reviewer", [Turn::new().text("ok")]);
    let session = fleet(model).build().unwrap().session("s");
    session.run("go").unwrap().reply().await.unwrap();
    let history = session.history();
    let result = history[2].tool_results().next().unwrap();
    format!("{} {}", result.state.as_str(), result.text())
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_spawned_is_said() {
    let mut all = Vec::new();
    for (tool, arguments) in [
        ("agent_spawn", spawn_args("reviwer", "x")),
        ("agent_spawn", spawn_args("ghost", "x")),
        ("agent_spawn", json!({ "agent_id": "reviewer" })),
        ("agent_fanout", json!({ "spawns": [] })),
        ("agent_send", json!({ "message": "more" })),
        ("agent_send", json!({ "message": "more", "label": "absent" })),
        ("agent_list", json!({})),
    ] {
        all.push(refusal(tool, arguments).await);
    }
    insta::assert_snapshot!(all.join("\n"), @r#"
    error unknown agent_id "reviwer"; known: general-purpose, reviewer, tester
    error unknown agent_id "ghost"; known: general-purpose, reviewer, tester
    error the arguments of agent_spawn don't fit:
    - arguments: "task" is missing
    error the arguments of agent_fanout don't fit:
    - at /spawns: must have at least 1 item
    error give exactly one of agent_key and label
    error there is no child "absent"; known: none
    success []
    "#);
}

#[tokio::test(start_paused = true)]
async fn agents_exist_down_to_the_cap() {
    let spawner = |id: &str| AgentSpec::new(id, "Spawns").with_tools(["agent_spawn"]);
    let down = |task: &str| [Turn::new().spawn("digger", task), Turn::new().text("back")];
    let model = ScriptedModel::new().agent("main", down("1")).agent("digger", down("deeper"));
    let harness = harness(model).with_subagent(spawner("digger")).with_max_depth(2).build().unwrap();
    let events = harness.stream_events("dig").kinds(["AGENT_START", "TOOL_RESULT_TEXT_DELTA", "AGENT_END"]);
    let lines: Vec<_> = events.map(|event| format!("{} {}", event.depth(), event.kind)).collect().await;
    insta::assert_snapshot!(lines.join("\n"), @r#"
    0 AGENT_START main "dig"
    1 AGENT_START digger "1"
    2 AGENT_START digger "deeper"
    2 TOOL_RESULT_TEXT_DELTA "an agent at depth 2 can't spawn: agents exist down to depth 2; do the task yours"… (call-3)
    2 AGENT_END success 15/15 tok
    1 TOOL_RESULT_TEXT_DELTA "agent_key: agent:digger:2\nagent_id: digger\nsession_id: sub-2\nstatus: completed\nr"… (call-2)
    1 AGENT_END success 13/28 tok
    0 TOOL_RESULT_TEXT_DELTA "agent_key: agent:digger:1\nagent_id: digger\nsession_id: sub-1\nstatus: completed\nr"… (call-1)
    0 AGENT_END success 11/39 tok
    "#);
}

#[tokio::test(start_paused = true)]
async fn a_child_spawns_only_if_its_spec_says_so() {
    let model = ScriptedModel::new()
        .agent("main", [Turn::new().spawn("general-purpose", "x"), Turn::new().text("Done.")])
        .agent("general-purpose", [Turn::new().spawn("reviewer", "y"), Turn::new().text("Alone.")]);
    let children =
        fleet(model).build().unwrap().stream_events("go").at_depth(1).kinds(["TOOL_RESULT_TEXT_DELTA"]);
    let lines: Vec<_> = children.map(|event| event.kind.to_string()).collect().await;
    assert_eq!(
        lines,
        [r#"TOOL_RESULT_TEXT_DELTA "unknown tool \"agent_spawn\"; known: flaky, lookup" (call-2)"#]
    );
}

#[tokio::test(start_paused = true)]
async fn an_idle_child_can_be_sent_more_by_label() {
    let spawn = json!({ "agent_id": "reviewer", "task": "read", "label": "Rev" });
    let send = json!({ "label": "rev", "message": "and the tests?" });
    let model = ScriptedModel::new()
        .agent(
            "main",
            [
                Turn::new().call("agent_spawn", spawn.clone()),
                Turn::new().call("agent_spawn", spawn).call("agent_send", send).call("agent_list", json!({})),
                Turn::new().text("Done."),
            ],
        )
        .agent("reviewer", [Turn::new().text("Read."), Turn::new().text("Tested.")]);
    insta::assert_snapshot!(run(model).await, @r#"
    0 main AGENT_START main "review this"
    0 main MODEL_CALL_START scripted #1
    0 main TOOL_CALL_START agent_spawn (call-1)
    0 main TOOL_CALL_DELTA "{\"agent_id\":\"reviewer\",\"task\":\"read\",\"label\":\"Rev\"}" (call-1)
    0 main TOOL_CALL_END agent_spawn (call-1)
    0 main MODEL_CALL_END tool_calls
    0 main TOOL_RESULT_START agent_spawn {"agent_id":"reviewer","task":"read","label":"Rev"} (call-1)
    0   reviewer#1 AGENT_START reviewer "read"
    0   reviewer#1 MODEL_CALL_START scripted #1
    0   reviewer#1 TEXT_BLOCK_START
    0   reviewer#1 TEXT_BLOCK_DELTA "Read."
    0   reviewer#1 TEXT_BLOCK_END
    0   reviewer#1 MODEL_CALL_END stop
    0   reviewer#1 AGENT_RESULT "Read."
    0   reviewer#1 AGENT_END success 3/3 tok
    0 main TOOL_RESULT_TEXT_DELTA "agent_key: agent:reviewer:1\nagent_id: reviewer\nsession_id: sub-1\nstatus: complet"… (call-1)
    0 main TOOL_RESULT_END agent_spawn success (call-1)
    0 main MODEL_CALL_START scripted #2
    0 main TOOL_CALL_START agent_spawn (call-2)
    0 main TOOL_CALL_DELTA "{\"agent_id\":\"reviewer\",\"task\":\"read\",\"label\":\"Rev\"}" (call-2)
    0 main TOOL_CALL_END agent_spawn (call-2)
    0 main TOOL_CALL_START agent_send (call-3)
    0 main TOOL_CALL_DELTA "{\"label\":\"rev\",\"message\":\"and the tests?\"}" (call-3)
    0 main TOOL_CALL_END agent_send (call-3)
    0 main TOOL_CALL_START agent_list (call-4)
    0 main TOOL_CALL_DELTA "{}" (call-4)
    0 main TOOL_CALL_END agent_list (call-4)
    0 main MODEL_CALL_END tool_calls
    0 main TOOL_RESULT_START agent_spawn {"agent_id":"reviewer","task":"read","label":"Rev"} (call-2)
    0 main TOOL_RESULT_TEXT_DELTA "the label \"Rev\" is taken by agent:reviewer:1; choose another, or use agent_send "… (call-2)
    0 main TOOL_RESULT_END agent_spawn error (call-2)
    0 main TOOL_RESULT_START agent_send {"label":"rev","message":"and the tests?"} (call-3)
    0   reviewer#1 turn 2 AGENT_START reviewer "and the tests?"
    0   reviewer#1 turn 2 MODEL_CALL_START scripted #1
    0   reviewer#1 turn 2 TEXT_BLOCK_START
    0   reviewer#1 turn 2 TEXT_BLOCK_DELTA "Tested."
    0   reviewer#1 turn 2 TEXT_BLOCK_END
    0   reviewer#1 turn 2 MODEL_CALL_END stop
    0   reviewer#1 turn 2 AGENT_RESULT "Tested."
    0   reviewer#1 turn 2 AGENT_END success 8/8 tok
    0 main TOOL_RESULT_TEXT_DELTA "agent_key: agent:reviewer:1\nagent_id: reviewer\nsession_id: sub-1\nstatus: complet"… (call-3)
    0 main TOOL_RESULT_END agent_send success (call-3)
    0 main TOOL_RESULT_START agent_list {} (call-4)
    0 main TOOL_RESULT_TEXT_DELTA "[{\"agent_key\":\"agent:reviewer:1\",\"agent_id\":\"reviewer\",\"label\":\"Rev\",\"title\":\"Re"… (call-4)
    0 main TOOL_RESULT_END agent_list success (call-4)
    0 main MODEL_CALL_START scripted #3
    0 main TEXT_BLOCK_START
    0 main TEXT_BLOCK_DELTA "Done."
    0 main TEXT_BLOCK_END
    0 main MODEL_CALL_END stop
    0 main AGENT_RESULT "Done."
    0 main AGENT_END success 48/59 tok
    "#);
}

#[tokio::test(start_paused = true)]
async fn a_fanout_gives_one_result_a_spawn_in_order() {
    let spawns = json!({ "spawns": [spawn_args("reviewer", "slow"), spawn_args("absent", "x"), spawn_args("reviewer", "fast")] });
    let model = ScriptedModel::new()
        .agent("main", [Turn::new().call("agent_fanout", spawns), Turn::new().text("Done.")])
        .agent_on("reviewer", "slow", [Turn::new().wait(ms(50)).text("slow one")])
        .agent("reviewer", [Turn::new().text("fast one")]);
    insta::assert_snapshot!(run(model).await, @r##"
     0 main AGENT_START main "review this"
     0 main MODEL_CALL_START scripted #1
     0 main TOOL_CALL_START agent_fanout (call-1)
     0 main TOOL_CALL_DELTA "{\"spawns\":[{\"agent_id\":\"reviewer\",\"task\":\"slow\"},{\"agent_id\":\"absent\",\"task\":\"x\""… (call-1)
     0 main TOOL_CALL_END agent_fanout (call-1)
     0 main MODEL_CALL_END tool_calls
     0 main TOOL_RESULT_START agent_fanout {"spawns":[{"agent_id":"reviewer","task":"slow"},{"agent_id":"absent","task":"x"… (call-1)
     0   reviewer#1 AGENT_START reviewer "slow"
     0   reviewer#1 MODEL_CALL_START scripted #1
     0   reviewer#2 AGENT_START reviewer "fast"
     0   reviewer#2 MODEL_CALL_START scripted #1
     0   reviewer#2 TEXT_BLOCK_START
     0   reviewer#2 TEXT_BLOCK_DELTA "fast one"
     0   reviewer#2 TEXT_BLOCK_END
     0   reviewer#2 MODEL_CALL_END stop
     0   reviewer#2 AGENT_RESULT "fast one"
     0   reviewer#2 AGENT_END success 3/3 tok
    50   reviewer#1 TEXT_BLOCK_START
    50   reviewer#1 TEXT_BLOCK_DELTA "slow one"
    50   reviewer#1 TEXT_BLOCK_END
    50   reviewer#1 MODEL_CALL_END stop
    50   reviewer#1 AGENT_RESULT "slow one"
    50   reviewer#1 AGENT_END success 3/3 tok
    50 main TOOL_RESULT_TEXT_DELTA "# result 1 of 3\nagent_key: agent:reviewer:1\nagent_id: reviewer\nsession_id: sub-1"… (call-1)
    50 main TOOL_RESULT_END agent_fanout error (call-1)
    50 main MODEL_CALL_START scripted #2
    50 main TEXT_BLOCK_START
    50 main TEXT_BLOCK_DELTA "Done."
    50 main TEXT_BLOCK_END
    50 main MODEL_CALL_END stop
    50 main AGENT_RESULT "Done."
    50 main AGENT_END success 39/45 tok
    "##);
}

#[tokio::test(start_paused = true)]
async fn any_agent_is_a_tool() {
    let poet = ScriptedModel::named("poet-model").agent("poet", [Turn::new().text("Roses are red.")]);
    let poet = Agent::builder("poet", poet).build().unwrap().into_tool("Writes a verse");
    let model = ScriptedModel::new()
        .agent("main", [Turn::new().call("poet", json!({ "task": "roses" })), Turn::new().text("Done.")]);
    let run = harness(model).with_tool(poet).build().unwrap().stream_events("go");
    insta::assert_snapshot!(timeline(run).await, @r#"
    0 main AGENT_START main "go"
    0 main MODEL_CALL_START scripted #1
    0 main TOOL_CALL_START poet (call-1)
    0 main TOOL_CALL_DELTA "{\"task\":\"roses\"}" (call-1)
    0 main TOOL_CALL_END poet (call-1)
    0 main MODEL_CALL_END tool_calls
    0 main TOOL_RESULT_START poet {"task":"roses"} (call-1)
    0   poet#1 AGENT_START poet "roses"
    0   poet#1 MODEL_CALL_START poet-model #1
    0   poet#1 TEXT_BLOCK_START
    0   poet#1 TEXT_BLOCK_DELTA "Roses are red."
    0   poet#1 TEXT_BLOCK_END
    0   poet#1 MODEL_CALL_END stop
    0   poet#1 AGENT_RESULT "Roses are red."
    0   poet#1 AGENT_END success 6/6 tok
    0 main TOOL_RESULT_TEXT_DELTA "agent_key: agent:poet:1\nagent_id: poet\nsession_id: sub-1\nstatus: completed\nreply"… (call-1)
    0 main TOOL_RESULT_END poet success (call-1)
    0 main MODEL_CALL_START scripted #2
    0 main TEXT_BLOCK_START
    0 main TEXT_BLOCK_DELTA "Done."
    0 main TEXT_BLOCK_END
    0 main MODEL_CALL_END stop
    0 main AGENT_RESULT "Done."
    0 main AGENT_END success 8/14 tok
    "#);
}

#[tokio::test(start_paused = true)]
async fn a_child_that_spawns_is_told_whom() {
    let asks = |agent: &str| format!("- `{agent}`: ");
    let (model, told) = Overheard::new(
        ScriptedModel::new()
            .agent(
                "main",
                [Turn::new().spawn("tester", "x").spawn("reviewer", "y"), Turn::new().text("Done.")],
            )
            .agent("tester", [Turn::new().text("ok")])
            .agent("reviewer", [Turn::new().text("ok")]),
    );
    let fleet = harness(model)
        .with_subagent(AgentSpec::new("reviewer", "Reviews"))
        .with_subagent(AgentSpec::new("tester", "Tests").with_tools(["agent_spawn"]))
        .build()
        .unwrap();
    fleet.call("go").await.unwrap();
    let told = told.lock().unwrap();
    let knows =
        |agent: &str| told.iter().any(|(who, system)| who == agent && system.contains(&asks("reviewer")));
    assert_eq!(["main", "tester", "reviewer"].map(knows), [true, true, false]);
}

/// Returns the texts of an agent's tool results, in the order of their ends.
fn results_of(events: &[AgentEvent], agent: &str) -> Vec<String> {
    let of_agent = fold(events).into_iter().filter(|one| match &one.source {
        Some(source) => *source.agent_id == *agent,
        None => agent == "main",
    });
    let messages = of_agent.flat_map(|one| one.messages().to_vec());
    messages
        .flat_map(|message| message.tool_results().map(|result| result.text()).collect::<Vec<_>>())
        .collect()
}

/// A child that fails for good after some work, then goes on.
fn failing(seconds: u64) -> ScriptedModel {
    let spawn = json!({ "agent_id": "digger", "task": "dig", "timeout_seconds": seconds });
    let send = json!({ "agent_key": "agent:digger:1", "message": "go on" });
    let main = [
        Turn::new().call("agent_spawn", spawn),
        Turn::new().call("agent_send", send),
        Turn::new().text("All done."),
        Turn::new().text("All done."),
    ];
    let digger = [
        Turn::new()
            .text("I look twice.")
            .call("lookup", json!({ "word": "a" }))
            .call("lookup", json!({ "word": "b" })),
        Turn::new().text("It is gold, I th").cut(),
        Turn::new().text("It is gold."),
    ];
    ScriptedModel::new().agent("main", main).agent("digger", digger)
}

#[tokio::test(start_paused = true)]
async fn a_child_that_fails_loses_no_work_and_goes_on_where_it_stopped() {
    let digger = AgentSpec::new("digger", "Digs").with_tools(["lookup"]);
    let harness = harness(failing(30)).with_subagent(digger).build().unwrap();
    let events: Vec<_> = harness.stream_events("go").collect().await;
    laws(&events).unwrap_or_else(|error| panic!("{error}\n{}", render(&events)));
    let [failed, went_on] = <[_; 2]>::try_from(results_of(&events, "main")).unwrap();
    let expected = "status: error
error: transport: the connection was cut
done: 2 tool calls (lookup 2)
partial_reply:
It is gold, I th
note: all of this stays in its conversation: agent_send tells it to go on where it stopped, or in another way";
    assert!(failed.ends_with(expected), "{failed}");
    assert!(went_on.ends_with("reply:\nIt is gold."), "{went_on}");
    // Its tools have not run again.
    assert_eq!(results_of(&events, "digger").len(), 2, "{}", render(&events));
}

#[tokio::test(start_paused = true)]
async fn a_background_child_that_fails_loses_no_work_either() {
    let digger = AgentSpec::new("digger", "Digs").with_tools(["lookup"]);
    let harness = harness(failing(0)).with_subagent(digger).build().unwrap();
    let session = harness.session("s");
    session.run("go").unwrap().reply().await.unwrap();
    while harness.tasks().live() > 0 {
        tokio::time::sleep(ms(1)).await;
    }
    let task = session.tasks().await.unwrap().remove(0);
    let partial = "done: 2 tool calls (lookup 2)\npartial_reply:\nIt is gold, I th";
    assert_eq!((task.status, task.result.as_deref()), (TaskStatus::Failed, Some(partial)), "{task:?}");
}
