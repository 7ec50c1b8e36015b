//! Another agent leads: by the builder, and by a run.

use mainstem::{message::Failure, prelude::*, react::AgentError, spec::Mode};
use mainstem_testing::{laws, timeline};

use crate::support::{OpenNow, Spawns, harness, workspace, write};

/// Two models: `house` for agents that name none, and `own` for the reviewer.
fn fleet() -> HarnessBuilder {
    let house = ScriptedModel::named("house").agent("main", (0..3).map(|_| Turn::new().text("Main.")));
    let own = ScriptedModel::named("own")
        .agent("reviewer", [Turn::new().spawn("helper", "look"), Turn::new().text("Reviewed.")])
        .agent("helper", [Turn::new().text("Seen.")]);
    harness(house)
        .with_registry(ModelRegistry::new().with_model("own", own))
        .with_subagent(AgentSpec::new("reviewer", "Reviews").with_prompt("You review.").with_model("own"))
        .with_subagent(AgentSpec::new("helper", "Helps").with_mode(Mode::Subagent))
}

#[tokio::test(start_paused = true)]
async fn a_run_is_led_by_the_agent_that_it_names_with_its_own_model() {
    let session = fleet().build().unwrap().session("s");
    let run = session.run(RunRequest::new("go").with_agent("reviewer")).unwrap();
    let events: Vec<_> = run.collect().await;
    laws(&events).unwrap();
    // The label of the root is its id, and its child inherits its model.
    assert!(events.iter().all(|event| ["reviewer", "helper"].contains(&event.agent_label())));
    insta::assert_snapshot!(timeline(futures_util::stream::iter(events)).await, @r#"
    0 reviewer AGENT_START reviewer "go"
    0 reviewer MODEL_CALL_START own #1
    0 reviewer TOOL_CALL_START agent_spawn (call-1)
    0 reviewer TOOL_CALL_DELTA "{\"agent_id\":\"helper\",\"task\":\"look\"}" (call-1)
    0 reviewer TOOL_CALL_END agent_spawn (call-1)
    0 reviewer MODEL_CALL_END tool_calls
    0 reviewer TOOL_RESULT_START agent_spawn {"agent_id":"helper","task":"look"} (call-1)
    0   helper#1 AGENT_START helper "look"
    0   helper#1 MODEL_CALL_START own #1
    0   helper#1 TEXT_BLOCK_START
    0   helper#1 TEXT_BLOCK_DELTA "Seen."
    0   helper#1 TEXT_BLOCK_END
    0   helper#1 MODEL_CALL_END stop
    0   helper#1 AGENT_RESULT "Seen."
    0   helper#1 AGENT_END success 3/3 tok
    0 reviewer TOOL_RESULT_TEXT_DELTA "agent_key: agent:helper:1\nagent_id: helper\nsession_id: sub-1\nstatus: completed\nr"… (call-1)
    0 reviewer TOOL_RESULT_END agent_spawn success (call-1)
    0 reviewer MODEL_CALL_START own #2
    0 reviewer TEXT_BLOCK_START
    0 reviewer TEXT_BLOCK_DELTA "Reviewed."
    0 reviewer TEXT_BLOCK_END
    0 reviewer MODEL_CALL_END stop
    0 reviewer AGENT_RESULT "Reviewed."
    0 reviewer AGENT_END success 14/17 tok
    "#);
    // The next run is led as ever.
    assert_eq!(session.run("on").unwrap().reply().await.unwrap().text(), "Main.");
}

/// The models that answered, in order.
fn models(events: &[AgentEvent]) -> Vec<String> {
    let model = |event: &AgentEvent| match &event.kind {
        EventKind::ModelCallStart { model_name, .. } => Some(format!("{} {model_name}", event.agent_label())),
        _ => None,
    };
    events.iter().filter_map(model).collect()
}

/// A model is named for one run; children without a model of their own inherit it.
#[tokio::test(start_paused = true)]
async fn a_run_has_the_model_that_it_names() {
    let house = ScriptedModel::named("house").agent("main", [Turn::new().text("House.")]);
    let asked = || {
        [
            Turn::new().spawn("helper", "look"),
            Turn::new().spawn("reviewer", "look"),
            Turn::new().text("Asked."),
        ]
    };
    let asked = ScriptedModel::named("asked")
        .agent("main", asked())
        .agent("helper", [Turn::new().text("Seen.")])
        .agent("reviewer", [Turn::new().text("Mine.")]);
    let own = ScriptedModel::named("own").agent("reviewer", [Turn::new().text("Reviewed.")]);
    let harness = harness(house)
        .with_registry(ModelRegistry::new().with_model("own", own).with_model("asked", asked))
        .with_subagent(AgentSpec::new("reviewer", "Reviews").with_prompt("You review.").with_model("own"))
        .with_subagent(AgentSpec::new("helper", "Helps").with_mode(Mode::Subagent));
    let harness = harness.build().unwrap();
    let session = harness.session("s");
    let events: Vec<_> = session.run(RunRequest::new("go").with_model("asked")).unwrap().collect().await;
    laws(&events).unwrap();
    assert_eq!(models(&events), ["main asked", "helper asked", "main asked", "reviewer own", "main asked"]);
    // The settings of the run have it, for a turn that is resumed.
    assert_eq!(session.runs()[0].settings.model.as_deref(), Some("asked"));
    // Only this run has it.
    assert_eq!(harness.call("on").await.unwrap().text(), "House.");
    // Another agent may lead with it: its own model counts less.
    let led =
        harness.session("t").run(RunRequest::new("go").with_agent("reviewer").with_model("asked")).unwrap();
    assert_eq!(led.reply().await.unwrap().text(), "Mine.");
    let unknown = session.run(RunRequest::new("go").with_model("aksed")).unwrap().reply().await;
    match unknown {
        Err(RunError::Agent(AgentError::Refused(failure))) => {
            assert_eq!(failure.code, "agent_unusable");
            assert!(failure.message.contains("unknown model \"aksed\""), "{failure:?}");
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_harness_is_led_by_the_agent_that_the_builder_names() {
    let harness = fleet().with_agent("reviewer").build().unwrap();
    assert_eq!(harness.agents().root().model().name(), "own");
    assert_eq!(harness.call("go").await.unwrap().text(), "Reviewed.");
    let build = |id: &str| fleet().with_agent(id).build().map(drop).unwrap_err().to_string();
    assert!(build("nothing").starts_with("unknown agent \"nothing\"; known: "));
    assert_eq!(build("helper"), "\"helper\" can't be run: its mode is subagent");
}

#[tokio::test(start_paused = true)]
async fn a_run_whose_agent_cannot_lead_never_began() {
    let session = fleet().build().unwrap().session("s");
    let refused = async |id: &str| {
        let run = session.run(RunRequest::new("go").with_agent(id)).unwrap();
        match run.reply().await {
            Err(RunError::Agent(AgentError::Refused(Failure { code, .. }))) => code,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(refused("nothing").await, "unknown_agent");
    assert_eq!(refused("helper").await, "only_spawned");
    assert!(session.runs().iter().all(|run| run.never_began && run.end.is_some()));
    let events: Vec<_> = session.subscribe_from(1).take(2).collect().await;
    assert!(events.iter().all(AgentEvent::is_queued_run_cancel));
    // The session is free again.
    assert_eq!(session.run("on").unwrap().reply().await.unwrap().text(), "Main.");
}

#[tokio::test(start_paused = true)]
async fn a_leader_is_read_again_before_its_run() {
    let ws = workspace(&[("subagents/reviewer.md", "---\ndescription: d\n---\nOld.\n")]);
    let turns = || [Turn::new().text("One."), Turn::new().text("Two.")];
    let model = ScriptedModel::new().agent("reviewer", turns()).agent("critic", turns());
    let session = harness(model).with_workspace(ws.path()).build().unwrap().session("s");
    let led_by = async |id: &str| session.run(RunRequest::new("go").with_agent(id)).unwrap().reply().await;
    assert_eq!(led_by("reviewer").await.unwrap().text(), "One.");
    led_by("critic").await.unwrap_err();
    write(ws.path(), "subagents/critic.md", "---\ndescription: d\n---\nNew.\n");
    assert_eq!(led_by("critic").await.unwrap().text(), "Two.");
}
