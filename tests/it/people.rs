//! The gate of tool calls: rules, approvals, external tools, plan mode.

use mainstem::{
    event::TaskStatus,
    message::{ConfirmId, ToolCallId},
    model::scripted::Turn,
    policy::PlanMode,
    prelude::*,
    spec::Permission,
};
use mainstem_testing::{laws, render};
use serde_json::{Value, json};

use crate::support::{OpenNow, Spawns, harness, ms, spawn_args};

/// Returns a harness with tools that return their arguments: `peek` is read-only, `poke` is not.
fn tools(model: ScriptedModel) -> HarnessBuilder {
    let says = |name: &str| {
        tool_fn(
            name.to_owned(),
            "Says what it was given",
            |_, given: serde_json::Map<String, Value>| async move {
                Ok::<_, ToolError>(Value::Object(given).to_string())
            },
        )
    };
    harness(model).with_tool(says("peek").with_read_only(true)).with_tool(says("poke"))
}

fn rules(rules: &[(Effect, &str)]) -> RuleSet {
    rules
        .iter()
        .fold(RuleSet::default(), |set, (effect, pattern)| set.with_pattern(*effect, pattern).unwrap())
}

/// Returns the end of each call of a tool: its state and its text.
fn results(events: &[AgentEvent], tool: &str) -> Vec<String> {
    let mut results = Vec::new();
    for event in events {
        if let EventKind::ToolResultEnd { tool_call_id, tool_call_name, state, .. } = &event.kind
            && &**tool_call_name == tool
        {
            let text = events.iter().filter_map(|event| match &event.kind {
                EventKind::ToolResultTextDelta { tool_call_id: id, delta } if id == tool_call_id => {
                    Some(delta.as_str())
                }
                _ => None,
            });
            results.push(format!("{}: {}", state.as_str(), text.collect::<String>()));
        }
    }
    results
}

/// Reads a run, and answers its requests.
async fn answering(mut run: Run, mut answer: impl FnMut(&RunHandle, &AgentEvent)) -> Vec<AgentEvent> {
    let handle = run.handle();
    let mut events = Vec::new();
    while let Some(event) = run.next().await {
        answer(&handle, &event);
        events.push(event);
    }
    laws(&events).unwrap_or_else(|error| panic!("{error}\n{}", render(&events)));
    events
}

/// Returns the request for approval in an event.
fn asked(event: &AgentEvent) -> Option<(ConfirmId, String)> {
    match &event.kind {
        EventKind::RequireUserConfirm { confirm_id, tool_calls, .. } => {
            Some((confirm_id.clone(), tool_calls[0].arguments.clone()))
        }
        _ => None,
    }
}

#[tokio::test(start_paused = true)]
async fn rules_hold_for_all_tools_and_say_why() {
    let model = ScriptedModel::new()
        .agent(
            "main",
            [
                Turn::new()
                    .call("poke", json!({ "at": "a" }))
                    .call("poke", json!({ "at": "b" }))
                    .call("agent_spawn", spawn_args("kid", "go"))
                    .call("peek", json!({})),
                Turn::new().text("Done."),
            ],
        )
        .agent("kid", [Turn::new().text("Hi")]);
    let refused = rules(&[(Effect::Deny, "poke(at: b)"), (Effect::Deny, "agent_spawn(agent_id: k*)")]);
    let harness =
        tools(model).with_subagent(AgentSpec::new("kid", "K")).with_permissions(refused).build().unwrap();
    let events = answering(harness.stream_events("go"), |_, _| ()).await;
    assert_eq!(
        results(&events, "poke"),
        [r#"success: {"at":"a"}"#, r#"denied: poke is denied by the rule "poke(at: b)""#]
    );
    assert_eq!(
        results(&events, "agent_spawn"),
        [r#"denied: agent_spawn is denied by the rule "agent_spawn(agent_id: k*)""#]
    );
    assert_eq!(results(&events, "peek"), ["success: {}"]);
}

/// An agent that was built by hand and given as a tool has no fleet; the rules of the session apply
/// to it, too.
#[tokio::test(start_paused = true)]
async fn rules_hold_for_an_agent_that_is_a_tool() {
    let poke = |at: &str| Turn::new().call("poke", json!({ "at": at }));
    let kid = ScriptedModel::new().agent("kid", [poke("a"), poke("b"), poke("c"), Turn::new().text("Hi")]);
    let poked =
        tool_fn("poke", "P", |_, _: serde_json::Map<String, Value>| async { Ok::<_, ToolError>("ok") });
    let kid = Agent::builder("kid", kid).with_tool(poked).build().unwrap().into_tool("A kid");
    let call = Turn::new().call("kid", json!({ "task": "go" }));
    let model = ScriptedModel::new().agent("main", [call, Turn::new().text("Done.")]);
    let rules = rules(&[(Effect::Deny, "poke(at: b)"), (Effect::Ask, "poke(at: c)")]);
    let harness = harness(model).with_tool(kid).with_permissions(rules).build().unwrap();
    let session = harness.session("one");
    let events = answering(session.run("go").unwrap(), |run, event| {
        if let Some((id, _)) = asked(event) {
            assert_eq!(event.depth(), 1);
            // Between the question and the answer the session begins to plan: an allowance no
            // longer counts.
            session.set_plan_mode(PlanMode::On);
            run.confirm(&id, Decision::Allow).unwrap();
        }
    })
    .await;
    let [first, second, third] = &results(&events, "poke")[..] else { panic!("{}", render(&events)) };
    assert_eq!(first, "success: ok");
    assert_eq!(second, r#"denied: poke is denied by the rule "poke(at: b)""#);
    assert!(third.starts_with("denied: ") && third.contains("plan"), "{third}");
}

#[tokio::test(start_paused = true)]
async fn a_child_can_only_have_less() {
    // The session refuses `poke`, the lead asks for `lookup`; the kid's own rules allow everything.
    let kid = || AgentSpec::new("kid", "K").with_permission("*", Permission::Allow);
    let lead = AgentSpec::new("lead", "L")
        .with_tools(["agent_spawn", "peek", "poke", "lookup"])
        .with_permission("peek", Permission::Deny);
    let all = |turn: Turn| turn.call("poke", json!({})).call("peek", json!({}));
    let model = ScriptedModel::new()
        .agent(
            "main",
            [all(Turn::new()).spawn("lead", "go").spawn("kid", "alone"), Turn::new().text("Done.")],
        )
        .agent("lead", [all(Turn::new()).spawn("kid", "below"), Turn::new().text("Done.")])
        .agent("kid", [all(Turn::new()), Turn::new().text("Hi")]);
    let harness = tools(model)
        .with_subagent(kid())
        .with_subagent(lead)
        .with_permissions(rules(&[(Effect::Deny, "poke")]))
        .build()
        .unwrap();
    let events = answering(harness.stream_events("go"), |_, _| ()).await;
    let poked = results(&events, "poke");
    assert!(poked.iter().all(|result| result.starts_with("denied: ")), "{poked:?}");
    let peeked = |path: &str| {
        let of: Vec<_> = events
            .iter()
            .filter(|event| event.source().map_or("s", |source| &source.path) == path)
            .cloned()
            .collect();
        results(&of, "peek")
    };
    let session = events[0].session_id();
    assert_eq!(peeked("s"), ["success: {}"], "the root may");
    assert_eq!(peeked(&format!("{session}/kid")), ["success: {}"]);
    let refused = r#"denied: peek is denied by the rule "peek" of agent "lead""#;
    assert_eq!(peeked(&format!("{session}/lead")), [refused]);
    assert_eq!(peeked(&format!("{session}/lead/kid")), [refused], "what is above a kid holds for it");
}

#[tokio::test(start_paused = true)]
async fn only_the_call_that_is_asked_about_waits() {
    let model = ScriptedModel::new()
        .agent("main", [Turn::new().spawn("a", "x").spawn("b", "y"), Turn::new().text("Done.")])
        .agent("a", [Turn::new().call("poke", json!({ "at": "x" })), Turn::new().text("Poked.")])
        .agent("b", [Turn::new().pace(ms(10)).say("I go on")]);
    let harness = tools(model)
        .with_subagent(AgentSpec::new("a", "A"))
        .with_subagent(AgentSpec::new("b", "B"))
        .with_permissions(rules(&[(Effect::Ask, "poke")]))
        .build()
        .unwrap();
    let mut question = None;
    let events = answering(harness.stream_events("go"), |handle, event| {
        question = asked(event).map(|(id, _)| id).or_else(|| question.take());
        if matches!(&event.kind, EventKind::AgentEnd { .. }) && event.agent_label() == "b" {
            handle.confirm(question.as_ref().unwrap(), Decision::Allow).unwrap();
            let again = handle.confirm(question.as_ref().unwrap(), Decision::Allow).unwrap_err();
            assert_eq!(
                again.to_string(),
                "nothing waits for \"confirm-1\": it was answered already, or never asked"
            );
        }
    })
    .await;
    insta::assert_snapshot!(render(&events), @r#"
     0 main AGENT_START main "go"
     0 main MODEL_CALL_START scripted #1
     0 main TOOL_CALL_START agent_spawn (call-1)
     0 main TOOL_CALL_DELTA "{\"agent_id\":\"a\",\"task\":\"x\"}" (call-1)
     0 main TOOL_CALL_END agent_spawn (call-1)
     0 main TOOL_CALL_START agent_spawn (call-2)
     0 main TOOL_CALL_DELTA "{\"agent_id\":\"b\",\"task\":\"y\"}" (call-2)
     0 main TOOL_CALL_END agent_spawn (call-2)
     0 main MODEL_CALL_END tool_calls
     0 main TOOL_RESULT_START agent_spawn {"agent_id":"a","task":"x"} (call-1)
     0   a#1 AGENT_START a "x"
     0   a#1 MODEL_CALL_START scripted #1
     0   a#1 TOOL_CALL_START poke (call-3)
     0   a#1 TOOL_CALL_DELTA "{\"at\":\"x\"}" (call-3)
     0   a#1 TOOL_CALL_END poke (call-3)
     0   a#1 MODEL_CALL_END tool_calls
     0   a#1 REQUIRE_USER_CONFIRM poke
     0 main TOOL_RESULT_START agent_spawn {"agent_id":"b","task":"y"} (call-2)
     0   b#1 AGENT_START b "y"
     0   b#1 MODEL_CALL_START scripted #1
    10   b#1 TEXT_BLOCK_START
    10   b#1 TEXT_BLOCK_DELTA "I go on" ×3
    30   b#1 TEXT_BLOCK_END
    30   b#1 MODEL_CALL_END stop
    30   b#1 AGENT_RESULT "I go on"
    30   b#1 AGENT_END success 3/3 tok
    30 main TOOL_RESULT_TEXT_DELTA "agent_key: agent:b:1\nagent_id: b\nsession_id: sub-2\nstatus: completed\nreply:\nI go"… (call-2)
    30 main TOOL_RESULT_END agent_spawn success (call-2)
    30   a#1 USER_CONFIRM_RESULT poke yes
    30   a#1 TOOL_RESULT_START poke {"at":"x"} (call-3)
    30   a#1 TOOL_RESULT_TEXT_DELTA "{\"at\":\"x\"}" (call-3)
    30   a#1 TOOL_RESULT_END poke success (call-3)
    30   a#1 MODEL_CALL_START scripted #2
    30   a#1 TEXT_BLOCK_START
    30   a#1 TEXT_BLOCK_DELTA "Poked."
    30   a#1 TEXT_BLOCK_END
    30   a#1 MODEL_CALL_END stop
    30   a#1 AGENT_RESULT "Poked."
    30   a#1 AGENT_END success 7/7 tok
    30 main TOOL_RESULT_TEXT_DELTA "agent_key: agent:a:1\nagent_id: a\nsession_id: sub-1\nstatus: completed\nreply:\nPoke"… (call-1)
    30 main TOOL_RESULT_END agent_spawn success (call-1)
    30 main MODEL_CALL_START scripted #2
    30 main TEXT_BLOCK_START
    30 main TEXT_BLOCK_DELTA "Done."
    30 main TEXT_BLOCK_END
    30 main MODEL_CALL_END stop
    30 main AGENT_RESULT "Done."
    30 main AGENT_END success 18/28 tok
    "#);
}

#[tokio::test(start_paused = true)]
async fn a_person_can_edit_and_refuse_but_not_allow_what_is_refused() {
    let calls = (0..3).fold(Turn::new(), |turn, n| turn.call("poke", json!({ "at": n.to_string() })));
    let model = ScriptedModel::new().agent("main", [calls, Turn::new().text("Done.")]);
    let harness = tools(model)
        .with_permissions(rules(&[(Effect::Ask, "poke"), (Effect::Deny, "poke(at: root)")]))
        .build()
        .unwrap();
    let events = answering(harness.stream_events("go"), |handle, event| {
        let Some((id, arguments)) = asked(event) else { return };
        let decision = match arguments.as_str() {
            r#"{"at":"0"}"# => Decision::AllowWith(json!({ "at": "zero" })),
            r#"{"at":"1"}"# => Decision::Deny("not today".to_owned()),
            _ => Decision::AllowWith(json!({ "at": "root" })),
        };
        handle.confirm(&id, decision).unwrap();
    })
    .await;
    insta::assert_snapshot!(render(&events), @r#"
    0 main AGENT_START main "go"
    0 main MODEL_CALL_START scripted #1
    0 main TOOL_CALL_START poke (call-1)
    0 main TOOL_CALL_DELTA "{\"at\":\"0\"}" (call-1)
    0 main TOOL_CALL_END poke (call-1)
    0 main TOOL_CALL_START poke (call-2)
    0 main TOOL_CALL_DELTA "{\"at\":\"1\"}" (call-2)
    0 main TOOL_CALL_END poke (call-2)
    0 main TOOL_CALL_START poke (call-3)
    0 main TOOL_CALL_DELTA "{\"at\":\"2\"}" (call-3)
    0 main TOOL_CALL_END poke (call-3)
    0 main MODEL_CALL_END tool_calls
    0 main REQUIRE_USER_CONFIRM poke
    0 main REQUIRE_USER_CONFIRM poke
    0 main REQUIRE_USER_CONFIRM poke
    0 main USER_CONFIRM_RESULT poke yes
    0 main TOOL_RESULT_START poke {"at":"zero"} (call-1)
    0 main TOOL_RESULT_TEXT_DELTA "{\"at\":\"zero\"}" (call-1)
    0 main TOOL_RESULT_END poke success (call-1)
    0 main USER_CONFIRM_RESULT poke no
    0 main TOOL_RESULT_START poke {"at":"1"} (call-2)
    0 main TOOL_RESULT_TEXT_DELTA "poke was denied: not today" (call-2)
    0 main TOOL_RESULT_END poke denied (call-2)
    0 main USER_CONFIRM_RESULT poke yes
    0 main TOOL_RESULT_START poke {"at":"2"} (call-3)
    0 main TOOL_RESULT_TEXT_DELTA "poke is denied by the rule \"poke(at: root)\"" (call-3)
    0 main TOOL_RESULT_END poke denied (call-3)
    0 main MODEL_CALL_START scripted #2
    0 main TEXT_BLOCK_START
    0 main TEXT_BLOCK_DELTA "Done."
    0 main TEXT_BLOCK_END
    0 main MODEL_CALL_END stop
    0 main AGENT_RESULT "Done."
    0 main AGENT_END success 12/12 tok
    "#);
    let mut said = results(&events, "poke");
    said.sort();
    assert_eq!(
        said,
        [
            r#"denied: poke is denied by the rule "poke(at: root)""#,
            "denied: poke was denied: not today",
            r#"success: {"at":"zero"}"#,
        ]
    );
    let ran = events.iter().filter_map(|event| match &event.kind {
        EventKind::ToolResultStart { input, .. } if input["at"] == "zero" => Some(()),
        _ => None,
    });
    assert_eq!(ran.count(), 1, "the result says what was really executed");
}

#[tokio::test(start_paused = true)]
async fn a_turn_of_which_nothing_may_run_says_so_once() {
    let both = || Turn::new().call("poke", json!({ "at": "rule" })).call("poke", json!({ "at": "person" }));
    let model = ScriptedModel::new()
        .agent(
            "main",
            [Turn::new().spawn("kid", "go").call("poke", json!({ "at": "rule" })), Turn::new().text("Done.")],
        )
        .agent("kid", [both(), both().call("peek", json!({})), Turn::new().text("I may not.")]);
    let harness = tools(model)
        .with_subagent(AgentSpec::new("kid", "K"))
        .with_permissions(rules(&[(Effect::Ask, "poke(at: person)"), (Effect::Deny, "poke(at: rule)")]))
        .build()
        .unwrap();
    let events = answering(harness.stream_events("go"), |handle, event| {
        if let Some((id, _)) = asked(event) {
            handle.confirm(&id, Decision::Deny("no".to_owned())).unwrap();
        }
    })
    .await;
    let is_about = |event: &&AgentEvent| {
        matches!(event.kind.name(), "MODEL_CALL_START" | "TOOL_RESULT_END" | "ALL_TOOLS_DENIED")
    };
    let shown: Vec<_> = events.iter().filter(is_about).cloned().collect();
    insta::assert_snapshot!(render(&shown), @"
    0 main MODEL_CALL_START scripted #1
    0   kid#1 MODEL_CALL_START scripted #1
    0   kid#1 TOOL_RESULT_END poke denied (call-3)
    0 main TOOL_RESULT_END poke denied (call-2)
    0   kid#1 TOOL_RESULT_END poke denied (call-4)
    0   kid#1 ALL_TOOLS_DENIED poke, poke
    0   kid#1 MODEL_CALL_START scripted #2
    0   kid#1 TOOL_RESULT_END poke denied (call-5)
    0   kid#1 TOOL_RESULT_END peek success (call-7)
    0   kid#1 TOOL_RESULT_END poke denied (call-6)
    0   kid#1 MODEL_CALL_START scripted #3
    0 main TOOL_RESULT_END agent_spawn success (call-1)
    0 main MODEL_CALL_START scripted #2
    ");
}

#[tokio::test(start_paused = true)]
async fn without_anybody_to_ask_the_answer_is_no() {
    let model =
        ScriptedModel::new().agent("main", [Turn::new().call("poke", json!({})), Turn::new().text("I see.")]);
    let harness = tools(model).with_permissions(rules(&[(Effect::Ask, "poke")])).build().unwrap();
    let session = harness.session("s");
    let run = session.run(RunRequest::new("go").with_approval(false)).unwrap();
    let events = answering(run, |_, _| ()).await;
    assert_eq!(
        results(&events, "poke"),
        ["denied: poke was denied: it needs approval, and the run is unattended"]
    );
    assert!(events.iter().all(|event| asked(event).is_none()));
    assert_eq!(harness.call("go").await.unwrap().text(), "I see.", "a call without events does not hang");
}

#[tokio::test(start_paused = true)]
async fn a_question_that_nobody_answered_is_closed_when_the_run_is_stopped() {
    for drops in [false, true] {
        let model = ScriptedModel::new().agent("main", [Turn::new().call("poke", json!({}))]);
        let harness = tools(model).with_permissions(rules(&[(Effect::Ask, "poke")])).build().unwrap();
        let session = harness.session("s");
        let mut run = session.run("go").unwrap();
        while asked(&run.next().await.unwrap()).is_none() {}
        assert_eq!(session.fleet().confirmations.len(), 1);
        if drops {
            drop(run);
        } else {
            run.handle().cancel();
            let _rest: Vec<_> = run.collect().await;
        }
        let mut all = session.subscribe_from(1);
        let events: Vec<_> = std::iter::from_fn(|| all.try_next()).collect();
        laws(&events).unwrap();
        assert!(session.fleet().confirmations.is_empty(), "drops: {drops}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_waits_for_a_person_and_says_so() {
    let mut spawn = spawn_args("kid", "go");
    spawn["timeout_seconds"] = 0.into();
    let model = ScriptedModel::new()
        .agent(
            "main",
            [
                Turn::new().call("agent_spawn", spawn),
                Turn::new().call("task_wait", json!({})),
                Turn::new().text("Done."),
            ],
        )
        .agent(
            "kid",
            [Turn::new().call("poke", json!({})).call("poke", json!({})), Turn::new().text("Poked.")],
        );
    let harness = tools(model)
        .with_subagent(AgentSpec::new("kid", "K"))
        .with_permissions(rules(&[(Effect::Ask, "poke")]))
        .build()
        .unwrap();
    let mut questions = Vec::new();
    let events = answering(harness.stream_events("go"), |handle, event| {
        questions.extend(asked(event).map(|(id, _)| id));
        if questions.len() == 2 {
            questions.drain(..).for_each(|id| handle.confirm(&id, Decision::Allow).unwrap());
        }
    })
    .await;
    insta::assert_snapshot!(render(&events), @r#"
    0 main AGENT_START main "go"
    0 main MODEL_CALL_START scripted #1
    0 main TOOL_CALL_START agent_spawn (call-1)
    0 main TOOL_CALL_DELTA "{\"agent_id\":\"kid\",\"task\":\"go\",\"timeout_seconds\":0}" (call-1)
    0 main TOOL_CALL_END agent_spawn (call-1)
    0 main MODEL_CALL_END tool_calls
    0 main TOOL_RESULT_START agent_spawn {"agent_id":"kid","task":"go","timeout_seconds":0} (call-1)
    0 main TASK_UPDATED task-1 pending → running
    0   kid#1@task-1 AGENT_START kid "go"
    0   kid#1@task-1 MODEL_CALL_START scripted #1
    0   kid#1@task-1 TOOL_CALL_START poke (call-2)
    0   kid#1@task-1 TOOL_CALL_DELTA "{}" (call-2)
    0   kid#1@task-1 TOOL_CALL_END poke (call-2)
    0   kid#1@task-1 TOOL_CALL_START poke (call-3)
    0   kid#1@task-1 TOOL_CALL_DELTA "{}" (call-3)
    0   kid#1@task-1 TOOL_CALL_END poke (call-3)
    0   kid#1@task-1 MODEL_CALL_END tool_calls
    0   kid#1@task-1 REQUIRE_USER_CONFIRM poke
    0 main TASK_UPDATED task-1 running → waiting_confirm
    0   kid#1@task-1 REQUIRE_USER_CONFIRM poke
    0 main TOOL_RESULT_TEXT_DELTA "agent_key: agent:kid:1\nagent_id: kid\nsession_id: sub-1\nstatus: accepted\ntask_id:"… (call-1)
    0 main TOOL_RESULT_END agent_spawn running (call-1)
    0 main MODEL_CALL_START scripted #2
    0 main TOOL_CALL_START task_wait (call-4)
    0 main TOOL_CALL_DELTA "{}" (call-4)
    0 main TOOL_CALL_END task_wait (call-4)
    0 main MODEL_CALL_END tool_calls
    0 main TOOL_RESULT_START task_wait {} (call-4)
    0   kid#1@task-1 USER_CONFIRM_RESULT poke yes
    0   kid#1@task-1 TOOL_RESULT_START poke {} (call-2)
    0   kid#1@task-1 TOOL_RESULT_TEXT_DELTA "{}" (call-2)
    0   kid#1@task-1 TOOL_RESULT_END poke success (call-2)
    0 main TASK_UPDATED task-1 waiting_confirm → running
    0   kid#1@task-1 USER_CONFIRM_RESULT poke yes
    0   kid#1@task-1 TOOL_RESULT_START poke {} (call-3)
    0   kid#1@task-1 TOOL_RESULT_TEXT_DELTA "{}" (call-3)
    0   kid#1@task-1 TOOL_RESULT_END poke success (call-3)
    0   kid#1@task-1 MODEL_CALL_START scripted #2
    0   kid#1@task-1 TEXT_BLOCK_START
    0   kid#1@task-1 TEXT_BLOCK_DELTA "Poked."
    0   kid#1@task-1 TEXT_BLOCK_END
    0   kid#1@task-1 MODEL_CALL_END stop
    0   kid#1@task-1 AGENT_RESULT "Poked."
    0   kid#1@task-1 AGENT_END success 5/5 tok
    0 main TASK_UPDATED task-1 running → completed
    0 main TOOL_RESULT_TEXT_DELTA "1 of 1 tasks have ended.\n---\ntask_id: task-1\nagent_id: kid\nagent_key: agent:kid:"… (call-4)
    0 main TOOL_RESULT_END task_wait success (call-4)
    0 main MODEL_CALL_START scripted #3
    0 main TEXT_BLOCK_START
    0 main TEXT_BLOCK_DELTA "Done."
    0 main TEXT_BLOCK_END
    0 main MODEL_CALL_END stop
    0 main AGENT_RESULT "Done."
    0 main AGENT_END success 19/24 tok
    "#);
    let statuses: Vec<_> = events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::TaskUpdated { to, .. } => Some(*to),
            _ => None,
        })
        .collect();
    assert_eq!(
        statuses,
        [TaskStatus::Running, TaskStatus::WaitingConfirm, TaskStatus::Running, TaskStatus::Completed]
    );
}

#[tokio::test(start_paused = true)]
async fn an_external_tool_is_run_by_the_caller_at_any_depth() {
    let model = ScriptedModel::new()
        .agent("main", [Turn::new().spawn("kid", "go"), Turn::new().text("Done.")])
        .agent("kid", [Turn::new().call("browse", json!({ "url": "x" })), Turn::new().text("Seen.")]);
    let schema =
        json!({ "type": "object", "properties": { "url": { "type": "string" } }, "required": ["url"] });
    let build = |model| {
        let browse = ExternalTool::new("browse", "Opens a page at the caller's", schema.clone());
        harness(model).with_tool(browse).with_subagent(AgentSpec::new("kid", "K")).build().unwrap()
    };
    let harness = build(model);
    let run = harness.stream_events("go");
    let unknown = run.handle().submit_tool_result(&ToolCallId::new("call-9"), "?").unwrap_err();
    assert!(unknown.to_string().starts_with("nothing waits for \"call-9\""), "{unknown}");
    let events = answering(run, |handle, event| {
        if let EventKind::RequireExternalExecution { tool_calls, .. } = &event.kind {
            assert_eq!((event.depth(), tool_calls[0].arguments.as_str()), (1, r#"{"url":"x"}"#));
            handle.submit_tool_result(&tool_calls[0].id, "a page").unwrap();
        }
    })
    .await;
    insta::assert_snapshot!(render(&events), @r#"
    0 main AGENT_START main "go"
    0 main MODEL_CALL_START scripted #1
    0 main TOOL_CALL_START agent_spawn (call-1)
    0 main TOOL_CALL_DELTA "{\"agent_id\":\"kid\",\"task\":\"go\"}" (call-1)
    0 main TOOL_CALL_END agent_spawn (call-1)
    0 main MODEL_CALL_END tool_calls
    0 main TOOL_RESULT_START agent_spawn {"agent_id":"kid","task":"go"} (call-1)
    0   kid#1 AGENT_START kid "go"
    0   kid#1 MODEL_CALL_START scripted #1
    0   kid#1 TOOL_CALL_START browse (call-2)
    0   kid#1 TOOL_CALL_DELTA "{\"url\":\"x\"}" (call-2)
    0   kid#1 TOOL_CALL_END browse (call-2)
    0   kid#1 MODEL_CALL_END tool_calls
    0   kid#1 TOOL_RESULT_START browse {"url":"x"} (call-2)
    0   kid#1 REQUIRE_EXTERNAL_EXECUTION browse
    0   kid#1 EXTERNAL_EXECUTION_RESULT browse success
    0   kid#1 TOOL_RESULT_TEXT_DELTA "a page" (call-2)
    0   kid#1 TOOL_RESULT_END browse success (call-2)
    0   kid#1 MODEL_CALL_START scripted #2
    0   kid#1 TEXT_BLOCK_START
    0   kid#1 TEXT_BLOCK_DELTA "Seen."
    0   kid#1 TEXT_BLOCK_END
    0   kid#1 MODEL_CALL_END stop
    0   kid#1 AGENT_RESULT "Seen."
    0   kid#1 AGENT_END success 7/7 tok
    0 main TOOL_RESULT_TEXT_DELTA "agent_key: agent:kid:1\nagent_id: kid\nsession_id: sub-1\nstatus: completed\nreply:\n"… (call-1)
    0 main TOOL_RESULT_END agent_spawn success (call-1)
    0 main MODEL_CALL_START scripted #2
    0 main TEXT_BLOCK_START
    0 main TEXT_BLOCK_DELTA "Done."
    0 main TEXT_BLOCK_END
    0 main MODEL_CALL_END stop
    0 main AGENT_RESULT "Done."
    0 main AGENT_END success 12/19 tok
    "#);
    assert_eq!(results(&events, "browse"), ["success: a page"]);
    let answered =
        events.iter().filter(|event| matches!(event.kind, EventKind::ExternalExecutionResult { .. }));
    assert_eq!(answered.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn plan_mode_is_for_the_whole_fleet_and_a_person_ends_it() {
    let both = |turn: Turn| turn.call("peek", json!({})).call("poke", json!({}));
    let model = ScriptedModel::new()
        .agent(
            "main",
            [
                both(Turn::new()).spawn("kid", "look"),
                Turn::new().call("plan_exit", json!({ "plan": "Poke it." })),
                Turn::new().call("plan_exit", json!({ "plan": "Poke it gently." })),
                both(Turn::new()).spawn("kid", "do"),
                Turn::new().call("plan_enter", json!({})),
                both(Turn::new()),
                Turn::new().text("Done."),
            ],
        )
        .agent("kid", [both(Turn::new()), Turn::new().text("Hi")]);
    let harness =
        tools(model).with_subagent(AgentSpec::new("kid", "K")).with_plan_tools(true).build().unwrap();
    let session = harness.session("s");
    let run = session.run(RunRequest::new("go").with_plan_mode(true)).unwrap();
    let mut plans = Vec::new();
    let events = answering(run, |handle, event| {
        let Some((id, plan)) = asked(event) else { return };
        let no = Decision::Deny("too rough".to_owned());
        handle.confirm(&id, if plans.is_empty() { no } else { Decision::Allow }).unwrap();
        plans.push(plan);
    })
    .await;
    insta::assert_snapshot!(render(&events), @r#"
    0 main AGENT_START main "go"
    0 main MODEL_CALL_START scripted #1
    0 main TOOL_CALL_START peek (call-1)
    0 main TOOL_CALL_DELTA "{}" (call-1)
    0 main TOOL_CALL_END peek (call-1)
    0 main TOOL_CALL_START poke (call-2)
    0 main TOOL_CALL_DELTA "{}" (call-2)
    0 main TOOL_CALL_END poke (call-2)
    0 main TOOL_CALL_START agent_spawn (call-3)
    0 main TOOL_CALL_DELTA "{\"agent_id\":\"kid\",\"task\":\"look\"}" (call-3)
    0 main TOOL_CALL_END agent_spawn (call-3)
    0 main MODEL_CALL_END tool_calls
    0 main TOOL_RESULT_START peek {} (call-1)
    0 main TOOL_RESULT_TEXT_DELTA "{}" (call-1)
    0 main TOOL_RESULT_END peek success (call-1)
    0 main TOOL_RESULT_START poke {} (call-2)
    0 main TOOL_RESULT_TEXT_DELTA "plan mode: poke changes things; finish the plan and call plan_exit" (call-2)
    0 main TOOL_RESULT_END poke denied (call-2)
    0 main TOOL_RESULT_START agent_spawn {"agent_id":"kid","task":"look"} (call-3)
    0   kid#1 AGENT_START kid "look"
    0   kid#1 MODEL_CALL_START scripted #1
    0   kid#1 TOOL_CALL_START peek (call-4)
    0   kid#1 TOOL_CALL_DELTA "{}" (call-4)
    0   kid#1 TOOL_CALL_END peek (call-4)
    0   kid#1 TOOL_CALL_START poke (call-5)
    0   kid#1 TOOL_CALL_DELTA "{}" (call-5)
    0   kid#1 TOOL_CALL_END poke (call-5)
    0   kid#1 MODEL_CALL_END tool_calls
    0   kid#1 TOOL_RESULT_START peek {} (call-4)
    0   kid#1 TOOL_RESULT_TEXT_DELTA "{}" (call-4)
    0   kid#1 TOOL_RESULT_END peek success (call-4)
    0   kid#1 TOOL_RESULT_START poke {} (call-5)
    0   kid#1 TOOL_RESULT_TEXT_DELTA "plan mode: poke changes things; finish the plan and call plan_exit" (call-5)
    0   kid#1 TOOL_RESULT_END poke denied (call-5)
    0   kid#1 MODEL_CALL_START scripted #2
    0   kid#1 TEXT_BLOCK_START
    0   kid#1 TEXT_BLOCK_DELTA "Hi"
    0   kid#1 TEXT_BLOCK_END
    0   kid#1 MODEL_CALL_END stop
    0   kid#1 AGENT_RESULT "Hi"
    0   kid#1 AGENT_END success 4/4 tok
    0 main TOOL_RESULT_TEXT_DELTA "agent_key: agent:kid:1\nagent_id: kid\nsession_id: sub-1\nstatus: completed\nreply:\n"… (call-3)
    0 main TOOL_RESULT_END agent_spawn success (call-3)
    0 main MODEL_CALL_START scripted #2
    0 main TOOL_CALL_START plan_exit (call-6)
    0 main TOOL_CALL_DELTA "{\"plan\":\"Poke it.\"}" (call-6)
    0 main TOOL_CALL_END plan_exit (call-6)
    0 main MODEL_CALL_END tool_calls
    0 main TOOL_RESULT_START plan_exit {"plan":"Poke it."} (call-6)
    0 main REQUIRE_USER_CONFIRM plan_exit
    0 main USER_CONFIRM_RESULT plan_exit no
    0 main TOOL_RESULT_TEXT_DELTA "The plan was not accepted: too rough. You are still planning." (call-6)
    0 main TOOL_RESULT_END plan_exit denied (call-6)
    0 main ALL_TOOLS_DENIED plan_exit
    0 main MODEL_CALL_START scripted #3
    0 main TOOL_CALL_START plan_exit (call-7)
    0 main TOOL_CALL_DELTA "{\"plan\":\"Poke it gently.\"}" (call-7)
    0 main TOOL_CALL_END plan_exit (call-7)
    0 main MODEL_CALL_END tool_calls
    0 main TOOL_RESULT_START plan_exit {"plan":"Poke it gently."} (call-7)
    0 main REQUIRE_USER_CONFIRM plan_exit
    0 main USER_CONFIRM_RESULT plan_exit yes
    0 main PLAN_MODE_CHANGED off
    0 main TOOL_RESULT_TEXT_DELTA "The plan is accepted; carry it out." (call-7)
    0 main TOOL_RESULT_END plan_exit success (call-7)
    0 main MODEL_CALL_START scripted #4
    0 main TOOL_CALL_START peek (call-8)
    0 main TOOL_CALL_DELTA "{}" (call-8)
    0 main TOOL_CALL_END peek (call-8)
    0 main TOOL_CALL_START poke (call-9)
    0 main TOOL_CALL_DELTA "{}" (call-9)
    0 main TOOL_CALL_END poke (call-9)
    0 main TOOL_CALL_START agent_spawn (call-10)
    0 main TOOL_CALL_DELTA "{\"agent_id\":\"kid\",\"task\":\"do\"}" (call-10)
    0 main TOOL_CALL_END agent_spawn (call-10)
    0 main MODEL_CALL_END tool_calls
    0 main TOOL_RESULT_START peek {} (call-8)
    0 main TOOL_RESULT_TEXT_DELTA "{}" (call-8)
    0 main TOOL_RESULT_END peek success (call-8)
    0 main TOOL_RESULT_START poke {} (call-9)
    0 main TOOL_RESULT_TEXT_DELTA "{}" (call-9)
    0 main TOOL_RESULT_END poke success (call-9)
    0 main TOOL_RESULT_START agent_spawn {"agent_id":"kid","task":"do"} (call-10)
    0   kid#2 AGENT_START kid "do"
    0   kid#2 MODEL_CALL_START scripted #1
    0   kid#2 TOOL_CALL_START peek (call-11)
    0   kid#2 TOOL_CALL_DELTA "{}" (call-11)
    0   kid#2 TOOL_CALL_END peek (call-11)
    0   kid#2 TOOL_CALL_START poke (call-12)
    0   kid#2 TOOL_CALL_DELTA "{}" (call-12)
    0   kid#2 TOOL_CALL_END poke (call-12)
    0   kid#2 MODEL_CALL_END tool_calls
    0   kid#2 TOOL_RESULT_START peek {} (call-11)
    0   kid#2 TOOL_RESULT_TEXT_DELTA "{}" (call-11)
    0   kid#2 TOOL_RESULT_END peek success (call-11)
    0   kid#2 TOOL_RESULT_START poke {} (call-12)
    0   kid#2 TOOL_RESULT_TEXT_DELTA "{}" (call-12)
    0   kid#2 TOOL_RESULT_END poke success (call-12)
    0   kid#2 MODEL_CALL_START scripted #2
    0   kid#2 TEXT_BLOCK_START
    0   kid#2 TEXT_BLOCK_DELTA "Hi"
    0   kid#2 TEXT_BLOCK_END
    0   kid#2 MODEL_CALL_END stop
    0   kid#2 AGENT_RESULT "Hi"
    0   kid#2 AGENT_END success 4/4 tok
    0 main TOOL_RESULT_TEXT_DELTA "agent_key: agent:kid:2\nagent_id: kid\nsession_id: sub-2\nstatus: completed\nreply:\n"… (call-10)
    0 main TOOL_RESULT_END agent_spawn success (call-10)
    0 main MODEL_CALL_START scripted #5
    0 main TOOL_CALL_START plan_enter (call-13)
    0 main TOOL_CALL_DELTA "{}" (call-13)
    0 main TOOL_CALL_END plan_enter (call-13)
    0 main MODEL_CALL_END tool_calls
    0 main TOOL_RESULT_START plan_enter {} (call-13)
    0 main PLAN_MODE_CHANGED on
    0 main TOOL_RESULT_TEXT_DELTA "You are planning. Look around, make a plan, then call plan_exit with it." (call-13)
    0 main TOOL_RESULT_END plan_enter success (call-13)
    0 main MODEL_CALL_START scripted #6
    0 main TOOL_CALL_START peek (call-14)
    0 main TOOL_CALL_DELTA "{}" (call-14)
    0 main TOOL_CALL_END peek (call-14)
    0 main TOOL_CALL_START poke (call-15)
    0 main TOOL_CALL_DELTA "{}" (call-15)
    0 main TOOL_CALL_END poke (call-15)
    0 main MODEL_CALL_END tool_calls
    0 main TOOL_RESULT_START peek {} (call-14)
    0 main TOOL_RESULT_TEXT_DELTA "{}" (call-14)
    0 main TOOL_RESULT_END peek success (call-14)
    0 main TOOL_RESULT_START poke {} (call-15)
    0 main TOOL_RESULT_TEXT_DELTA "plan mode: poke changes things; finish the plan and call plan_exit" (call-15)
    0 main TOOL_RESULT_END poke denied (call-15)
    0 main MODEL_CALL_START scripted #7
    0 main TEXT_BLOCK_START
    0 main TEXT_BLOCK_DELTA "Done."
    0 main TEXT_BLOCK_END
    0 main MODEL_CALL_END stop
    0 main AGENT_RESULT "Done."
    0 main AGENT_END success 41/49 tok
    "#);
    assert_eq!(plans, [r#"{"plan":"Poke it."}"#, r#"{"plan":"Poke it gently."}"#]);
    let refused = "denied: plan mode: poke changes things; finish the plan and call plan_exit";
    assert_eq!(results(&events, "poke"), [refused, refused, "success: {}", "success: {}", refused]);
    assert!(results(&events, "peek").iter().all(|result| result == "success: {}"));
    assert!(results(&events, "plan_exit")[0].contains("too rough. You are still planning."));
    assert_eq!(session.plan_mode(), PlanMode::On);
}

#[tokio::test(start_paused = true)]
async fn a_pattern_that_can_not_be_read_is_said() {
    let spec = AgentSpec::new("kid", "K").with_permission("poke(at:b)", Permission::Deny);
    let error = tools(ScriptedModel::new()).with_subagent(spec).build().unwrap_err().to_string();
    assert!(error.starts_with("agent \"kid\": permissions: "), "{error}");
}

/// The caller of a run narrows what its agents may call; the rules go where the run goes.
#[tokio::test(start_paused = true)]
async fn rules_of_a_run_hold_for_children_and_for_a_run_that_resumes_it() {
    let poke = |at: &str| Turn::new().call("poke", json!({ "at": at }));
    let model = || {
        let first = [poke("a").spawn("kid", "go"), Turn::new().text("Half").hang()];
        let resumed = [poke("c"), poke("b"), Turn::new().text("Done.")];
        let next = [poke("free"), Turn::new().text("Done.")];
        ScriptedModel::new()
            .agent("main", first.into_iter().chain(resumed).chain(next))
            .agent("kid", [poke("b"), poke("c"), Turn::new().text("Hi")])
    };
    let journal = std::sync::Arc::new(mainstem::journal::MemoryJournal::new());
    let harness = || {
        let builder = tools(model()).with_ids(mainstem::event::RandomIds).with_journal(journal.clone());
        builder.with_subagent(AgentSpec::new("kid", "K")).build().unwrap()
    };
    let request = RunRequest::new("go")
        .with_rules(rules(&[(Effect::Deny, "poke(at: a)")]))
        .with_rules(rules(&[(Effect::Deny, "poke(at: b)")]));
    let first = harness();
    let session = first.open_session("s").await.unwrap();
    let events = answering(session.run(request).unwrap(), |run, event| {
        if event.is_root() && matches!(event.kind, EventKind::TextBlockDelta { .. }) {
            run.cancel();
        }
    })
    .await;
    let denied = |at: &str| format!(r#"denied: poke is denied by the rule "poke(at: {at})""#);
    assert_eq!(results(&events, "poke"), [denied("a"), denied("b"), r#"success: {"at":"c"}"#.to_owned()]);
    drop((session, first));

    let next = harness();
    let session = next.open_session("s").await.unwrap();
    let options = RunOptions::new().with_rules(rules(&[(Effect::Deny, "poke(at: c)")]));
    let events = answering(session.resume(options).unwrap(), |_, _| ()).await;
    assert_eq!(results(&events, "poke"), [denied("c"), denied("b")], "those of both hold");
    let events = answering(session.run("again").unwrap(), |_, _| ()).await;
    assert_eq!(results(&events, "poke"), [r#"success: {"at":"free"}"#], "the next run has its own");
}
