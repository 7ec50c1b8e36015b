//! The activities of agents.

use mainstem::message::RateLimit;

use super::*;
use crate::progress::fixture;

fn activities(seconds: f64) -> Vec<String> {
    let mut tree = Tree::new(Glyphs::UNICODE);
    let events = fixture::demo();
    let now = Timestamp::from_micros(events[0].at.as_micros() + (seconds * 1e6) as u64);
    events.iter().take_while(|event| event.at <= now).for_each(|event| tree.event(event));
    shown(&tree, now, 100)
}

fn shown(tree: &Tree, now: Timestamp, most: usize) -> Vec<String> {
    let line = |entry: Entry| match entry {
        Entry::Agent(row) => {
            let (lead, Name { id, about }) = ("  ".repeat(row.depth), row.name);
            let about = if about.is_empty() { about } else { format!(" ({about})") };
            format!("{lead}{id}{about}: {}", row.activity)
        }
        Entry::Ended { count, depth } => format!("{}{count} ended", "  ".repeat(depth)),
    };
    tree.entries(now, most).into_iter().map(line).collect()
}

#[test]
fn a_row_says_what_its_agent_waits_for() {
    assert_eq!(activities(0.1), ["main: waits for its model"]);
    assert_eq!(activities(0.6), ["main: writes"]);
    assert_eq!(
        activities(1.65),
        [
            "main: waits for 3 agents",
            "  reviewer (correctness): thinks",
            "  reviewer (security): waits for its model",
            "  tester (tests): writes",
            "  reviewer (promises): waits for its model",
        ]
    );
    let later = activities(3.5);
    let runner = "    runner (Run the tests of the): ✖ run_tests failed".to_owned();
    assert!(later.contains(&runner), "{later:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_row_counts_the_children_that_wait_for_a_place() {
    use std::time::Duration;

    use futures_util::StreamExt;
    use mainstem::{
        Harness,
        prelude::{ScriptedModel, Turn},
    };
    let spawn = |n: u8| serde_json::json!({ "agent_id": "general-purpose", "task": format!("Dig {n}") });
    let many = serde_json::json!({ "spawns": [spawn(1), spawn(2), spawn(3), spawn(4)] });
    let model = ScriptedModel::new()
        .agent(
            "main",
            [Turn::new().call("agent_fanout", many).call("agent_spawn", spawn(5)), Turn::new().text("Done.")],
        )
        .agent("general-purpose", [Turn::new().wait(Duration::from_secs(1)).text("Gold.")]);
    let harness = Harness::builder("main", model).with_max_children(2).build().unwrap();
    let mut tree = Tree::new(Glyphs::UNICODE);
    let mut seen = Vec::new();
    let mut run = harness.stream_events("Dig");
    while let Some(event) = run.next().await {
        tree.event(&event);
        seen.push(shown(&tree, event.at, 100)[0].clone());
    }
    seen.dedup();
    let queued = [
        "main: waits for 2 agents, 3 queued",
        "main: waits for 2 agents, 1 queued",
        "main: waits for 1 agent",
    ];
    let places: Vec<_> = queued.iter().map(|row| seen.iter().rposition(|one| one == row)).collect();
    assert!(places.is_sorted() && places.iter().all(Option::is_some), "{seen:#?}");
}

#[test]
fn a_row_says_that_its_agent_waits_for_a_rate_limit() {
    let mut events = fixture::demo();
    events.truncate(2);
    let wait = EventKind::rate_limit_wait(RateLimit::Tokens, 3).with_wait_ms(1_500);
    let last = events[1].clone();
    let mut next = |kind| {
        let seq = events.last().unwrap().seq + 1;
        events.push(AgentEvent::new(seq, last.at, last.origin.clone(), kind));
        let mut tree = Tree::new(Glyphs::UNICODE);
        events.iter().for_each(|event| tree.event(event));
        shown(&tree, last.at, 100)
    };
    assert_eq!(next(wait), ["main: waits for the rate limit of tokens, 1.5s, behind 3 calls"]);
    assert_eq!(next(EventKind::rate_limit_passed(2_000)), ["main: waits for its model"]);
}

#[test]
fn who_has_ended_stays_in_its_place_or_is_counted() {
    let events = fixture::demo();
    let now = events.last().unwrap().at;
    let mut tree = Tree::new(Glyphs::UNICODE);
    events.iter().for_each(|event| tree.event(event));
    insta::assert_snapshot!(shown(&tree, now, 6).join("\n"), @r"
    main: done
      reviewer (correctness): src/cart.rs:14 two discounts of 60 % make the total underflow and panic → cap th…
      reviewer (security): src/cart.rs:18 an empty code redeems the first discount it finds → compare whole…
      tester (tests): Three pass; redeem_twice fails: the total underflows at src/cart.rs:14.
        runner (Run the tests of the): redeem_twice failed with an overflow at src/cart.rs:14, the other three passed.
      reviewer (promises): No comment says which percents are valid, so the change violates none of them.
    ");
    insta::assert_snapshot!(shown(&tree, now, 5).join("\n"), @r"
    main: done
      5 ended
    ");
}

#[test]
fn only_what_has_ended_well_is_counted() {
    let mut events = fixture::demo();
    let is_end = |event: &AgentEvent| matches!(event.kind, EventKind::AgentEnd { .. });
    let end = events.iter().position(|event| event.agent_id() == "runner" && is_end(event)).unwrap();
    let failed = EventKind::agent_end(Outcome::Error, Default::default(), 1)
        .with_error(mainstem::message::Failure::new("auth", "no key"));
    let last = &events[end];
    events[end] = AgentEvent::new(last.seq, last.at, last.origin.clone(), failed);
    let mut tree = Tree::new(Glyphs::UNICODE);
    events.iter().for_each(|event| tree.event(event));
    insta::assert_snapshot!(shown(&tree, events.last().unwrap().at, 1).join("\n"), @r"
    main: done
      tester (tests): Three pass; redeem_twice fails: the total underflows at src/cart.rs:14.
        runner (Run the tests of the): failed: no key
      3 ended
    ");
}
