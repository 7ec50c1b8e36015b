//! Decorated models: retries and fallbacks are events, and no text comes twice.

use mainstem::{
    model::{Fallback, IdleTimeout, Retry, RetryPolicy, scripted::Turn},
    prelude::*,
};
use mainstem_testing::timeline;

use crate::support::{harness, ms};

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
    5000 main MODEL_FALLBACK first → second (timeout: first said nothing for 5s)
    5000 main TEXT_BLOCK_START
    5000 main TEXT_BLOCK_DELTA "I can."
    5000 main TEXT_BLOCK_END
    5000 main MODEL_CALL_END stop
    5000 main AGENT_RESULT "I can."
    5000 main AGENT_END success 3/3 tok
    "#);
}

#[tokio::test(start_paused = true)]
async fn what_was_said_is_never_said_again() {
    let model = ScriptedModel::new().agent("main", [Turn::new().text("Once ").cut()]);
    let spare = ScriptedModel::named("spare").agent("main", [Turn::new().text("twice")]);
    let model = Fallback::new(Retry::with_policy(model, policy()), spare);
    let run = harness(model).build().unwrap().stream_events("go");
    insta::assert_snapshot!(timeline(run).await, @r#"
    0 main AGENT_START main "go"
    0 main MODEL_CALL_START scripted #1
    0 main TEXT_BLOCK_START
    0 main TEXT_BLOCK_DELTA "Once "
    0 main TEXT_BLOCK_END
    0 main MODEL_CALL_END error
    0 main AGENT_END error 0/0 tok (transport: the connection was cut)
    "#);
}
