//! The demo plays the example, and shows the features that it is made for.

use std::time::Duration;

use futures_util::StreamExt;
use mainstem::{Harness, event::TaskStatus, prelude::*, tool::ToolState};
use mainstem_testing::laws;

use super::*;

async fn events() -> Vec<AgentEvent> {
    let harness = configure(Harness::builder("main", model(1.0)), 1.0).build().unwrap();
    assert_eq!(harness.diagnostics(), []);
    harness.stream_events(PROMPT).collect().await
}

#[test]
fn the_agents_are_the_examples() {
    for (id, text) in AGENTS {
        let parsed = spec::parse(id, text, Path::new(id)).unwrap();
        assert_eq!((parsed.warnings.len(), parsed.spec.prompt.is_empty()), (0, false), "{id}");
    }
    let files: Vec<_> = change().into_iter().map(|(path, diff)| (path, diff.contains("@@"))).collect();
    assert_eq!(files, [("src/cart.rs", true), ("src/discount.rs", true)]);
}

#[tokio::test(start_paused = true)]
async fn it_shows_twins_a_grandchild_a_failing_tool_and_a_recovery_and_a_background_task() {
    let started = tokio::time::Instant::now();
    let events = events().await;
    let took = started.elapsed();
    laws(&events).unwrap();
    assert!((10..=13).contains(&took.as_secs()), "{took:?}");

    let fleet = events.iter().fold(FleetState::default(), |mut fleet, event| {
        fleet.apply(event);
        fleet
    });
    let shown = |agent: &mainstem_event::fleet::AgentState| (agent.name.clone(), agent.depth());
    let agents: Vec<_> = fleet.agents.iter().map(shown).collect();
    let expected =
        [("main", 0), ("reviewer", 1), ("reviewer", 1), ("tester", 1), ("reviewer", 1), ("runner", 2)];
    assert_eq!(agents, expected.map(|(name, depth)| (name.to_owned(), depth)));
    assert!(fleet.agents.iter().all(|agent| agent.outcome == Some(Outcome::Success)));
    assert_eq!(fleet.tasks.values().collect::<Vec<_>>(), [&TaskStatus::Completed]);
    assert!(events.iter().any(|event| matches!(event.kind, EventKind::HintBlock { .. })), "main is told");

    let ends: Vec<_> = events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::ToolResultEnd { tool_call_name, state, .. } if &**tool_call_name == "run_tests" => {
                Some(*state)
            }
            _ => None,
        })
        .collect();
    assert_eq!(ends, [ToolState::Error, ToolState::Success]);
}

#[tokio::test(start_paused = true)]
async fn the_first_text_comes_within_a_second() {
    let harness = configure(Harness::builder("main", model(1.0)), 1.0).build().unwrap();
    let mut text = harness.stream_events(PROMPT).text();
    let started = tokio::time::Instant::now();
    assert_eq!(text.next().await.as_deref(), Some("Two "));
    assert!(started.elapsed() < Duration::from_secs(1));
}
