//! Decorated models: retries and fallbacks are events, and say what they take back.

use futures_util::StreamExt;
use mainstem::{
    message::StopReason,
    model::{Fallback, IdleTimeout, ModelOptions, OnCut, Retry, RetryPolicy, scripted::Turn},
    prelude::*,
};
use mainstem_testing::{laws, render, timeline};
use serde_json::json;

use crate::support::{Spawns, harness, ms};

fn policy() -> RetryPolicy {
    let mut policy = RetryPolicy::default();
    policy.jitter = false;
    policy
}

#[tokio::test(start_paused = true)]
async fn a_retry_is_an_event() {
    let model = ScriptedModel::new().agent("main", [Turn::new().text("Here I am.").rate_limited(2)]);
    let run = harness(Retry::with_policy(model, policy())).build().unwrap().stream_events("go");
    insta::assert_snapshot!(timeline(run).await, @r#"
       0 main AGENT_START main "go"
       0 main MODEL_CALL_START scripted #1
       0 main MODEL_RETRY #1 in 500 ms (rate_limited: too many requests)
     500 main MODEL_RETRY #2 in 1000 ms (rate_limited: too many requests)
    1500 main TEXT_BLOCK_START
    1500 main TEXT_BLOCK_DELTA "Here I am."
    1500 main TEXT_BLOCK_END
    1500 main MODEL_CALL_END stop
    1500 main AGENT_RESULT "Here I am."
    1500 main AGENT_END success 4/4 tok
    "#);
}

#[tokio::test(start_paused = true)]
async fn a_fallback_is_an_event() {
    let first = ScriptedModel::named("first").agent("main", [Turn::new().hang()]);
    let second = ScriptedModel::named("second").agent("main", [Turn::new().text("I can.")]);
    let model = Fallback::new(IdleTimeout::new(first, ms(5000)), second);
    let run = harness(model).build().unwrap().stream_events("go");
    insta::assert_snapshot!(timeline(run).await, @r#"
       0 main AGENT_START main "go"
       0 main MODEL_CALL_START first #1
    5000 main MODEL_FALLBACK first → second (timeout: first sent nothing for 5s)
    5000 main TEXT_BLOCK_START
    5000 main TEXT_BLOCK_DELTA "I can."
    5000 main TEXT_BLOCK_END
    5000 main MODEL_CALL_END stop
    5000 main AGENT_RESULT "I can."
    5000 main AGENT_END success 3/3 tok
    "#);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_cut_is_taken_back_and_given_again() {
    let call = || Turn::new().thinking("Hm.").text("Once ").call("lookup", json!({ "word": "time" }));
    let model = ScriptedModel::new().agent("main", [call().cut_first(1), Turn::new().text("Done.")]);
    let run = harness(Retry::with_policy(model, policy())).build().unwrap().stream_events("go");
    insta::assert_snapshot!(timeline(run).await);
}

#[tokio::test(start_paused = true)]
async fn a_model_that_answers_for_another_takes_back_what_that_has_said() {
    let model = ScriptedModel::new().agent("main", [Turn::new().text("Once ").cut()]);
    let spare = ScriptedModel::named("spare").agent("main", [Turn::new().text("twice")]);
    let run = harness(Fallback::new(model, spare)).build().unwrap().stream_events("go");
    insta::assert_snapshot!(timeline(run).await);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_may_not_be_repeated_keeps_the_part_that_was_said() {
    let model = ScriptedModel::new().agent("main", [Turn::new().text("Once ").cut()]);
    let mut options = ModelOptions::new();
    options.on_cut = Some(OnCut::Fail);
    let agent = harness(Retry::with_policy(model, policy())).with_model_options(options);
    insta::assert_snapshot!(timeline(agent.build().unwrap().stream_events("go")).await, @r#"
    0 main AGENT_START main "go"
    0 main MODEL_CALL_START scripted #1
    0 main TEXT_BLOCK_START
    0 main TEXT_BLOCK_DELTA "Once "
    0 main TEXT_BLOCK_END
    0 main MODEL_CALL_END error
    0 main AGENT_END error 0/0 tok (transport: the connection was cut)
    "#);
}

#[tokio::test(start_paused = true)]
async fn an_agent_whose_answers_are_always_cut_ends() {
    let turn = |n: u32| Turn::new().call("lookup", json!({ "word": n.to_string() })).cut_first(1);
    let turns = (0..40).map(turn);
    let model = ScriptedModel::new().agent("main", turns);
    let harness = harness(Retry::with_policy(model, policy())).with_max_iterations(50).build().unwrap();
    let events: Vec<_> = harness.stream_events("go").collect().await;
    laws(&events).unwrap_or_else(|error| panic!("{error}\n{}", render(&events)));
    let EventKind::AgentEnd { error: Some(error), .. } = &events.last().unwrap().kind else {
        panic!("{}", render(&events))
    };
    assert_eq!(error.code, "cut_too_often");
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_the_service_pauses_goes_on() {
    let paused = || Turn::new().text("I search.").stop(StopReason::Paused);
    let model = ScriptedModel::new().agent("main", [paused(), paused(), Turn::new().text("Found.")]);
    let run = harness(model).build().unwrap().stream_events("go");
    insta::assert_snapshot!(timeline(run).await);
    // The calls count towards the limit, so a turn that is always paused ends.
    let model = ScriptedModel::new().agent("main", (0..9).map(|_| paused()));
    let run = harness(model).with_max_iterations(3).build().unwrap().stream_events("go");
    let events: Vec<_> = run.collect().await;
    laws(&events).unwrap_or_else(|error| panic!("{error}\n{}", render(&events)));
    let end = events.last().unwrap().to_string();
    assert!(end.contains("AGENT_END max_iterations"), "{}", render(&events));
}

/// What was said stays in the stream, and is not the answer.
#[tokio::test(start_paused = true)]
async fn an_answer_that_is_refused_or_filtered_is_an_error() {
    let check = async |said: &str, stop: StopReason, expected: &str| {
        let answer = if said.is_empty() { Turn::new() } else { Turn::new().text(said) };
        let model = ScriptedModel::new().agent("main", [answer.stop(stop)]);
        let events: Vec<_> = harness(model).build().unwrap().stream_events("go").collect().await;
        laws(&events).unwrap_or_else(|error| panic!("{error}\n{}", render(&events)));
        let end = events.last().unwrap().to_string();
        assert!(end.contains(expected), "{}", render(&events));
        assert!(!events.iter().any(|event| matches!(event.kind, EventKind::AgentResult { .. })));
    };
    check(
        "I can't help with this.",
        StopReason::Refusal,
        "(refusal: the model refused to answer: I can't help",
    )
    .await;
    check("", StopReason::Refusal, "(refusal: the model refused to answer)").await;
    check("The recipe is", StopReason::ContentFilter, "(content_filter: the service filtered the answer)")
        .await;
}

/// The parent reads that its child was refused, and what it said.
#[tokio::test(start_paused = true)]
async fn the_parent_of_a_child_that_refuses_is_told() {
    let model = ScriptedModel::new()
        .agent("main", [Turn::new().spawn("kid", "do it"), Turn::new().text("It refuses.")])
        .agent("kid", [Turn::new().text("I won't.").stop(StopReason::Refusal)]);
    let harness = harness(model).with_subagent(AgentSpec::new("kid", "K")).build().unwrap();
    insta::assert_snapshot!(timeline(harness.stream_events("go")).await);
}
