//! Recordings: a session that is run again from its record does what it did.

use futures_util::FutureExt;
use mainstem::{
    encode::TestFile,
    event::{LogOptions, Origin, SystemClock},
    model::{ErrorKind, ModelError, scripted::Turn},
    prelude::*,
    spec::Permission,
};
use mainstem_testing::{Recording, laws, render};
use serde_json::{Value, json};

use crate::support::{Spawns, harness, ms, spawn_args};

/// What the caller does while it reads.
type Caller = fn(&RunHandle, &AgentEvent);

/// Runs a session, one input after the other, and returns its record.
async fn record(harness: &Harness, inputs: &[&str], caller: Caller) -> Vec<AgentEvent> {
    let session = harness.new_session();
    let mut cursor = session.subscribe_from(1);
    for input in inputs {
        let mut run = session.run(*input).unwrap();
        let handle = run.handle();
        while let Some(event) = run.next().await {
            caller(&handle, &event);
        }
        // A person's pause, in which background tasks end.
        tokio::time::sleep(ms(60_000)).await;
    }
    let events: Vec<_> = std::iter::from_fn(|| cursor.try_next()).collect();
    laws(&events).unwrap_or_else(|broken| panic!("{broken}\n{}", render(&events)));
    events
}

fn lines(events: &[AgentEvent]) -> String {
    events.iter().map(|event| event.to_json() + "\n").collect()
}

/// Records a session, and runs it again: with its declarations, and as a server's reader has it.
async fn check(what: &str, harness: HarnessBuilder, inputs: &[&str], caller: Caller) {
    let events = record(&harness.build().unwrap(), inputs, caller).await;
    let public: Vec<_> = events.iter().map(AgentEvent::without_spec).collect();
    for events in [&events, &public] {
        let recording = Recording::parse(&lines(events)).unwrap_or_else(|error| panic!("{what}: {error}"));
        let again = recording.play(&recording.harness().build().unwrap()).await;
        if let Err(difference) = recording.compare(&again) {
            panic!("{what}: {difference}\n\nthe recording:\n{}", render(events));
        }
    }
}

fn allow(handle: &RunHandle, event: &AgentEvent) {
    decide(handle, event, |_| Decision::Allow);
}

fn decide(handle: &RunHandle, event: &AgentEvent, decision: impl Fn(&Value) -> Decision) {
    if let EventKind::RequireUserConfirm { confirm_id, tool_calls, .. } = &event.kind {
        let arguments = serde_json::from_str(&tool_calls[0].arguments).unwrap();
        handle.confirm(confirm_id, decision(&arguments)).unwrap();
    }
}

fn poke() -> impl Tool {
    tool_fn("poke", "Pokes", |_, given: serde_json::Map<String, Value>| async move {
        Ok::<_, ToolError>(Value::Object(given).to_string())
    })
}

#[tokio::test(start_paused = true)]
async fn a_session_does_again_what_it_did() {
    let lookup = |word: &str, takes: u64| json!({ "word": word, "takes": takes });
    let end = || Turn::new().text("Done.");
    let kid = || AgentSpec::new("kid", "Does things");

    let model = ScriptedModel::new().agent(
        "main",
        [
            Turn::new()
                .thinking("Hm. ")
                .pace(ms(7))
                .say("Let me see. ")
                .call("lookup", lookup("a", 30))
                .call("lookup", lookup("b", 10))
                .call("flaky", json!({ "how": "error" }))
                .call("flaky", json!({ "how": "panic" }))
                .call("nothing", json!({}))
                .raw_call("lookup", "{")
                .call("lookup", json!({ "word": 1 })),
            end(),
        ],
    );
    check("tools, and calls that never reach one", harness(model), &["go"], |_, _| ()).await;

    let model = ScriptedModel::new()
        .agent(
            "main",
            [
                Turn::new()
                    .text("I ask two. ")
                    .spawn("kid", "left")
                    .spawn("kid", "right")
                    .call("lookup", lookup("c", 5)),
                end(),
            ],
        )
        .agent_on(
            "kid",
            "left",
            [
                Turn::new().pace(ms(3)).say("slowly left").call("lookup", lookup("d", 50)),
                Turn::new().text("L"),
            ],
        )
        .agent_on("kid", "right", [Turn::new().pace(ms(2)).say("and right")]);
    check("children in parallel", harness(model).with_subagent(kid()), &["go"], |_, _| ()).await;

    let spawns =
        json!({ "spawns": [spawn_args("kid", "a"), spawn_args("kid", "b"), spawn_args("kid", "c")] });
    let model = ScriptedModel::new()
        .agent("main", [Turn::new().call("agent_fanout", spawns), end()])
        .agent_on("kid", "a", [Turn::new().spawn("leaf", "deep"), Turn::new().wait(ms(9)).text("A")])
        .agent_on("kid", "b", [Turn::new().fail(ModelError::new(ErrorKind::Auth, "the key is wrong"))])
        .agent_on("kid", "c", [Turn::new().wait(ms(4)).text("C")])
        .agent("leaf", [Turn::new().text("a leaf")]);
    let nested = harness(model)
        .with_subagent(kid().with_tools(["*", "agent_spawn"]))
        .with_subagent(AgentSpec::new("leaf", "Is a leaf"));
    check("a fan-out, nested, with a failure", nested, &["go"], |_, _| ()).await;

    let late = json!({ "agent_id": "kid", "task": "slow", "timeout_seconds": 0, "label": "slow one" });
    let model = ScriptedModel::new()
        .agent(
            "main",
            [
                Turn::new().call("agent_spawn", late),
                Turn::new().wait(ms(50)).call("lookup", lookup("x", 200)),
                Turn::new().wait(ms(50)).text("It is on its way."),
                Turn::new().call("agent_send", json!({ "label": "slow one", "message": "and more?" })),
                Turn::new().text("It said more."),
            ],
        )
        .agent("kid", [Turn::new().wait(ms(1_000)).text("Late."), Turn::new().text("More.")]);
    check(
        "a background task, told in the next turn, and a further message",
        harness(model).with_subagent(kid()),
        &["go", "and?"],
        |_, _| (),
    )
    .await;

    let model = ScriptedModel::new()
        .agent("main", [Turn::new().spawn("kid", "long"), Turn::new().wait(ms(5)).text("It goes on.")])
        .agent("kid", [Turn::new().wait(ms(45_000)).text("At last.")]);
    check("a child that becomes a background task", harness(model).with_subagent(kid()), &["go"], |_, _| ())
        .await;

    let asks = || {
        let pokes = (0..4).fold(Turn::new(), |turn, at| turn.call("poke", json!({ "at": at })));
        let model = ScriptedModel::new()
            .agent("main", [pokes, Turn::new().spawn("kid", "poke"), end()])
            .agent("kid", [Turn::new().call("poke", json!({ "at": 0 })), end()]);
        let rules = RuleSet::default().with_pattern(Effect::Deny, "poke(at: 3)").unwrap();
        harness(model)
            .with_tool(poke())
            .with_subagent(kid())
            .with_permissions(rules.with_changes(Effect::Ask))
    };
    let answers: Caller = |handle, event| {
        decide(handle, event, |arguments| match arguments["at"].as_i64() {
            Some(0) => Decision::Allow,
            Some(1) => Decision::AllowWith(json!({ "at": "one" })),
            _ => Decision::Deny("not that".to_owned()),
        });
    };
    check("approvals, at two depths", asks(), &["go"], answers).await;

    let model = ScriptedModel::new().agent("main", [Turn::new().call("poke", json!({ "at": "x" })), end()]);
    let rules = RuleSet::default().with_pattern(Effect::Ask, "poke(at: x)").unwrap();
    check("a rule that asks", harness(model).with_tool(poke()).with_permissions(rules), &["go"], allow).await;

    let model = ScriptedModel::new().agent("main", [Turn::new().call("ask", json!({ "what": "?" })), end()]);
    let ask = ExternalTool::new("ask", "Asks", json!({ "type": "object" })).with_read_only(true);
    let submits: Caller = |handle, event| {
        if let EventKind::RequireExternalExecution { tool_calls, .. } = &event.kind {
            handle.submit_tool_result(&tool_calls[0].id, "An answer.").unwrap();
        }
    };
    check("a tool that the caller executes", harness(model).with_tool(ask), &["go"], submits).await;

    let model = ScriptedModel::new()
        .agent("main", [Turn::new().spawn("kid", "slow"), end(), Turn::new().text("Again.")])
        .agent("kid", [Turn::new().text("I begin. ").wait(ms(20_000)).text("never")]);
    let cancels: Caller = |handle, event| {
        if event.depth() == 1 && matches!(event.kind, EventKind::TextBlockDelta { .. }) {
            handle.cancel_because(CancelReason::user("Ctrl-C"));
        }
    };
    check(
        "a run that is cancelled, and the next one",
        harness(model.clone()).with_subagent(kid()),
        &["go", "again"],
        cancels,
    )
    .await;
    let cancels: Caller = |handle, event| {
        if let (Some(key), EventKind::TextBlockDelta { .. }) = (event.agent_key(), &event.kind) {
            assert!(handle.cancel_agent(key));
        }
    };
    check("a child that is cancelled", harness(model).with_subagent(kid()), &["go"], cancels).await;

    let model = ScriptedModel::new().agent("main", [Turn::new().spawn("kid", "slow"), end()]).agent(
        "kid",
        [Turn::new().text("I begin. ").call("lookup", lookup("x", 500)), Turn::new().text("As you say.")],
    );
    let steers: Caller = |handle, event| {
        if let (Some(key), EventKind::TextBlockDelta { delta, .. }) = (event.agent_key(), &event.kind)
            && delta == "I begin. "
        {
            handle.send(key, "be brief", SendMode::Steer).unwrap();
        }
    };
    check("a message from a person", harness(model).with_subagent(kid()), &["go"], steers).await;

    let again = || Turn::new().call("lookup", lookup("x", 1));
    let model = ScriptedModel::new()
        .agent("main", [again(), Turn::new().spawn("kid", "go"), Turn::new().text("I sum up.")])
        .agent("kid", [again(), again(), Turn::new().text("Too long.")]);
    let limited = harness(model).with_subagent(kid().with_steps(2)).with_max_iterations(2);
    check("limits of iterations", limited, &["go"], |_, _| ()).await;

    let kid_model = ScriptedModel::new().agent("kid", [Turn::new().text("Hi.")]);
    let tool = Agent::builder("kid", kid_model).build().unwrap().into_tool("A kid");
    let model = ScriptedModel::new().agent("main", [Turn::new().call("kid", json!({ "task": "go" })), end()]);
    check("an agent that is a tool", harness(model).with_tool(tool), &["go"], |_, _| ()).await;

    let later = json!({ "task": "slow", "label": "later", "timeout_seconds": 0 });
    let send = json!({ "label": "later", "message": "and?" });
    let model = ScriptedModel::new()
        .agent(
            "main",
            [
                Turn::new().call("ask", json!({ "task": "go" })).wait(ms(3)).call("ask", later),
                Turn::new().wait(ms(3)).call("task_wait", json!({})),
                Turn::new().wait(ms(3)).call("agent_send", send),
                end(),
            ],
        )
        .agent_on("kid", "slow", [Turn::new().wait(ms(90)).text("Late."), Turn::new().text("More.")])
        .agent_on("kid", "go", [Turn::new().wait(ms(9)).text("Hi.")]);
    let mut hidden = kid();
    hidden.hidden = true;
    let tool = AgentTool::new("kid", "Asks a kid").with_name("ask");
    let declared = harness(model).with_subagent(hidden).with_tool(tool);
    check("a declared agent that is a tool", declared, &["go"], |_, _| ()).await;
}

/// A person cancels a child while its own child is at something.
#[tokio::test(start_paused = true)]
async fn a_subtree_is_cancelled_again() {
    let busy = |turn: Turn| {
        let kid = json!({ "agent_id": "kid", "task": "go", "label": "the `kid`" });
        let model = ScriptedModel::new()
            .agent(
                "main",
                [Turn::new().call("agent_spawn", kid).spawn("other", "go"), Turn::new().text("Done.")],
            )
            .agent("kid", [Turn::new().text("I ask a leaf. ").spawn("leaf", "deep"), Turn::new().text("K")])
            .agent("leaf", [turn, Turn::new().text("L")])
            .agent(
                "other",
                [Turn::new().pace(ms(30)).say("and this one goes on and on and on"), Turn::new()],
            );
        let rules = RuleSet::default().with_changes(Effect::Ask);
        let external = ExternalTool::new("ask", "Asks", json!({ "type": "object" })).with_read_only(true);
        harness(model)
            .with_tool(poke())
            .with_tool(external)
            .with_permissions(rules)
            .with_subagent(AgentSpec::new("kid", "Asks a leaf").with_tools(["*", "agent_spawn"]))
            .with_subagent(AgentSpec::new("leaf", "Is a leaf"))
            .with_subagent(AgentSpec::new("other", "Talks"))
    };
    let cancels: Caller = |handle, event| {
        let EventKind::TextBlockDelta { delta, .. } = &event.kind else { return };
        if event.agent_id() == "other" && delta.contains("goes") {
            let agents = handle.fleet().agents;
            let kid =
                agents.iter().filter_map(|agent| agent.source.as_ref()).find(|kid| &*kid.agent_id == "kid");
            assert!(handle.cancel_agent(&kid.unwrap().agent_key));
        }
    };
    let long = 20_000;
    let rows = [
        ("a request for approval", Turn::new().call("poke", json!({ "at": 1 }))),
        ("a model call", Turn::new().text("I begin. ").wait(ms(long)).text("never")),
        ("a model call that says nothing", Turn::new().wait(ms(long)).text("never")),
        ("a model call after a block", Turn::new().thinking("Hm.").text("I begin.").wait(ms(long))),
        ("a tool", Turn::new().call("lookup", json!({ "word": "x", "takes": long }))),
        ("a tool of the caller", Turn::new().call("ask", json!({ "what": "?" }))),
    ];
    for (what, turn) in rows {
        check(what, busy(turn), &["go"], cancels).await;
    }
}

/// An agent that has ended is cancelled with what it left running, and a task by its id.
#[tokio::test(start_paused = true)]
async fn background_work_is_cancelled_again() {
    let late = |agent: &str| json!({ "agent_id": agent, "task": "slow", "timeout_seconds": 0 });
    let talks = || Turn::new().wait(ms(50)).text("I begin.").wait(ms(90_000));
    let model = || {
        ScriptedModel::new()
            .agent("main", [Turn::new().spawn("kid", "go"), Turn::new().wait(ms(200)).text("Done.")])
            .agent(
                "kid",
                [Turn::new().call("agent_spawn", late("leaf")), Turn::new().text("It is on its way.")],
            )
            .agent("leaf", [talks()])
    };
    let built = || {
        harness(model())
            .with_subagent(AgentSpec::new("kid", "Asks a leaf").with_tools(["*", "agent_spawn"]))
            .with_subagent(AgentSpec::new("leaf", "Is a leaf"))
    };
    let cancels: Caller = |handle, event| {
        if event.agent_id() == "leaf" && matches!(event.kind, EventKind::TextBlockDelta { .. }) {
            let agents = handle.fleet().agents;
            let kid =
                agents.iter().filter_map(|agent| agent.source.as_ref()).find(|kid| &*kid.agent_id == "kid");
            assert!(handle.cancel_agent(&kid.unwrap().agent_key));
        }
    };
    check("an agent that has ended, with its task", built(), &["go"], cancels).await;
    let cancels: Caller = |handle, event| {
        let task = event.source().and_then(|source| source.task_id.clone());
        if let (Some(task), EventKind::TextBlockDelta { .. }) = (task, &event.kind) {
            let cancel = handle.session().task_set().cancel(&task, "the user (over HTTP)", ms(0));
            // The request is made when the future is polled; the rest of it waits for the end.
            _ = cancel.now_or_never();
        }
    };
    check("a task", built(), &["go"], cancels).await;
}

/// What a review found that did not play.
#[tokio::test(start_paused = true)]
async fn odd_sessions_do_again_what_they_did() {
    let end = || Turn::new().text("Done.");
    let kid = || AgentSpec::new("kid", "Does things");
    let late = || json!({ "agent_id": "kid", "task": "slow", "timeout_seconds": 0 });

    let model = ScriptedModel::new()
        .agent("main", [Turn::new().spawn("kid", "talk"), end()])
        .agent("kid", [Turn::new().repeat("word ", 14_000)]);
    let mut log = LogOptions::default();
    log.ring = 100_000;
    let talks = harness(model).with_subagent(kid()).with_log(log);
    check("more events than a log keeps", talks, &["go"], |_, _| ()).await;

    let model = ScriptedModel::new()
        .agent(
            "main",
            [
                Turn::new().call("agent_spawn", late()),
                Turn::new().call("task_wait", json!({})).call("agent_list", json!({})),
                end(),
            ],
        )
        .agent("kid", [Turn::new().wait(ms(100)).text("Late.")]);
    let clocked = harness(model).with_clock(SystemClock).with_subagent(kid());
    check("results that tell the time", clocked, &["go"], |_, _| ()).await;

    let model = ScriptedModel::new()
        .agent("main", [Turn::new().call("agent_spawn", late()), Turn::new().text("I say ").wait(ms(500))])
        .agent("kid", [Turn::new().text("I begin. ").wait(ms(90_000))]);
    let cancels: Caller = |handle, event| {
        if event.is_root() && matches!(event.kind, EventKind::TextBlockDelta { .. }) {
            handle.cancel_with_tasks(CancelReason::user("Ctrl-C"));
        }
    };
    check("a run that is cancelled with its tasks", harness(model).with_subagent(kid()), &["go"], cancels)
        .await;

    let pokes = || Turn::new().call("poke", json!({ "at": "a" })).call("poke", json!({ "at": "b" }));
    let model = ScriptedModel::new().agent("main", [pokes(), end()]);
    let rules =
        RuleSet::default().with_changes(Effect::Ask).with_pattern(Effect::Allow, "poke(at: a)").unwrap();
    let sometimes = harness(model).with_tool(poke()).with_permissions(rules);
    check("a tool that is asked about sometimes", sometimes, &["go"], allow).await;

    let model = ScriptedModel::new().agent("main", [pokes(), end()]);
    let by_default = harness(model).with_tool(poke()).with_permissions(RuleSet::new(Effect::Ask));
    check("rules that ask by default", by_default, &["go"], allow).await;

    let loud = tool_fn("loud", "Reports", |cx: ToolContext, _: serde_json::Map<String, Value>| async move {
        for _ in 0..200 {
            cx.progress("0123456789".repeat(100)).await;
        }
        Ok::<_, ToolError>("end")
    });
    let model = ScriptedModel::new().agent("main", [Turn::new().call("loud", json!({})), end()]);
    check("much progress", harness(model).with_tool(loud), &["go"], |_, _| ()).await;

    let inner = ScriptedModel::new().agent("inner", [Turn::new().text("In.")]);
    let inner = Agent::builder("inner", inner).build().unwrap().into_tool("Inner");
    let outer =
        ScriptedModel::new().agent("outer", [Turn::new().call("inner", json!({ "task": "go" })), end()]);
    let outer = Agent::builder("outer", outer).with_tool(inner).build().unwrap().into_tool("Outer");
    let model =
        ScriptedModel::new().agent("main", [Turn::new().call("outer", json!({ "task": "go" })), end()]);
    check("agents as tools of agents", harness(model).with_tool(outer), &["go"], |_, _| ()).await;

    let model = ScriptedModel::new()
        .agent(
            "main",
            [Turn::new().spawn("nothing", "x").spawn("kid", "one"), Turn::new().spawn("kid", "two"), end()],
        )
        .agent("kid", [Turn::new().text("One."), Turn::new().text("Two.")]);
    let mut persistent = kid();
    persistent.persist_session = true;
    let persists =
        harness(model).with_subagent(persistent).with_subagent(AgentSpec::new("other", "Is not called"));
    check("a child that is found again, and one that is unknown", persists, &["go"], |_, _| ()).await;
}

/// A recording can be played again and again.
#[tokio::test(start_paused = true)]
async fn a_recording_is_played_again() {
    let late = json!({ "agent_id": "kid", "task": "slow", "timeout_seconds": 0 });
    let moment = || Turn::new().wait(ms(5));
    let model = ScriptedModel::new()
        .agent(
            "main",
            [
                Turn::new().call("agent_spawn", late),
                moment().text("It is on its way."),
                moment().text("Here."),
            ],
        )
        .agent("kid", [Turn::new().wait(ms(30)).text("Late.")]);
    let kid = AgentSpec::new("kid", "Does things");
    let events =
        record(&harness(model).with_subagent(kid).build().unwrap(), &["go", "and?"], |_, _| ()).await;
    let recording = Recording::new(events).unwrap();
    for _ in 0..3 {
        recording.check(&recording.harness().build().unwrap()).await;
    }
}

/// A recording fails when the agents do something else, and says what and where.
#[tokio::test(start_paused = true)]
async fn a_difference_is_shown_with_its_place() {
    let model = || {
        ScriptedModel::new()
            .agent("main", [Turn::new().call("lookup", json!({ "word": "a" })), Turn::new().text("Done.")])
    };
    let events = record(&harness(model()).build().unwrap(), &["go"], |_, _| ()).await;
    let recording = Recording::new(events).unwrap();
    let tool = tool_fn("lookup", "Looks up", |_, _: serde_json::Map<String, Value>| async {
        Ok::<_, ToolError>("lost")
    });
    let changed = Harness::builder("main", recording.model()).with_ids(recording.ids()).with_tool(tool);
    let again = recording.play(&changed.build().unwrap()).await;
    let text = recording.compare(&again).unwrap_err().to_string();
    insta::assert_snapshot!(text.split("\n\n").next().unwrap());
}

/// A record that can't be played says which event it is.
#[tokio::test(start_paused = true)]
async fn what_cannot_be_played_is_refused() {
    let refused = |lines: &str| Recording::parse(lines).unwrap_err().to_string();
    assert_eq!(refused(""), "the record has no run");
    assert!(refused("{}\n").starts_with("line 1 of the record is not an event: "), "{}", refused("{}\n"));
    let model = ScriptedModel::new().agent("main", [Turn::new().text("Hello.")]);
    let events = record(&harness(model).build().unwrap(), &["go"], |_, _| ()).await;
    let cut = refused(&lines(&events[..3]));
    assert!(cut.contains("a recording needs all events of a session whose runs have ended"), "{cut}");
    let unplayable = |kind: EventKind| {
        let mut events = events.clone();
        let (seq, origin) = (events.len() as u64 + 1, events[0].origin.clone());
        let origin = Origin::session(origin.session_id.clone(), None);
        events.push(AgentEvent::new(seq, events[0].at, origin.into(), kind));
        refused(&lines(&events))
    };
    let twice = |effect| RuleSet::default().with_pattern(effect, "poke").unwrap();
    let pokes = || Turn::new().call("poke", json!({}));
    let model = ScriptedModel::new()
        .agent("main", [pokes().spawn("kid", "go"), Turn::new().text("Done.")])
        .agent("kid", [pokes(), Turn::new().text("Done.")]);
    let asks = AgentSpec::new("kid", "Asks").with_permission("poke", Permission::Ask);
    let asking = harness(model).with_tool(poke()).with_subagent(asks).with_permissions(twice(Effect::Allow));
    let asked = refused(&lines(&record(&asking.build().unwrap(), &["go"], allow).await));
    assert!(
        asked.ends_with("whether it needs approval depends on more than the tool and its arguments"),
        "{asked}"
    );
    let key = || "root".parse().unwrap();
    let cases = [
        (EventKind::PlanModeChanged { active: true }, "plan mode"),
        (
            EventKind::state_checkpoint(key(), Vec::new()),
            "the conversation was compacted, and the record does not have the summary",
        ),
    ];
    for (kind, why) in cases {
        assert_eq!(unplayable(kind), format!("event {} can't be played: {why}", events.len() + 1));
    }
}

/// The test in `exported.rs`, which the page writes byte for byte as well
/// (`ui/test/saved.test.ts`).
#[test]
fn a_session_is_exported_as_a_test() {
    let file = include_str!("exported.rs");
    let (_, record) = file.split_once("r#\"\n").unwrap();
    let recording = Recording::parse(record.trim_end_matches("\"#;\n")).unwrap();
    let mut test = TestFile::open(Vec::new(), recording.events()[0].session_id()).unwrap();
    for event in recording.events() {
        test.event(event).unwrap();
    }
    assert!(String::from_utf8(test.close().unwrap()).unwrap() == file, "tests/it/exported.rs differs");
}
