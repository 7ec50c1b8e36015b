//! Events in, the state of the fleet out.

use std::sync::Arc;

use mainstem_message::{Allowance, Failure, RateLimit, StopReason, ToolState};
use serde_json::json;

use super::*;
use crate::{CallPurpose, EventSource, Origin, Outcome, fixture::*};

fn state(events: &[AgentEvent]) -> FleetState {
    let mut fleet = FleetState::default();
    events.iter().for_each(|event| fleet.apply(event));
    fleet
}

/// Returns each agent as its label, phase, tools, and the end of its text.
fn show(fleet: &FleetState) -> Vec<String> {
    let agents = fleet.agents.iter().map(|agent| {
        let who = agent.key().map_or("main", AgentKey::as_str);
        let phase = agent.outcome.map_or_else(|| format!("{:?}", agent.phase), |o| o.as_str().to_owned());
        let tools: Vec<_> = agent.tools.iter().map(|tool| tool.tool_call_id.as_str()).collect();
        format!("{who} {phase} [{}] {}", tools.join(","), agent.last_line)
    });
    agents.collect()
}

fn check(list: &[(&str, EventKind)], expected: &[&str]) {
    assert_eq!(show(&state(&events(list.to_vec()))), expected);
}

#[test]
fn a_fleet_says_what_each_agent_is_at() {
    let root = [("", start("go"))];
    check(&[], &[]);
    check(&root, &["main Starting [] "]);
    let confirm = |id: &str| EventKind::require_user_confirm(id.parse().unwrap(), vec![]);
    let confirmed =
        |id: &str| EventKind::UserConfirmResult { confirm_id: id.parse().unwrap(), confirm_results: vec![] };
    let steps: [(EventKind, &str); 15] = [
        (ask(), "Waiting [] "),
        (thinking_start("1"), "Waiting [] "),
        (thinking("1", "hm"), "Thinking [] hm"),
        (text_start("2"), "Thinking [] "),
        (text("2", "So"), "Speaking [] So"),
        (answered(), "Speaking [] So"),
        (tool_start("x"), "Acting [x] So"),
        (tool_start("y"), "Acting [x,y] So"),
        (tool_end("x", ToolState::Success), "Acting [y] So"),
        (confirm("q"), "Asking [y] So"),
        (confirm("r"), "Asking [y] So"),
        (confirmed("q"), "Asking [y] So"),
        (tool_start("z"), "Asking [y,z] So"),
        (confirmed("r"), "Acting [y,z] So"),
        (end(Outcome::Cancelled), "cancelled [] So"),
    ];
    for path in ["", "a"] {
        let who = if path.is_empty() { "main" } else { "agent:a" };
        let mut list = vec![(path, start("go"))];
        for (kind, expected) in &steps {
            list.push((path, kind.clone()));
            check(&list, &[&format!("{who} {expected}")]);
        }
    }
    let external = EventKind::RequireExternalExecution { tool_calls: vec![] };
    check(&[root[0].clone(), ("", external)], &["main Asking [] "]);
}

#[test]
fn agents_stand_in_the_order_of_their_first_start() {
    check(
        &[
            ("", start("go")),
            ("b", start("1")),
            ("a", start("2")),
            ("a/x", start("3")),
            ("b", end(Outcome::Error)),
            ("a/x", ask()),
        ],
        &["main Starting [] ", "agent:b error [] ", "agent:a Starting [] ", "agent:a.x Waiting [] "],
    );
}

/// Returns the same instance in a later turn: another reply, the same place.
fn turn(seq: u64, path: &str, turn: u32, kind: EventKind) -> AgentEvent {
    let source = (!path.is_empty()).then(|| Arc::new(EventSource { turn, ..source(path) }));
    let reply_id = Some(format!("reply-{path}-{turn}").parse().unwrap());
    AgentEvent::new(seq, NOW, Arc::new(Origin { source, reply_id, ..origin(path) }), kind)
}

#[test]
fn a_further_turn_keeps_the_place() {
    let fleet = state(&[
        turn(1, "", 1, start("go")),
        turn(2, "a", 1, start("1")),
        turn(3, "a", 1, ask()),
        turn(4, "a", 1, text("1", "old")),
        turn(5, "a", 1, answered()),
        turn(6, "a", 1, end(Outcome::Error)),
        turn(7, "b", 1, start("2")),
        turn(8, "", 1, end(Outcome::Success)),
        turn(9, "", 2, start("go on")),
        turn(10, "a", 2, start("again")),
        turn(11, "", 2, ask()),
        turn(12, "a", 2, ask()),
        turn(13, "a", 2, answered()),
    ]);
    let expected = ["main Waiting [] ", "agent:a Waiting [] ", "agent:b Starting [] "];
    assert_eq!(show(&fleet), expected);
    let a = &fleet.agents[1];
    assert_eq!((a.reply_id.as_str(), a.source.as_ref().unwrap().turn), ("reply-a-2", 2));
    assert_eq!((a.iterations, a.usage.total_tokens()), (2, 24), "its cost is that of all its turns");
    assert_eq!((&a.error, a.ended_at), (&None, None));
}

#[test]
fn limits_on_the_rate_of_calls_are_shown() {
    let limits = |left| {
        let mut limits = RateLimits::default();
        limits.tokens = Some(Allowance::new(left).with_limit(30_000));
        limits
    };
    let called = || EventKind::model_call_start("m", 1);
    let ended =
        |left| EventKind::model_call_end(StopReason::Stop, 0).with_rate_limits(Box::new(limits(left)));
    let waits = || EventKind::rate_limit_wait(RateLimit::Tokens, 0);
    let mut steps = vec![
        ("", start("go")),
        ("", called()),
        ("", ended(200)),
        ("a", start("go")),
        ("a", called()),
        ("a", waits()),
        ("b", start("go")),
        ("b", EventKind::model_call_start("m", 1).with_purpose(CallPurpose::Compaction)),
        ("b", waits()),
    ];
    let fleet = state(&events(steps.clone()));
    let phases: Vec<_> = fleet.agents.iter().map(|agent| agent.phase).collect();
    assert_eq!(phases, [Phase::Waiting, Phase::RateLimited, Phase::Compacting]);
    assert_eq!(fleet.rate_limits, BTreeMap::from([("m".into(), limits(200))]));
    let failure = Failure::new("overloaded", "busy");
    steps.extend([
        ("a", EventKind::rate_limit_passed(5)),
        ("a", EventKind::model_fallback("m", "n", failure)),
        ("a", ended(100)),
    ]);
    let fleet = state(&events(steps));
    assert_eq!((fleet.agents[1].phase, fleet.agents[1].model.as_deref()), (Phase::Waiting, Some("n")));
    assert_eq!(fleet.rate_limits, BTreeMap::from([("m".into(), limits(200)), ("n".into(), limits(100))]));
}

#[test]
fn the_whole_fleet_has_tasks_questions_and_a_bill() {
    let updated = |to| EventKind::TaskUpdated {
        task_id: "t".parse().unwrap(),
        from: TaskStatus::Pending,
        to,
        error: None,
    };
    let asked = |id: &str| EventKind::require_user_confirm(id.parse().unwrap(), vec![]);
    let answer =
        |id: &str| EventKind::UserConfirmResult { confirm_id: id.parse().unwrap(), confirm_results: vec![] };
    let uncounted = EventKind::model_call_end(StopReason::Error, 0);
    let mut all = events([
        ("", start("go")),
        ("", answered()),
        ("a", start("go")),
        ("a", answered()),
        ("a", uncounted),
        ("a", asked("1")),
        ("", asked("2")),
        ("", updated(TaskStatus::Running)),
        ("", answer("1")),
        ("", updated(TaskStatus::Failed)),
    ]);
    all.push(gap(11, 15));
    let fleet = state(&all);
    assert_eq!((fleet.seq, fleet.at, fleet.missed), (15, NOW, 5));
    assert_eq!(fleet.session_id.as_ref().unwrap(), "s");
    assert_eq!(fleet.usage.total_tokens(), 24);
    assert_eq!(fleet.tasks, BTreeMap::from([("t".parse().unwrap(), TaskStatus::Failed)]));
    assert_eq!(fleet.confirmations.keys().map(ConfirmId::as_str).collect::<Vec<_>>(), ["2"]);
    assert_eq!(fleet.root().unwrap().key(), None);
    assert_eq!(fleet.agent(&"agent:a".parse().unwrap()).unwrap().depth(), 1);
    assert_eq!(fleet.agent(&"agent:b".parse().unwrap()), None);
}

#[test]
fn who_has_ended_is_not_running() {
    let fleet = state(&events([("", start("go")), ("a", start("go")), ("a", end(Outcome::Success))]));
    assert_eq!(fleet.running().map(AgentState::depth).collect::<Vec<_>>(), [0]);
    assert_eq!(fleet.agents[1].ended_at, Some(NOW));
}

#[test]
fn an_agent_that_failed_says_why() {
    let error = Some(Failure::new("timeout", "too slow"));
    let end = EventKind::AgentEnd {
        outcome: Outcome::Error,
        error: error.clone(),
        usage: Default::default(),
        duration_ms: 0,
    };
    let fleet = state(&events([("a", start("go")), ("a", tool_start("x")), ("a", end)]));
    assert_eq!((&fleet.agents[0].error, fleet.agents[0].phase), (&error, Phase::Ended));
}

#[test]
fn events_of_the_session_belong_to_no_agent() {
    let session = Arc::new(Origin::session("s".parse().unwrap(), None));
    let fleet = state(&[AgentEvent::new(1, NOW, session, answered())]);
    assert_eq!((fleet.agents.len(), fleet.usage.total_tokens()), (0, 12));
}

#[test]
fn what_went_in_already_changes_nothing() {
    let all: Vec<_> = (1..)
        .zip(EventKind::examples())
        .map(|(seq, kind)| event(seq, ["", "a", "b"][seq as usize % 3], kind))
        .collect();
    let once = state(&all);
    assert_eq!(state(&[all.clone(), all.clone()].concat()), once);
    let overlap = all[..20].iter().chain(&all[5..]).cloned().collect::<Vec<_>>();
    assert_eq!(state(&overlap), once);
}

#[test]
fn it_can_be_stored_and_taken_up_again() {
    let all: Vec<_> = (1..)
        .zip(EventKind::examples())
        .map(|(seq, kind)| event(seq, ["", "a", "b"][seq as usize % 3], kind))
        .collect();
    for cut in 0..all.len() {
        let json = serde_json::to_string(&state(&all[..cut])).unwrap();
        let mut fleet: FleetState = serde_json::from_str(&json).unwrap();
        assert_eq!(fleet, state(&all[..cut]));
        all[cut..].iter().for_each(|event| fleet.apply(event));
        assert_eq!(fleet, state(&all), "cut at {cut}");
    }
}

#[test]
fn agents_that_were_sorted_by_hand_are_found() {
    let mut fleet = state(&events([("", start("go")), ("a", start("go")), ("b", start("go"))]));
    fleet.agents.reverse();
    fleet.apply(&event(4, "b", ask()));
    fleet.apply(&event(5, "", ask()));
    assert_eq!(show(&fleet), ["agent:b Waiting [] ", "agent:a Starting [] ", "main Waiting [] "]);
    fleet.agents.remove(0);
    fleet.apply(&event(6, "a", ask()));
    fleet.apply(&event(7, "b", ask()));
    assert_eq!(show(&fleet), ["agent:a Waiting [] ", "main Waiting [] ", "agent:b Waiting [] "]);
}

#[test]
fn the_json_is_camel_case() {
    let fleet = state(&events([("a", start("go")), ("a", ask()), ("a", tool_start("x"))]));
    let tool = json!({ "toolCallId": "x", "name": "search", "input": null, "startedAt": NOW });
    let usage = json!({
        "inputTokens": 0, "outputTokens": 0, "cacheReadTokens": 0, "cacheWriteTokens": 0, "reasoningTokens": 0,
    });
    let agent = json!({
        "source": source("a"), "name": "agent", "replyId": "reply-a", "phase": "acting", "tools": [tool],
        "lastLine": "", "usage": usage, "model": "m", "iterations": 1, "startedAt": NOW,
    });
    let expected = json!({
        "seq": 3, "at": NOW, "sessionId": "s", "agents": [agent], "tasks": {}, "confirmations": {}, "usage": usage,
        "missed": 0,
    });
    assert_eq!(serde_json::to_value(&fleet).unwrap(), expected);
}

#[test]
fn the_json_is_what_the_schema_says() {
    let kinds = EventKind::examples().into_iter().filter(|kind| !matches!(kind, EventKind::AgentEnd { .. }));
    let fleet = state(&events(kinds.map(|kind| ("a", kind))));
    let schema = jsonschema::draft202012::new(schemars::schema_for!(FleetState).as_value()).unwrap();
    let check = |mut json: serde_json::Value, place: &str, value: serde_json::Value| {
        assert!(schema.is_valid(&json), "{json}");
        *json.pointer_mut(place).unwrap() = value;
        assert!(!schema.is_valid(&json), "{place}");
    };
    let json = || serde_json::to_value(&fleet).unwrap();
    check(json(), "/at", 7.into());
    check(json(), "/agents/0/phase", "dancing".into());
    check(json(), "/agents/0/source/depth", "one".into());
    check(json(), "/tasks/task-1", "lost".into());
}

#[test]
fn only_the_end_of_what_was_said_is_kept() {
    for piece in ["ab", "äö", "日本", "🦀🦀"] {
        let mut said = String::new();
        let mut fleet = state(&events([("", text_start("1"))]));
        for seq in 2..2_000 {
            said.push_str(piece);
            fleet.apply(&event(seq, "", text("1", piece)));
            let kept = &fleet.agents[0].last_line;
            assert!(said.ends_with(kept.as_str()), "{kept}");
            assert!(kept.len() <= 4 * 240);
            assert!(kept.chars().count() >= said.chars().count().min(240));
        }
    }
}

/// The first event of each agent, and each event, costs the same in a fleet of any size.
#[test]
fn a_large_fleet_is_not_searched() {
    let mut fleet = FleetState::default();
    for seq in 1..=20_000 {
        fleet.apply(&event(seq, &format!("a{seq}"), ask()));
    }
    let place = |path: &str| fleet.places.0[&Some(source(path).agent_key)];
    assert_eq!((place("a1"), place("a20000"), fleet.places.0.len()), (0, 19_999, 20_000));
}
