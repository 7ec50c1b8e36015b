//! A lawful timeline that is broken in one place each time, and unusual lawful ones.

mod script;

use std::collections::BTreeMap;

use mainstem_event::{CallPurpose, Discarded, EventKind, EventSource, Origin, Rollup, Timestamp};
use mainstem_message::{Message, ToolCall, ToolState, Usage};

use self::script::{Line, Timeline, script};
use super::*;
use crate::render;

/// A parent, concurrent twins `a1` and `a2`, a grandchild `b` (by a call whose id occurs twice), a
/// tool, a child `c` in the background, a further message to `a1`; then a second run. Any two lines
/// of an agent differ.
const FLEET: &str = "
    main start
    main ask
    main think hm
    main text I
    main text ask
    main call 1
    main call 2
    main call 3
    main call 4
    main answer 10
    main work 1
    a1 start a by main 1
    main work 2
    a2 start a by main 2
    main work 3
    main work 4
    session task t pending running
    c start c by main 4 t
    main done 4 running
    a1 ask
    a2 ask
    a1 text one
    a2 think so
    c ask
    a1 call 1
    a2 text two
    a1 answer 5
    a1 work 1
    b start b by a1 1
    b ask
    c text back
    b text deep
    main done 3
    b answer 3
    b ends
    a1 done 1
    a2 answer 4
    a2 ends
    main done 2
    a1 ask
    a1 text fine
    a1 answer 2
    a1 ends
    main done 1
    main ask
    main call 5
    main answer 6
    main work 5
    a1+ start a by main 5
    a1+ ask
    a1+ text again
    a1+ answer 1
    a1+ ends
    main done 5
    main ask
    main text all
    main text good
    main answer 7
    main ends
    c text ground
    c answer 8
    c ends
    session task t running completed
    more start
    more ask
    more text bye
    more answer 9
    more ends";

impl Timeline {
    /// Returns the first line whose name begins so.
    #[track_caller]
    fn at(&self, name: &str) -> usize {
        let at = self.0.iter().position(|line| line.name.starts_with(name));
        at.unwrap_or_else(|| panic!("there is no line {name:?}"))
    }

    #[track_caller]
    fn drop(&mut self, name: &str) {
        let at = self.at(name);
        self.0.remove(at);
    }

    #[track_caller]
    fn double(&mut self, name: &str) {
        let at = self.at(name);
        self.0.insert(at, self.0[at].clone());
    }

    /// Moves a line directly before another.
    #[track_caller]
    fn shift(&mut self, name: &str, before: &str) {
        let at = self.at(name);
        let line = self.0.remove(at);
        let to = self.at(before);
        self.0.insert(to, line);
    }

    #[track_caller]
    fn swap(&mut self, one: &str, other: &str) {
        let (one, other) = (self.at(one), self.at(other));
        self.0.swap(one, other);
    }

    #[track_caller]
    fn change(&mut self, name: &str, change: impl FnOnce(&mut Line)) {
        let at = self.at(name);
        change(&mut self.0[at]);
    }

    /// Changes the source in all events of an agent.
    fn relabel(&mut self, who: &str, change: impl Fn(&mut EventSource)) {
        let who = format!("{who} ");
        for line in self.0.iter_mut().filter(|line| line.name.starts_with(&who)) {
            change_source(&mut line.origin, &change);
        }
    }
}

fn change_source(origin: &mut Origin, change: impl Fn(&mut EventSource)) {
    let mut source = origin.source.as_deref().cloned().unwrap();
    change(&mut source);
    origin.source = Some(source.into());
}

/// Breaks one thing, and checks that exactly this law is violated.
#[track_caller]
fn check(law: u8, break_it: impl FnOnce(&mut Timeline)) {
    let mut timeline = script(FLEET);
    break_it(&mut timeline);
    check_events(law, &timeline.events());
}

#[track_caller]
fn check_events(law: u8, events: &[AgentEvent]) {
    let found = laws(events).map_err(|broken| broken.law);
    assert_eq!(found, Err(law), "{:?}\n{}", laws(events), render(events));
}

#[track_caller]
fn accept(timeline: &Timeline) {
    let events = timeline.events();
    laws(&events).unwrap_or_else(|broken| panic!("{broken}\n{}", render(&events)));
}

/// Returns the event under another number.
fn renumber(event: &AgentEvent, seq: u64) -> AgentEvent {
    AgentEvent::new(seq, event.at, event.origin.clone(), event.kind.clone())
}

fn gap(from_seq: u64, to_seq: u64, missed: u64, per_agent: &[(&str, u64)]) -> AgentEvent {
    let per_agent: BTreeMap<_, _> =
        per_agent.iter().map(|(who, count)| (who.parse().unwrap(), *count)).collect();
    let kind = EventKind::gap(from_seq, to_seq, missed, per_agent);
    let session = Origin::session("s".parse().unwrap(), None);
    AgentEvent::new(to_seq, Timestamp::from_micros(0), session.into(), kind)
}

#[test]
fn law_1_sequence() {
    let broken = |break_it: fn(&mut Vec<AgentEvent>)| {
        let mut events = script(FLEET).events();
        break_it(&mut events);
        check_events(1, &events);
    };
    broken(|events| _ = events.remove(7));
    broken(|events| events.insert(7, events[7].clone()));
    broken(|events| events.swap(7, 8));
    broken(|events| events[7] = renumber(&events[7], 80));
    broken(|events| events[0] = renumber(&events[0], 0));
    broken(|events| _ = events.splice(5..9, [gap(6, 8, 3, &[])]));
    broken(|events| _ = events.splice(5..9, [gap(5, 9, 5, &[])]));
    broken(|events| _ = events.splice(5..9, [renumber(&gap(6, 9, 4, &[]), 8)]));
    broken(|events| _ = events.splice(5..8, [renumber(&gap(6, 9, 4, &[]), 8)]));
    broken(|events| _ = events.splice(5..9, [gap(9, 6, 4, &[])]));
    broken(|events| _ = events.splice(5..9, [gap(6, 4, 4, &[])]));
    broken(|events| {
        let origin = Origin { session_id: "other".parse().unwrap(), ..(*events[7].origin).clone() };
        events[7] = AgentEvent::new(8, events[7].at, origin.into(), events[7].kind.clone());
    });
}

#[test]
fn law_2_bracket() {
    check(2, |t| t.drop("a1 AGENT_START"));
    check(2, |t| t.drop("a1 AGENT_END"));
    check(2, |t| t.drop("main AGENT_END"));
    check(2, |t| t.double("a1 AGENT_START"));
    check(2, |t| t.double("a1 AGENT_END"));
    check(2, |t| t.swap("a1 AGENT_START", "a1 MODEL_CALL_START"));
    check(2, |t| t.swap("a1 AGENT_RESULT", "a1 AGENT_END"));
    // An event without an invocation.
    check(2, |t| t.change("b TEXT_BLOCK_DELTA", |line| line.origin.reply_id = None));
    check(2, |t| t.change("main TOOL_CALL_END", |line| line.origin.reply_id = None));
    check(2, |t| {
        let main = t.0[0].origin.clone();
        t.change("session TASK_UPDATED", |line| line.origin = main);
    });
    check(2, |t| {
        let c = t.0[t.at("c AGENT_START")].origin.clone();
        t.change("session TASK_UPDATED", |line| line.origin.source = c.source);
    });
    // Tasks.
    check(2, |t| t.shift("session TASK_UPDATED t running → completed", "c AGENT_END"));
    check(2, |t| t.double("session TASK_UPDATED t running → completed"));
    check(2, |t| t.shift("session TASK_UPDATED t running → completed", "session TASK_UPDATED t pending"));
    // Turns.
    check(2, |t| t.relabel("a1+", |source| source.turn = 3));
    check(2, |t| t.relabel("a1+", |source| source.turn = 1));
    check(2, |t| t.relabel("a1", |source| source.turn = 0));
    check(2, |t| t.relabel("b", |source| source.turn = 2));
    check(2, |t| t.shift("a1+ AGENT_START", "a1 AGENT_END"));
    check(2, |t| t.shift("more AGENT_START", "main AGENT_END"));
}

#[test]
fn law_3_cause() {
    check(3, |t| t.shift("a1 AGENT_START", "main TOOL_CALL_END tool (1)"));
    check(3, |t| t.shift("a1+ AGENT_START", "main TOOL_CALL_END tool (5)"));
    // The result comes before the child's end.
    check(3, |t| t.shift("main TOOL_RESULT_END tool success (1)", "a1 AGENT_END"));
    check(3, |t| t.shift("main TOOL_RESULT_END tool success (1)", "a1 AGENT_START"));
    check(3, |t| t.shift("a1 TOOL_RESULT_END tool success (1)", "b AGENT_END"));
    check(3, |t| t.shift("main TOOL_RESULT_END tool success (5)", "a1+ AGENT_END"));
    check(3, |t| {
        t.change("main TOOL_RESULT_END tool running (4)", |line| {
            let EventKind::ToolResultEnd { state, .. } = &mut line.kind else { unreachable!() };
            *state = ToolState::Success;
        });
    });
    // Another call, or none.
    check(3, |t| caused_by(t, "a2", Some("6")));
    check(3, |t| caused_by(t, "a2", Some("5")));
    check(3, |t| caused_by(t, "b", Some("3")));
    check(3, |t| t.relabel("a2", |source| source.parent_tool_call_id = Some("3".into())));
    check(3, |t| t.relabel("a2", |source| source.parent_tool_call_id = None));
    // The second twin first.
    check(3, |t| {
        t.shift("a2 AGENT_START", "a1 AGENT_START");
        t.relabel("a1", |source| source.stream_id = 2);
        t.relabel("a2", |source| source.stream_id = 1);
    });
}

#[test]
fn law_3_refusals() {
    let turn = |rest: &str| {
        let lines = format!(
            "main start/main ask/main call 2/main call 1/main answer 3/main work 1/main done 1 denied/main work 2/{rest}/\
             main ask/main text no/main answer 1/main ends"
        );
        script(&lines.replace('/', "\n"))
    };
    accept(&turn("main done 2 denied/main refused 2 1"));
    accept(&turn("main done 2"));
    let broken = [
        "main done 2/main refused 2 1",
        "main done 2/main refused 1",
        "main done 2 denied/main refused 2",
        "main done 2 denied/main refused 1 2",
        "main done 2 denied/main refused 2 1/main refused 2 1",
        "main refused 2 1/main done 2 denied",
        "main done 2 denied/main ask/main text hm/main answer 1/main refused 2 1",
    ];
    for broken in broken {
        check_events(3, &turn(broken).events());
    }
}

fn caused_by(timeline: &mut Timeline, who: &str, call: Option<&str>) {
    timeline.relabel(who, |source| source.parent_tool_call_id = call.map(Into::into));
    timeline.change(&format!("{who} AGENT_START"), |line| {
        let EventKind::AgentStart { parent_tool_call_id, .. } = &mut line.kind else { unreachable!() };
        *parent_tool_call_id = call.map(Into::into);
    });
}

#[test]
fn law_4_blocks() {
    for line in ["TEXT_BLOCK_START", "TEXT_BLOCK_END", "THINKING_BLOCK_START", "THINKING_BLOCK_END"] {
        check(4, |t| t.drop(&format!("main {line}")));
        check(4, |t| t.double(&format!("main {line}")));
    }
    check(4, |t| t.swap("main TEXT_BLOCK_START", "main TEXT_BLOCK_DELTA"));
    check(4, |t| t.swap("main TEXT_BLOCK_DELTA \"ask\"", "main TEXT_BLOCK_END"));
    check(4, |t| t.shift("main TEXT_BLOCK_START", "main THINKING_BLOCK_END"));
    check(4, |t| t.change("main TEXT_BLOCK_DELTA", |line| set_block(&mut line.kind, "b9")));
    check(4, |t| t.change("main THINKING_BLOCK_DELTA", |line| line.kind = text_delta("b1")));
    check(4, |t| {
        ["START", "DELTA \"I\"", "DELTA \"ask\"", "END"].iter().for_each(|of| {
            t.change(&format!("main TEXT_BLOCK_{of}"), |line| set_block(&mut line.kind, "b1"))
        });
    });
    // Calls.
    for line in ["TOOL_CALL_START", "TOOL_CALL_END"] {
        check(4, |t| t.drop(&format!("main {line} tool (3)")));
        check(4, |t| t.double(&format!("main {line} tool (3)")));
    }
    check(4, |t| t.shift("main TOOL_CALL_DELTA \"{}\" (3)", "main TOOL_CALL_START tool (3)"));
    check(4, |t| t.shift("main MODEL_CALL_END", "main TOOL_CALL_END tool (4)"));
    // Results.
    check(4, |t| t.drop("main TOOL_RESULT_START tool null (3)"));
    check(4, |t| t.double("main TOOL_RESULT_START tool null (3)"));
    check(4, |t| t.drop("main TOOL_RESULT_END tool success (3)"));
    check(4, |t| t.double("main TOOL_RESULT_END tool success (3)"));
    check(4, |t| t.shift("main TOOL_RESULT_START tool null (3)", "main TOOL_CALL_END tool (3)"));
    check(4, |t| t.swap("main TOOL_RESULT_TEXT_DELTA \"ok\" (3)", "main TOOL_RESULT_END tool success (3)"));
    check(4, |t| t.0.retain(|line| !(line.name.contains("main TOOL_RESULT") && line.name.ends_with("(3)"))));
    check(4, |t| {
        let (start, end) =
            (t.at("main TOOL_RESULT_START tool null (3)"), t.at("main TOOL_RESULT_END tool success (3)"));
        let again = [t.0[start].clone(), t.0[end].clone()];
        t.0.splice(end + 1..end + 1, again);
    });
    // Model calls.
    let quiet = |line: &mut Line| line.kind = line.kind.clone().with_purpose(CallPurpose::Compaction);
    check(4, |t| t.change("main MODEL_CALL_START", quiet));
    check(4, |t| t.change("a1 MODEL_CALL_START", quiet));
    check(4, |t| t.drop("a2 MODEL_CALL_END"));
    check(4, |t| t.drop("main MODEL_CALL_START"));
    check(4, |t| t.drop("main MODEL_CALL_END"));
    check(4, |t| t.double("main MODEL_CALL_START"));
    check(4, |t| t.shift("main MODEL_CALL_END", "main TEXT_BLOCK_END"));
}

fn text_delta(block: &str) -> EventKind {
    EventKind::TextBlockDelta { block_id: block.parse().unwrap(), delta: "x".into() }
}

fn set_block(kind: &mut EventKind, block: &str) {
    use EventKind::{TextBlockDelta, TextBlockEnd, TextBlockStart};
    match kind {
        TextBlockStart { block_id } | TextBlockDelta { block_id, .. } | TextBlockEnd { block_id, .. } => {
            *block_id = block.parse().unwrap()
        }
        _ => unreachable!(),
    }
}

#[test]
fn law_5_place() {
    check(5, |t| t.relabel("b", |source| source.depth = 1));
    check(5, |t| t.relabel("b", |source| source.depth = 3));
    check(5, |t| t.relabel("b", |source| source.path = "s/b".into()));
    check(5, |t| t.relabel("b", |source| source.path = "s/a/b/b".into()));
    check(5, |t| t.relabel("b", |source| source.agent_id = "d".into()));
    check(5, |t| t.relabel("b", |source| source.parent_session_id = "sub-x".parse().unwrap()));
    check(5, |t| t.relabel("b", |source| source.parent_session_id = "s".parse().unwrap()));
    check(5, |t| t.relabel("a2", |source| source.session_id = "sub-a1".parse().unwrap()));
    check(5, |t| t.relabel("a2", |source| source.stream_id = 1));
    check(5, |t| t.relabel("a1", |source| source.stream_id = 0));
    check(5, |t| t.relabel("a1+", |source| source.agent_name = Some("A".into())));
    check(5, |t| t.relabel("a1+", |source| source.session_id = "sub-x".parse().unwrap()));
    // One event contradicts those before it.
    check(5, |t| {
        relabel_one(t, "a1 TEXT_BLOCK_DELTA", |source| source.agent_key = "agent:a:a2".parse().unwrap())
    });
    check(5, |t| relabel_one(t, "a1 AGENT_END", |source| source.turn = 2));
    check(5, |t| relabel_one(t, "c MODEL_CALL_START", |source| source.task_id = None));
    check(5, |t| relabel_one(t, "c AGENT_END", |source| source.task_id = Some("u".parse().unwrap())));
    check(5, |t| t.change("a1 TEXT_BLOCK_DELTA", |line| line.origin.source = None));
    check(5, |t| t.change("main TEXT_BLOCK_DELTA", |line| line.origin.run_id = None));
    check(5, |t| {
        let b = t.0[t.at("b AGENT_START")].origin.source.clone();
        t.change("main TEXT_BLOCK_DELTA", |line| line.origin.source = b);
    });
}

fn relabel_one(timeline: &mut Timeline, name: &str, change: impl Fn(&mut EventSource)) {
    timeline.change(name, |line| change_source(&mut line.origin, change));
}

#[test]
fn law_6_condensation() {
    check(6, |t| t.drop("main AGENT_RESULT"));
    check(6, |t| t.double("main AGENT_RESULT"));
    check(6, |t| t.drop("main TEXT_BLOCK_DELTA \"good\""));
    check(6, |t| t.double("main TEXT_BLOCK_DELTA \"good\""));
    check(6, |t| t.swap("main TEXT_BLOCK_DELTA \"good\"", "main TEXT_BLOCK_DELTA \"all\""));
    check(6, |t| t.shift("main AGENT_RESULT", "main TEXT_BLOCK_DELTA \"good\""));
    check(6, |t| {
        let result = Message::assistant("allgood").into();
        t.change("main AGENT_RESULT", |line| line.kind = EventKind::AgentResult { result });
    });
    // The model is called again before all results are there, or with something in between.
    check(6, |t| t.shift("main TOOL_RESULT_END tool success (1)", "main TOOL_RESULT_START tool null (5)"));
    check(6, |t| {
        let hint = EventKind::HintBlock {
            block_id: "h".parse().unwrap(),
            hint_source: "x".into(),
            hint: "hi".into(),
        };
        let (at, origin) = (t.at("main TOOL_RESULT_END tool success (1)"), t.0[0].origin.clone());
        t.0.insert(at, Line { name: "main HINT_BLOCK".into(), origin, kind: hint });
    });
}

/// A run that compacts ends without an answer.
#[test]
fn law_6_compaction() {
    let mut kinds = retried();
    let mut settings = mainstem_event::RunSettings::default();
    settings.compacts = true;
    let settings = Some(std::sync::Arc::new(settings));
    kinds[0] = kinds[0].clone().with_settings(settings);
    let broken = of_root(kinds.clone());
    assert_eq!(laws(&broken).map_err(|broken| broken.law), Err(6));
    kinds.retain(|kind| !matches!(kind, EventKind::AgentResult { .. }));
    let lawful = of_root(kinds);
    laws(&lawful).unwrap_or_else(|error| panic!("{error}\n{}", render(&lawful)));
}

#[test]
fn law_12_roll_up() {
    for who in ["main", "a1", "a2", "b", "a1+", "c", "more"] {
        let end = format!("{who} AGENT_END");
        check(12, |t| t.change(&end, |line| rollup(&mut line.kind).own.input_tokens += 1));
        check(12, |t| t.change(&end, |line| rollup(&mut line.kind).inclusive.input_tokens += 1));
        check(12, |t| t.change(&end, |line| rollup(&mut line.kind).inclusive.output_tokens = 0));
        let answer = format!("{who} MODEL_CALL_END");
        check(12, |t| t.change(&answer, |line| *counted(&mut line.kind) = None));
        check(12, |t| t.change(&answer, |line| *counted(&mut line.kind) = Some(Usage::new(99, 1))));
    }
    for who in ["main", "a1", "a2", "b", "a1+", "c", "more"] {
        let end = format!("{who} AGENT_END");
        for cost in [None, Some(0)] {
            check(12, |t| t.change(&end, |line| rollup(&mut line.kind).inclusive_cost = cost));
        }
        check(12, |t| t.change(&end, |line| rollup(&mut line.kind).own_cost = None));
        check(12, |t| {
            t.change(&format!("{who} MODEL_CALL_END"), |line| *counted(&mut line.kind) = None);
            t.change(&end, |line| {
                let sum = rollup(&mut line.kind);
                (sum.own, sum.inclusive.input_tokens) =
                    (Usage::default(), sum.inclusive.input_tokens - sum.own.input_tokens);
                sum.inclusive.output_tokens -= 1;
            });
        });
    }
    // A child that ends later is not in the sum; one that ends before is.
    let background = Usage::new(8, 1);
    check(12, |t| {
        t.change("main AGENT_END", |line| {
            let sum = rollup(&mut line.kind);
            sum.inclusive += background;
        });
    });
    check(12, |t| {
        let (from, end) = (t.at("c TEXT_BLOCK_DELTA \"ground\""), t.at("main AGENT_RESULT"));
        t.0[end..from + 5].rotate_left(from - end);
    });
}

fn rollup(kind: &mut EventKind) -> &mut Rollup {
    let EventKind::AgentEnd { usage, .. } = kind else { unreachable!() };
    usage
}

fn counted(kind: &mut EventKind) -> &mut Option<Usage> {
    let EventKind::ModelCallEnd { usage, .. } = kind else { unreachable!() };
    usage
}

#[test]
fn law_8_no_silent_loss() {
    let broken = |missed, per_agent: &[(&str, u64)]| {
        let mut events = script(FLEET).events();
        events.splice(5..9, [gap(6, 9, missed, per_agent)]);
        check_events(8, &events);
    };
    broken(3, &[]);
    broken(5, &[]);
    broken(0, &[]);
    broken(4, &[("root", 3)]);
    broken(4, &[("root", 3), ("agent:a:a1", 2)]);
    broken(3, &[("root", 3)]);
}

/// A lost or repeated event is detected, unless it is one of many deltas.
#[test]
fn no_event_may_be_lost_or_told_twice() {
    for at in 0..script(FLEET).0.len() {
        let mut timelines = [script(FLEET), script(FLEET)];
        let line = timelines[0].0.remove(at);
        timelines[1].0.insert(at, line.clone());
        let shows = timelines.iter().all(|timeline| laws(&timeline.events()).is_err());
        assert!(shows || line.name.contains("_DELTA") || line.name.contains("TASK_UPDATED"), "{}", line.name);
    }
}

#[test]
fn the_unbroken_timeline_is_lawful() {
    accept(&script(FLEET));
    accept(&script(""));
}

/// One child is promoted while it runs, the other starts when its parent has ended.
#[test]
fn a_child_may_outlive_a_call_that_ended_running() {
    accept(&script(
        "
        main start
        main ask
        main call 1
        main call 2
        main answer 1
        main work 1
        main work 2
        a start a by main 1
        a ask
        a text so
        session task t pending running
        a moves t
        main done 1 running
        main done 2 running
        a text far
        main ask
        main text bye
        main answer 1
        main ends
        b start b by main 2 u
        b ask
        a answer 1
        a ends
        b text late
        b answer 1
        b ends",
    ));
}

/// Ids of calls are unique within a reply only: the root's equals that of the call by which the
/// child spawned its own.
#[test]
fn the_root_may_write_to_a_grandchild() {
    accept(&script(
        "
        main start
        main ask
        main call 1
        main answer 1
        main work 1
        a start a by main 1
        a ask
        a call 2
        a answer 1
        a work 2
        b start b by a 2
        b ask
        b text one
        b answer 2
        b ends
        a done 2
        a ask
        a text two
        a answer 1
        a ends
        main done 1
        main ask
        main call 2
        main answer 1
        main work 2
        b+ start b by main 2
        b+ ask
        b+ text three
        b+ answer 4
        b+ ends
        main done 2
        main ask
        main text bye
        main answer 1
        main ends",
    ));
}

#[test]
fn a_cancelled_agent_has_no_result() {
    let cancelled = "main start
        main ask
        main text on
        main answer 0
        main ends cancelled";
    accept(&script(cancelled));
}

#[test]
fn a_child_that_code_starts_names_no_call() {
    let mut timeline = script(FLEET);
    caused_by(&mut timeline, "a2", None);
    accept(&timeline);
    caused_by(&mut timeline, "a1+", None);
    accept(&timeline);
}

/// Only a call that needed an approval may start its child out of order.
#[test]
fn a_held_call_lets_its_siblings_pass() {
    let twins = "main start
        main ask
        main call 1
        main call 2
        main answer 1
        a2 start a by main 2
        a1 start a by main 1
        a2 ends cancelled
        a1 ends cancelled
        main work 1
        main work 2
        main done 1
        main done 2
        main ends cancelled";
    let mut timeline = script(twins);
    check_events(3, &timeline.events());
    let held = vec![ToolCall::new("1", "tool", "{}")];
    let kind = EventKind::require_user_confirm("c".parse().unwrap(), held);
    let (at, origin) = (timeline.at("a2 AGENT_START"), timeline.0[0].origin.clone());
    let name = "main USER_CONFIRM_RESULT";
    let confirm_id = "c".parse().unwrap();
    let answer = EventKind::UserConfirmResult { confirm_id, confirm_results: Vec::new() };
    timeline.0.insert(at, Line { name: name.into(), origin: origin.clone(), kind: answer });
    timeline.0.insert(at, Line { name: "main REQUIRE_USER_CONFIRM".into(), origin, kind });
    accept(&timeline);
    // Nothing answers the request, or withdraws it.
    timeline.drop(name);
    check_events(2, &timeline.events());
}

/// A call of `agent_fanout` has several; the order of calls is that of their first.
#[test]
fn a_calls_further_children_may_start_late() {
    accept(&script(
        "
        main start
        main ask
        main call 1
        main call 2
        main answer 1
        main work 1
        main work 2
        a1 start a by main 1
        b start b by main 2
        a2 start a by main 1
        a1 ends cancelled
        b ends cancelled
        a2 ends cancelled
        main done 1
        main done 2
        main ends cancelled",
    ));
}

#[test]
fn what_a_gap_hides_is_not_judged() {
    let events = script(FLEET).events();
    for from in 0..events.len() {
        for to in from + 1..events.len().min(from + 20) {
            let (first, last) = (from as u64 + 1, to as u64);
            let mut seen = events.clone();
            seen.splice(from..to, [gap(first, last, last - from as u64, &[("root", last - from as u64)])]);
            assert_eq!(laws(&seen), Ok(()));
        }
    }
}

/// A reader of the second run alone does not see the session before.
#[test]
fn a_timeline_may_begin_with_the_second_run() {
    let timeline = script(&format!(
        "{FLEET}
        last start
        last ask
        last call 1
        last call 2
        last answer 1
        last work 1
        b+ start b by last 1
        b+ ends cancelled
        last done 1
        last work 2
        a1++ start a by last 2
        a1++ ends cancelled
        last done 2
        last ends cancelled"
    ));
    accept(&timeline);
    let from = timeline.at("last AGENT_START");
    assert_eq!(laws(&timeline.events()[from..]), Ok(()));
}

/// It would take minutes if a law read all events for each invocation.
#[test]
fn a_thousand_children_are_judged_at_once() {
    let calls = |verb: &str| (0..1000).map(|n| format!("main {verb} {n}\n")).collect::<String>();
    let each = |act: &str| (0..1000).map(|n| act.replace('#', &n.to_string())).collect::<String>();
    let text = [
        "main start\nmain ask\n".to_owned(),
        calls("call"),
        "main answer 1\n".to_owned(),
        calls("work"),
        each("c# start c by main #\nc# ask\n"),
        each("c# text hi\n").repeat(60),
        each("c# call 1\nc# answer 1\nc# work 1\ng# start g by c# 1\n"),
        each("g# ask\ng# text hi\n"),
        each("g# text hi\n").repeat(120),
        each("g# answer 1\ng# ends\nc# done 1\nc# ends cancelled\nmain done #\n"),
        "main ends cancelled".to_owned(),
    ];
    let events = script(&text.concat()).events();
    assert!(events.len() > 200_000);
    assert_eq!(laws(&events), Ok(()));
}

/// A root whose first attempt says a thought, a text and two calls, of which one is open at the
/// cut.
fn retried() -> Vec<EventKind> {
    use EventKind::*;
    let block = |id: &str| id.parse().unwrap();
    let call_start = |id: &str| ToolCallStart { tool_call_id: id.into(), tool_call_name: "f".into() };
    let call_end = |id: &str| ToolCallEnd {
        tool_call_id: id.into(),
        tool_call_name: "f".into(),
        opaque: Default::default(),
        discarded: false,
    };
    let end = |id: &str| TextBlockEnd { block_id: block(id), opaque: Default::default(), discarded: false };
    let failed = mainstem_message::Failure::new("transport", "cut");
    let said = Discarded::new(vec![block("1"), block("2")], vec!["a".into(), "b".into()]);
    let mut usage = Rollup::nothing();
    usage.add_own(Usage::new(1, 1), Some(0));
    (usage.own_cost, usage.inclusive_cost) = (None, None);
    vec![
        EventKind::agent_start("main", mainstem_message::Role::Assistant, vec![]),
        EventKind::model_call_start("m", 1),
        ThinkingBlockStart { block_id: block("1") },
        ThinkingBlockEnd { block_id: block("1"), opaque: Default::default(), discarded: false },
        TextBlockStart { block_id: block("2") },
        text_delta("2"),
        end("2"),
        call_start("a"),
        call_end("a"),
        call_start("b"),
        call_end("b").with_discarded(true),
        EventKind::model_retry(1, 0, failed).with_taken_back(said),
        TextBlockStart { block_id: block("3") },
        text_delta("3"),
        end("3"),
        EventKind::model_call_end(mainstem_message::StopReason::Stop, 0).with_usage(Usage::new(1, 1)),
        AgentResult { result: Message::assistant("x").with_id("r.0".parse().unwrap()).into() },
        EventKind::agent_end(mainstem_event::Outcome::Success, usage, 0),
    ]
}

fn of_root(kinds: Vec<EventKind>) -> Vec<AgentEvent> {
    let (session, run, reply) = ("s".parse().unwrap(), "run".parse().unwrap(), "r".parse().unwrap());
    let origin = std::sync::Arc::new(Origin::root(session, run, reply, &"main".into()));
    let event = |(seq, kind)| AgentEvent::new(seq, Timestamp::from_micros(1), origin.clone(), kind);
    (1..).zip(kinds).map(event).collect()
}

#[track_caller]
fn check_retried(law: u8, change: impl FnOnce(&mut Vec<EventKind>)) {
    let mut kinds = retried();
    change(&mut kinds);
    let events = of_root(kinds);
    assert_eq!(laws(&events).map_err(|broken| broken.law), Err(law), "{}", render(&events));
}

#[test]
fn law_14_taken_back() {
    let lawful = of_root(retried());
    laws(&lawful).unwrap_or_else(|error| panic!("{error}\n{}", render(&lawful)));
    let retry = |kinds: &[EventKind]| kinds.iter().position(|kind| kind.taken_back().is_some()).unwrap();
    let with = |kinds: &mut [EventKind], change: fn(&mut Discarded)| {
        let at = retry(kinds);
        if let EventKind::ModelRetry { discarded, .. } = &mut kinds[at] {
            change(discarded);
        }
    };
    // Something is left out, or taken back that was not said.
    check_retried(14, |kinds| with(kinds, |said| said.blocks.truncate(1)));
    check_retried(14, |kinds| with(kinds, |said| _ = said.tool_calls.pop()));
    check_retried(14, |kinds| with(kinds, |said| said.tool_calls.push("c".into())));
    check_retried(14, |kinds| with(kinds, |said| said.blocks.reverse()));
    check_retried(14, |kinds| with(kinds, |said| *said = Discarded::default()));
    // Nothing takes it back, or too late.
    check_retried(14, |kinds| _ = kinds.remove(retry(kinds)));
    check_retried(14, |kinds| {
        let taken_back = kinds.remove(retry(kinds));
        kinds.insert(retry(&retried()) + 1, taken_back);
    });
    // It is repeated within a block or a call.
    check_retried(14, |kinds| {
        let at = retry(kinds);
        kinds.swap(at - 1, at);
    });
    // What was taken back runs.
    check_retried(14, |kinds| {
        let at = kinds.iter().position(|kind| matches!(kind, EventKind::ModelCallEnd { .. })).unwrap();
        kinds.insert(at + 1, EventKind::tool_result_start("a", "f", serde_json::Value::Null));
    });
    // New blocks have new ids, and so have calls.
    check_retried(4, |kinds| {
        for kind in &mut kinds[retry(&retried()) + 1..] {
            if let EventKind::TextBlockStart { .. }
            | EventKind::TextBlockDelta { .. }
            | EventKind::TextBlockEnd { .. } = kind
            {
                set_block(kind, "2");
            }
        }
    });
    // The conversation does not have it.
    check_retried(6, |kinds| {
        let result = Message::assistant("xx").with_id("r.0".parse().unwrap()).into();
        let at = kinds.len() - 2;
        kinds[at] = EventKind::AgentResult { result };
    });
}
