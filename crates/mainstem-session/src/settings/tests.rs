//! What is recorded of options, and what a resumed run takes over.

use std::time::Duration;

use mainstem_event::{OnLost, Timestamp};

use super::*;

fn given() -> RunOptions {
    let budget = Budget::default().with_tokens(1_000).with_spawns(3).with_time_seconds(60);
    RunOptions::new()
        .with_user("ann")
        .with_model("strong")
        .with_attribute("desk", 7)
        .with_approval(false)
        .with_max_depth(1)
        .with_on_lost(OnLost::Close)
        .with_budget(budget.with_cost(Cost::from_micros(500)))
}

fn run(spent: Spend) -> RunRecord {
    let mut run = RunRecord::new("run-1".parse().unwrap(), 1, Timestamp::from_micros(0), recorded(&given()));
    (run.spent, run.ran) = (spent, Duration::from_secs(20));
    run
}

#[test]
fn what_is_not_set_is_not_recorded() {
    assert!(recorded(&RunOptions::new()).is_default());
    let json = serde_json::to_value(recorded(&given())).unwrap();
    let budget = serde_json::json!({ "tokens": 1_000, "costMicros": 500, "spawns": 3, "timeSeconds": 60 });
    let expected = serde_json::json!({
        "user": "ann", "attributes": { "desk": 7 }, "budget": budget, "unattended": true, "maxDepth": 1,
        "onLost": "close", "model": "strong",
    });
    assert_eq!(json, expected);
    assert_eq!(serde_json::from_value::<RunSettings>(json).unwrap(), *recorded(&given()));
}

#[test]
fn a_resumed_run_has_what_is_left() {
    let mut spent = Spend::default();
    (spent.tokens, spent.spawns, spent.cost) = (900, 5, Cost::from_micros(100));
    let options = resumed(RunOptions::new(), &run(spent));
    let left = Budget::default().with_tokens(100).with_spawns(0).with_time_seconds(40);
    assert_eq!(options.budget, left.with_cost(Cost::from_micros(400)));
    assert_eq!((options.user.as_deref(), &options.attributes["desk"]), (Some("ann"), &7.into()));
    assert_eq!((options.spawn.is_attended, options.spawn.max_depth), (false, Some(1)));
    assert_eq!(options.on_lost, Some(OnLost::Close));
    assert_eq!(options.model.as_deref(), Some("strong"));
    let other = resumed(RunOptions::new().with_agent("b"), &run(spent));
    assert_eq!(other.model, None, "another agent has its own");
}

#[test]
fn what_a_resumed_run_says_itself_counts_but_for_more_budget() {
    let more = Budget::default().with_tokens(5_000);
    let own =
        RunOptions::new().with_user("bob").with_attribute("desk", 8).with_force_sync(true).with_budget(more);
    let own = own.with_on_lost(OnLost::Resume);
    let options = resumed(own, &run(Spend::default()));
    assert_eq!((options.user.as_deref(), &options.attributes["desk"]), (Some("bob"), &8.into()));
    assert_eq!((options.spawn.force_sync, options.spawn.max_depth), (true, None));
    assert_eq!(options.on_lost, Some(OnLost::Resume));
    assert_eq!(options.budget.tokens, Some(1_000));
}
