//! The budgets of agents: tokens, money, spawns, time; budgets within budgets.

use mainstem::{
    message::{Failure, Usage},
    model::{Fallback, ModelOptions, scripted::Turn},
    policy::{Budget, Cost, Price, Prices},
    prelude::*,
};
use mainstem_testing::{laws, render};
use serde_json::json;

use crate::support::{OpenNow, Spawns, ms};

const MOST: u32 = 100;

fn tokens(tokens: u64) -> Budget {
    Budget::default().with_tokens(tokens)
}

/// Returns a harness whose model calls are estimated at little more than a hundred tokens each, for
/// agents without tools.
fn fleet(model: impl Model) -> HarnessBuilder {
    let mut options = ModelOptions::new();
    options.max_output_tokens = Some(MOST);
    Harness::builder("main", model)
        .with_clock(mainstem_testing::FakeClock::default())
        .with_ids(mainstem_testing::CountedIds::default())
        .with_model_options(options)
}

/// Returns an agent that has its instructions and one tool.
fn small(id: &str) -> AgentSpec {
    AgentSpec::new(id, "Small")
}

async fn read(run: Run) -> Vec<AgentEvent> {
    let events: Vec<_> = run.collect().await;
    laws(&events).unwrap_or_else(|error| panic!("{error}\n{}", render(&events)));
    events
}

/// Returns how each invocation ended, in the order of their ends: agent, outcome, error.
fn ends(events: &[AgentEvent]) -> Vec<String> {
    let end = |event: &AgentEvent| match &event.kind {
        EventKind::AgentEnd { outcome, error, .. } => {
            let error = error.as_ref().map(Failure::to_string).unwrap_or_default();
            Some(format!("{} {} {error}", event.agent_label(), outcome.as_str()).trim_end().to_owned())
        }
        _ => None,
    };
    events.iter().filter_map(end).collect()
}

fn calls(events: &[AgentEvent]) -> usize {
    events.iter().filter(|event| matches!(event.kind, EventKind::ModelCallStart { .. })).count()
}

/// Returns the results of tools, joined.
fn results(events: &[AgentEvent]) -> String {
    let text = |event: &AgentEvent| match &event.kind {
        EventKind::ToolResultTextDelta { delta, .. } => Some(delta.clone()),
        _ => None,
    };
    events.iter().filter_map(text).collect::<Vec<_>>().join("\n")
}

#[tokio::test(start_paused = true)]
async fn a_call_that_does_not_fit_is_refused_before_it_is_made() {
    for (limits, refusal) in [
        (tokens(99), Some("the token budget of the run has 99 of 99 left")),
        (tokens(2_000), None),
        (Budget::default().with_cost(Cost::from_dollars(1)), Some("the model's price is unknown")),
    ] {
        let model = ScriptedModel::new().agent("main", [Turn::new().text("Hi")]);
        let run = fleet(model).with_max_depth(0).build().unwrap();
        let events = read(run.stream_events(RunRequest::new("go").with_budget(limits))).await;
        let end = ends(&events).pop().unwrap();
        match refusal {
            Some(refusal) => assert!(end.contains("main error") && end.contains(refusal), "{end}"),
            None => assert_eq!(end, "main success"),
        }
        assert_eq!(calls(&events), usize::from(refusal.is_none()), "{end}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_spec_says_holds_for_the_root_too() {
    let model = ScriptedModel::new().agent("main", [Turn::new().text("Hi")]);
    let run = fleet(model).with_subagent(small("main").with_max_tokens_total(5)).build().unwrap();
    let options = RunOptions::new().with_budget(tokens(1_000_000));
    let end =
        ends(&read(run.stream_events(RunRequest::new("go").with_options(options))).await).pop().unwrap();
    assert!(end.contains("the token budget of the run has 5 of 5 left"), "{end}");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_an_error_of_its_own_kind() {
    let model = ScriptedModel::new().agent("main", [Turn::new().text("Hi")]);
    let mut run = fleet(model).with_budget(tokens(5)).build().unwrap().stream_events("go");
    while run.next().await.is_some() {}
    let error = run.outcome().unwrap().error.clone().unwrap();
    let failure = Failure::from(&error);
    assert_eq!(failure.code, "budget");
    assert!(failure.message.contains("the token budget of the session has 5 of 5 left"), "{failure}");
}

#[tokio::test(start_paused = true)]
async fn what_is_counted_corrects_the_estimate() {
    // Each turn is estimated at 100 and a few; the actual usage is 10, or 90.
    for (used, turns) in [(10, 6), (90, 2)] {
        let turn = |n: u64| Turn::new().usage(Usage::new(0, used)).text(n.to_string());
        let model = ScriptedModel::new().agent("main", (0..6).map(turn));
        let session = fleet(model).with_max_depth(0).with_budget(tokens(250)).build().unwrap().session("s");
        let mut answered = 0;
        for _ in 0..6 {
            let events = read(session.run("go").unwrap()).await;
            answered += usize::from(ends(&events) == ["main success"]);
        }
        assert_eq!(answered, turns, "of {used} each");
    }
}

#[tokio::test(start_paused = true)]
async fn where_nothing_is_counted_the_estimate_stays() {
    // Two fit; the first breaks off, so its cost is unknown.
    let model = ScriptedModel::new().agent("main", [Turn::new().text("H").cut(), Turn::new().text("Hi")]);
    let session = fleet(model).with_max_depth(0).with_budget(tokens(190)).build().unwrap().session("s");
    read(session.run("go").unwrap()).await;
    let second = ends(&read(session.run("go").unwrap()).await);
    assert!(second[0].contains("the token budget of the session has"), "{second:?}");

    // A request that the provider refuses costs nothing.
    let refused = Turn::new().rate_limited(3).text("Hi");
    let model = ScriptedModel::new().agent("main", [refused]);
    let session = fleet(model).with_max_depth(0).with_budget(tokens(190)).build().unwrap().session("s");
    for _ in 0..3 {
        assert!(ends(&read(session.run("go").unwrap()).await)[0].contains("main error"));
    }
    assert_eq!(ends(&read(session.run("go").unwrap()).await), ["main success"]);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_call_gives_back_what_was_set_aside() {
    let model = ScriptedModel::new().agent("main", [Turn::new().text("H").hang(), Turn::new().text("Hi")]);
    let session = fleet(model).with_max_depth(0).with_budget(tokens(110)).build().unwrap().session("s");
    let mut run = session.run("go").unwrap();
    while !matches!(run.next().await.unwrap().kind, EventKind::TextBlockDelta { .. }) {}
    drop(run);
    assert_eq!(ends(&read(session.run("go").unwrap()).await), ["main success"]);
}

#[tokio::test(start_paused = true)]
async fn a_child_has_a_budget_within_its_parents() {
    let model = ScriptedModel::new()
        .agent("main", [Turn::new().spawn("lead", "go"), Turn::new().text("Done.")])
        .agent(
            "lead",
            [Turn::new().usage(Usage::new(3_900, 50)).spawn("kid", "go"), Turn::new().text("Never.")],
        )
        .agent("kid", [Turn::new().text("Never.")]);
    // The lead's call has used most of it; its child has no budget of its own, and its parent's is
    // used up.
    let lead = small("lead").with_tools(["agent_spawn"]).with_max_tokens_total(4_000);
    let run = fleet(model).with_subagent(lead).with_subagent(small("kid")).build().unwrap();
    let events = read(run.stream_events("go")).await;
    let ends = ends(&events);
    assert!(ends[0].starts_with("kid error") && ends[0].contains("the token budget of lead has"), "{ends:?}");
    assert!(
        ends[1].starts_with("lead error") && ends[1].contains("the token budget of lead has"),
        "{ends:?}"
    );
    assert_eq!(ends[2], "main success", "the parent goes on");
    let results = results(&events);
    assert_eq!(results.matches("status: error\nerror: ").count(), 2, "{results}");
}

#[tokio::test(start_paused = true)]
async fn a_childs_budget_is_for_all_its_turns() {
    let send = |message: &str| {
        Turn::new().call("agent_send", json!({ "agent_key": "agent:kid:1", "message": message }))
    };
    let model = ScriptedModel::new()
        .agent(
            "main",
            [Turn::new().spawn("kid", "go"), send("more"), send("more"), Turn::new().text("Done.")],
        )
        .agent("kid", (0..3).map(|_| Turn::new().usage(Usage::new(0, 150)).text("Hi")));
    let kid = small("kid").with_max_tokens_total(400);
    let events = read(fleet(model).with_subagent(kid).build().unwrap().stream_events("go")).await;
    let ends = ends(&events);
    assert_eq!(ends[..2], ["kid success", "kid success"]);
    assert!(ends[2].contains("the token budget of kid has 100 of 100 left"), "{ends:?}");
}

#[tokio::test(start_paused = true)]
async fn twins_share_a_budget() {
    // Both call at once: the second can't have what the first has reserved.
    let free = || Turn::new().usage(Usage::default());
    let model = ScriptedModel::new()
        .agent("main", [free().spawn("kid", "left").spawn("kid", "right"), free().text("Done.")])
        .agent("kid", [free().wait(ms(10)).text("Hi")]);
    let mut options = ModelOptions::new();
    options.max_output_tokens = Some(10_000);
    let run = fleet(model).with_model_options(options).with_subagent(small("kid")).build().unwrap();
    let options = RunOptions::new().with_budget(tokens(19_000));
    let ends = ends(&read(run.stream_events(RunRequest::new("go").with_options(options))).await);
    assert!(ends[0].starts_with("kid error") && ends[0].contains("of 19000 left"), "{ends:?}");
    assert_eq!(ends[1..], ["kid success", "main success"]);
}

#[tokio::test(start_paused = true)]
async fn spawns_are_counted_before_anything_is_created() {
    let three = (0..3).fold(Turn::new(), |turn, n| turn.spawn("kid", &n.to_string()));
    let model = ScriptedModel::new()
        .agent("main", [three, Turn::new().spawn("kid", "again"), Turn::new().text("Done.")])
        .agent("kid", [Turn::new().text("Hi")]);
    let run = fleet(model)
        .with_subagent(small("kid"))
        .with_budget(Budget::default().with_spawns(2))
        .build()
        .unwrap();
    let events = read(run.stream_events("go")).await;
    insta::assert_snapshot!(render(&events), @r#"
    0 main AGENT_START main "go"
    0 main MODEL_CALL_START scripted #1
    0 main TOOL_CALL_START agent_spawn (call-1)
    0 main TOOL_CALL_DELTA "{\"agent_id\":\"kid\",\"task\":\"0\"}" (call-1)
    0 main TOOL_CALL_END agent_spawn (call-1)
    0 main TOOL_CALL_START agent_spawn (call-2)
    0 main TOOL_CALL_DELTA "{\"agent_id\":\"kid\",\"task\":\"1\"}" (call-2)
    0 main TOOL_CALL_END agent_spawn (call-2)
    0 main TOOL_CALL_START agent_spawn (call-3)
    0 main TOOL_CALL_DELTA "{\"agent_id\":\"kid\",\"task\":\"2\"}" (call-3)
    0 main TOOL_CALL_END agent_spawn (call-3)
    0 main MODEL_CALL_END tool_calls
    0 main TOOL_RESULT_START agent_spawn {"agent_id":"kid","task":"0"} (call-1)
    0   kid#1 AGENT_START kid "0"
    0   kid#1 MODEL_CALL_START scripted #1
    0   kid#1 TEXT_BLOCK_START
    0   kid#1 TEXT_BLOCK_DELTA "Hi"
    0   kid#1 TEXT_BLOCK_END
    0   kid#1 MODEL_CALL_END stop
    0   kid#1 AGENT_RESULT "Hi"
    0   kid#1 AGENT_END success 2/2 tok
    0 main TOOL_RESULT_TEXT_DELTA "agent_key: agent:kid:1\nagent_id: kid\nsession_id: sub-1\nstatus: completed\nreply:\n"… (call-1)
    0 main TOOL_RESULT_END agent_spawn success (call-1)
    0 main TOOL_RESULT_START agent_spawn {"agent_id":"kid","task":"1"} (call-2)
    0   kid#2 AGENT_START kid "1"
    0   kid#2 MODEL_CALL_START scripted #1
    0   kid#2 TEXT_BLOCK_START
    0   kid#2 TEXT_BLOCK_DELTA "Hi"
    0   kid#2 TEXT_BLOCK_END
    0   kid#2 MODEL_CALL_END stop
    0   kid#2 AGENT_RESULT "Hi"
    0   kid#2 AGENT_END success 2/2 tok
    0 main TOOL_RESULT_TEXT_DELTA "agent_key: agent:kid:2\nagent_id: kid\nsession_id: sub-2\nstatus: completed\nreply:\n"… (call-2)
    0 main TOOL_RESULT_END agent_spawn success (call-2)
    0 main TOOL_RESULT_START agent_spawn {"agent_id":"kid","task":"2"} (call-3)
    0 main TOOL_RESULT_TEXT_DELTA "the spawn budget of the session has 0 of 2 left, 1 asked for" (call-3)
    0 main TOOL_RESULT_END agent_spawn error (call-3)
    0 main MODEL_CALL_START scripted #2
    0 main TOOL_CALL_START agent_spawn (call-4)
    0 main TOOL_CALL_DELTA "{\"agent_id\":\"kid\",\"task\":\"again\"}" (call-4)
    0 main TOOL_CALL_END agent_spawn (call-4)
    0 main MODEL_CALL_END tool_calls
    0 main TOOL_RESULT_START agent_spawn {"agent_id":"kid","task":"again"} (call-4)
    0 main TOOL_RESULT_TEXT_DELTA "the spawn budget of the session has 0 of 2 left, 1 asked for" (call-4)
    0 main TOOL_RESULT_END agent_spawn error (call-4)
    0 main MODEL_CALL_START scripted #3
    0 main TEXT_BLOCK_START
    0 main TEXT_BLOCK_DELTA "Done."
    0 main TEXT_BLOCK_END
    0 main MODEL_CALL_END stop
    0 main AGENT_RESULT "Done."
    0 main AGENT_END success 36/40 tok
    "#);
    assert_eq!(ends(&events), ["kid success", "kid success", "main success"]);
    let results = results(&events);
    let refusal = "the spawn budget of the session has 0 of 2 left, 1 asked for";
    assert_eq!(results.matches(refusal).count(), 2, "{results}");
}

#[tokio::test(start_paused = true)]
async fn a_spawn_that_comes_to_nothing_is_not_counted() {
    let label = |label: &str| json!({ "agent_id": "kid", "task": "go", "label": label });
    let model = ScriptedModel::new()
        .agent(
            "main",
            [
                Turn::new().call("agent_spawn", label("one")),
                Turn::new().call("agent_spawn", label("one")).spawn("unknown", "go"),
                Turn::new().call("agent_spawn", label("two")),
                Turn::new().text("Done."),
            ],
        )
        .agent("kid", [Turn::new().text("Hi")]);
    let run = fleet(model)
        .with_subagent(small("kid"))
        .with_budget(Budget::default().with_spawns(2))
        .build()
        .unwrap();
    let events = read(run.stream_events("go")).await;
    assert_eq!(ends(&events), ["kid success", "kid success", "main success"], "{}", results(&events));
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_out_of_time_is_stopped() {
    let model = ScriptedModel::new()
        .agent("main", [Turn::new().spawn("kid", "go"), Turn::new().text("Done.")])
        .agent("kid", [Turn::new().text("H").hang()]);
    let run = fleet(model).with_subagent(small("kid")).build().unwrap();
    let options = RunOptions::new().with_budget(Budget::default().with_time_seconds(3));
    let events = read(run.stream_events(RunRequest::new("go").with_options(options))).await;
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
       0   kid#1 TEXT_BLOCK_START
       0   kid#1 TEXT_BLOCK_DELTA "H"
    3000   kid#1 TEXT_BLOCK_END
    3000   kid#1 MODEL_CALL_END cancelled
    3000   kid#1 AGENT_END cancelled 0/0 tok (parent_stopped: cancelled with agent `main`: the time budget of the run is used up: it had 3 s)
    3000 main TOOL_RESULT_TEXT_DELTA "agent_key: agent:kid:1\nagent_id: kid\nsession_id: sub-1\nstatus: cancelled\nerror: "… (call-1)
    3000 main TOOL_RESULT_END agent_spawn error (call-1)
    3000 main AGENT_END timeout 9/9 tok (timeout: the time budget of the run is used up: it had 3 s)
    "#);
    assert!(ends(&events).last().unwrap().starts_with("main timeout"), "{:?}", ends(&events));
    assert_eq!(events.last().unwrap().at.millis_since(events[0].at), 3_000);
}

#[tokio::test(start_paused = true)]
async fn a_sessions_time_runs_on_from_run_to_run_and_only_while_they_are_polled() {
    let turn = || Turn::new().text("a").wait(ms(2_000)).text("b");
    let model = ScriptedModel::new().agent("main", (0..3).map(|_| turn()));
    let harness =
        fleet(model).with_max_depth(0).with_budget(Budget::default().with_time_seconds(4)).build().unwrap();
    let session = harness.session("s");
    assert_eq!(ends(&read(session.run("go").unwrap()).await), ["main success"]);

    let mut run = session.run("go").unwrap();
    while !matches!(run.next().await.unwrap().kind, EventKind::TextBlockDelta { .. }) {}
    tokio::time::advance(ms(600_000)).await;
    let rest: Vec<_> = run.collect().await;
    assert_eq!(ends(&rest), ["main success"], "the run was not polled");

    let last = ends(&read(session.run("go").unwrap()).await);
    assert!(last[0].starts_with("main timeout"), "{last:?}");
}

/// Returns the output of the tool `left` of each agent in a run with these options: the
/// milliseconds that its call has.
async fn time_left(options: RunOptions, spawn: serde_json::Value) -> Vec<String> {
    let left =
        tool_fn("left", "How much time is left", |cx: ToolContext, _: serde_json::Map<_, _>| async move {
            let left = cx.deadline().map(|deadline| deadline.millis_since(cx.now()));
            Ok::<_, ToolError>(format!("{} {left:?}", cx.agent()))
        });
    let asks = || Turn::new().wait(ms(500)).call("left", json!({}));
    let model = ScriptedModel::new()
        .agent(
            "main",
            [asks(), Turn::new().call("agent_spawn", spawn), Turn::new().wait(ms(1_500)).text("Done.")],
        )
        .agent("kid", [asks(), Turn::new().text("Done.")]);
    let run = fleet(model).with_tool(left).with_subagent(AgentSpec::new("kid", "Looks")).build().unwrap();
    let events = read(run.stream_events(RunRequest::new("go").with_options(options))).await;
    let said = |event: &AgentEvent| match &event.kind {
        EventKind::ToolResultTextDelta { delta, .. } if delta.contains("Some") || delta.contains("None") => {
            Some(delta.clone())
        }
        _ => None,
    };
    events.iter().filter_map(said).collect()
}

#[tokio::test(start_paused = true)]
async fn tools_see_how_much_time_their_call_has() {
    let spawn = |seconds: u64| json!({ "agent_id": "kid", "task": "go", "timeout_seconds": seconds });
    let budget = || RunOptions::new().with_budget(Budget::default().with_time_seconds(3));
    assert_eq!(time_left(RunOptions::new(), spawn(1)).await, ["main None", "kid None"]);
    assert_eq!(time_left(budget(), spawn(1)).await, ["main Some(2500)", "kid Some(2000)"]);
    assert_eq!(
        time_left(budget(), spawn(0)).await,
        ["main Some(2500)", "kid None"],
        "a task outlives the run"
    );
    let sync = || RunOptions::new().with_force_sync(true);
    assert_eq!(time_left(sync(), spawn(1)).await, ["main None", "kid Some(500)"]);
    let both = sync().with_budget(Budget::default().with_time_seconds(3));
    assert_eq!(time_left(both, spawn(9)).await, ["main Some(2500)", "kid Some(2000)"], "the earlier one");
}

/// Returns the cost of each agent, its own and with those below it, in the order of their ends.
fn costs(events: &[AgentEvent]) -> Vec<(String, Option<u64>, Option<u64>)> {
    let cost = |event: &AgentEvent| match &event.kind {
        EventKind::AgentEnd { usage, .. } => {
            Some((event.agent_label().to_owned(), usage.own_cost, usage.inclusive_cost))
        }
        _ => None,
    };
    events.iter().filter_map(cost).collect()
}

/// Returns prices of a dollar for a million tokens of input, and ten for output: a micro-dollar a
/// token, and ten.
fn prices() -> Prices {
    Prices::default().with_price("known", Price::new(Cost::from_dollars(1), Cost::from_dollars(10)))
}

#[tokio::test(start_paused = true)]
async fn costs_add_up_and_what_is_unknown_stays_so() {
    let turn = |input, output| Turn::new().usage(Usage::new(input, output));
    let model = || {
        ScriptedModel::named("known")
            .agent("main", [turn(1, 0).spawn("lead", "go"), turn(0, 1).text("Done.")])
            .agent("lead", [turn(100, 0).spawn("kid", "go"), turn(0, 10).text("Lead.")])
    };
    let other = ScriptedModel::named("other").agent("kid", [turn(1_000, 0).text("Hi")]);
    let same = model().agent("kid", [turn(1_000, 100).text("Hi")]);
    let cut = model().agent("kid", [turn(1_000, 100).text("Hi").cut()]);
    let lead = || AgentSpec::new("lead", "L").with_tools(["agent_spawn"]);

    let run =
        fleet(same).with_prices(prices()).with_subagent(lead()).with_subagent(small("kid")).build().unwrap();
    let expected = [("kid", 2_000, 2_000), ("lead", 200, 2_200), ("main", 11, 2_211)]
        .map(|(who, own, all)| (who.to_owned(), Some(own), Some(all)));
    assert_eq!(costs(&read(run.stream_events("go")).await), expected);

    let registry = ModelRegistry::new().with_model("other", other);
    let unknown = [("kid", None, None), ("lead", Some(200), None), ("main", Some(11), None)];
    let unknown = unknown.map(|(who, own, all)| (who.to_owned(), own, all));
    for (model, kid) in [(model(), small("kid").with_model("other")), (cut, small("kid"))] {
        let harness =
            fleet(model).with_prices(prices()).with_registry(registry.clone()).with_subagent(lead());
        let run = harness.with_subagent(kid).build().unwrap();
        assert_eq!(costs(&read(run.stream_events("go")).await), unknown);
    }
}

/// Each attempt at the price of its model; the budget counts the same.
#[tokio::test(start_paused = true)]
async fn an_answer_of_a_fallback_has_the_price_of_its_model() {
    let used = |turn: Turn| turn.usage(Usage::new(100, 10));
    let cut = || ScriptedModel::named("known").agent("main", [used(Turn::new().text("H")).cut()]);
    let spare = || ScriptedModel::named("spare").agent("main", [used(Turn::new().text("Hi"))]);
    let prices = prices().with_price("spare", Price::new(Cost::from_dollars(0), Cost::from_dollars(1)));
    let model = Fallback::new(cut(), spare());
    let budget = Budget::default().with_cost(Cost::from_dollars(1));
    let harness = fleet(model).with_prices(prices).with_max_depth(0).with_budget(budget).build().unwrap();
    let events = read(harness.stream_events("go")).await;
    let own: Vec<_> = costs(&events).into_iter().map(|(_, own, _)| own).collect();
    // The first attempt was cut before it reported what it used.
    assert_eq!(own, [Some(10)], "{}", render(&events));
}

#[tokio::test(start_paused = true)]
async fn a_dropped_call_makes_the_cost_unknown() {
    let model = ScriptedModel::named("known").agent("main", [Turn::new().text("H").hang()]);
    let session = fleet(model).with_prices(prices()).with_max_depth(0).build().unwrap().session("s");
    let mut run = session.run("go").unwrap();
    let mut events = Vec::new();
    while events.len() < 4 {
        events.push(run.next().await.unwrap());
    }
    assert!(matches!(events[3].kind, EventKind::TextBlockDelta { .. }));
    drop(run);
    let mut rest = session.subscribe_from(events.last().unwrap().seq + 1);
    events.extend(std::iter::from_fn(|| rest.try_next()));
    laws(&events).unwrap();
    assert_eq!(costs(&events), [("main".to_owned(), None, None)]);
}

#[tokio::test(start_paused = true)]
async fn a_budget_of_money_holds() {
    // Each call is estimated at little more than a hundred tokens of output, a thousand
    // micro-dollars; it uses half of that.
    let turn = || Turn::new().usage(Usage::new(0, 50)).text("Hi");
    let model = ScriptedModel::named("known").agent("main", (0..4).map(|_| turn()));
    let budget = Budget::default().with_cost(Cost::from_micros(2_100));
    let harness = fleet(model).with_prices(prices()).with_max_depth(0).with_budget(budget).build().unwrap();
    let session = harness.session("s");
    for _ in 0..3 {
        assert_eq!(ends(&read(session.run("go").unwrap()).await), ["main success"]);
    }
    let last = ends(&read(session.run("go").unwrap()).await);
    assert!(last[0].contains("the cost budget of the session has $0.0006 of $0.0021 left"), "{last:?}");
}

/// Returns a fleet in which silence lasts three seconds at most.
fn impatient(model: ScriptedModel) -> Harness {
    let lead = AgentSpec::new("lead", "L").with_tools(["agent_spawn", "task_wait"]);
    fleet(model).with_subagent(lead).with_subagent(small("kid")).with_idle_timeout(ms(3_000)).build().unwrap()
}

fn took(events: &[AgentEvent]) -> u64 {
    events.last().unwrap().at.millis_since(events[0].at)
}

const SILENT: &str = "timed out: no event for 3 s";

#[tokio::test(start_paused = true)]
async fn a_silent_child_is_ended() {
    let model = ScriptedModel::new()
        .agent("main", [Turn::new().spawn("kid", "go"), Turn::new().text("Done.")])
        .agent("kid", [Turn::new().wait(ms(2_000)).text("a").wait(ms(2_000)).text("b").hang()]);
    let events = read(impatient(model).stream_events("go")).await;
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
    2000   kid#1 TEXT_BLOCK_START
    2000   kid#1 TEXT_BLOCK_DELTA "ab" ×2
    7000   kid#1 TEXT_BLOCK_END
    7000   kid#1 MODEL_CALL_END cancelled
    7000   kid#1 AGENT_END timeout 0/0 tok (timeout: timed out: no event for 3 s)
    7000 main TOOL_RESULT_TEXT_DELTA "agent_key: agent:kid:1\nagent_id: kid\nsession_id: sub-1\nstatus: timeout\nerror: ti"… (call-1)
    7000 main TOOL_RESULT_END agent_spawn error (call-1)
    7000 main MODEL_CALL_START scripted #2
    7000 main TEXT_BLOCK_START
    7000 main TEXT_BLOCK_DELTA "Done."
    7000 main TEXT_BLOCK_END
    7000 main MODEL_CALL_END stop
    7000 main AGENT_RESULT "Done."
    7000 main AGENT_END success 12/12 tok
    "#);
    assert_eq!(ends(&events), [&*format!("kid timeout timeout: {SILENT}"), "main success"]);
    let results = results(&events);
    assert!(results.contains(&format!("status: timeout\nerror: timeout: {SILENT}")), "{results}");
    assert!((7_000..7_200).contains(&took(&events)), "{} ms: only silence counts", took(&events));
}

#[tokio::test(start_paused = true)]
async fn a_silent_child_is_ended_in_the_background_too() {
    let task = json!({ "agent_id": "kid", "task": "go", "timeout_seconds": 0 });
    let model = ScriptedModel::new()
        .agent(
            "main",
            [
                Turn::new().call("agent_spawn", task),
                Turn::new().call("task_wait", json!({})),
                Turn::new().text("Done."),
            ],
        )
        .agent("kid", [Turn::new().text("a").hang()]);
    let events = read(impatient(model).stream_events("go")).await;
    assert!(ends(&events)[0].starts_with("kid timeout"), "{:?}", ends(&events));
    assert!(results(&events).contains(SILENT), "{}", results(&events));
}

#[tokio::test(start_paused = true)]
async fn waiting_for_others_is_no_silence() {
    let patient = json!({ "agent_id": "kid", "task": "go", "timeout_seconds": 600 });
    let working = (0..10).fold(Turn::new(), |turn, n| turn.wait(ms(1_000)).text(n.to_string()));
    let model = ScriptedModel::new()
        .agent("main", [Turn::new().spawn("lead", "go"), Turn::new().text("Done.")])
        .agent("lead", [Turn::new().call("agent_spawn", patient), Turn::new().text("Lead.")])
        .agent("kid", [working]);
    let events = read(impatient(model).stream_events("go")).await;
    assert_eq!(ends(&events), ["kid success", "lead success", "main success"]);
    assert_eq!(took(&events), 10_000);
}

#[tokio::test(start_paused = true)]
async fn silence_is_not_counted_while_nobody_polls_and_may_last_for_ever() {
    let model = || {
        ScriptedModel::new()
            .agent("main", [Turn::new().spawn("kid", "go"), Turn::new().text("Done.")])
            .agent("kid", [Turn::new().text("a").wait(ms(20_000)).text("b")])
    };
    let mut run = impatient(model()).stream_events("go");
    let mut events = Vec::new();
    while !matches!(
        events.last().map(|event: &AgentEvent| &event.kind),
        Some(EventKind::TextBlockDelta { .. })
    ) {
        events.push(run.next().await.unwrap());
    }
    tokio::time::advance(ms(20_000)).await;
    events.extend(run.collect::<Vec<_>>().await);
    assert_eq!(ends(&events), ["kid success", "main success"]);

    let run = fleet(model())
        .with_subagent(small("kid"))
        .with_idle_timeout(std::time::Duration::MAX)
        .build()
        .unwrap();
    assert_eq!(ends(&read(run.stream_events("go")).await), ["kid success", "main success"]);
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_is_a_tool_is_held_to_its_callers_budget() {
    let free = || Turn::new().usage(Usage::default());
    let twins = || free().call("kid", json!({ "task": "left" })).call("kid", json!({ "task": "right" }));
    let model = ScriptedModel::new()
        .agent("main", [twins(), free().text("Done.")])
        .agent("kid", [Turn::new().usage(Usage::new(0, 100)).wait(ms(10)).text("Hi")]);
    let check = async |limits: Budget, has_middleware: bool, most: u32, expected: &[&str], said: &str| {
        let mut options = ModelOptions::new();
        options.max_output_tokens = Some(most);
        let mut kid = Agent::builder("kid", model.clone()).with_options(options);
        if has_middleware {
            kid = kid.with_middleware(mainstem::subagent::Subagents::only([]));
        }
        let kid = kid.build().unwrap().into_tool("A kid");
        let harness =
            fleet(model.clone()).with_max_depth(1).with_tool(kid).with_budget(limits).build().unwrap();
        let events = read(harness.stream_events("go")).await;
        let ends: Vec<_> = ends(&events);
        let outcomes: Vec<_> = ends.iter().filter_map(|end| end.split(' ').nth(1)).collect();
        assert_eq!(outcomes, expected, "{ends:?}");
        assert!(results(&events).contains(said), "{}", results(&events));
    };
    // Each kid is estimated at a little more than its maximum, from every source, and only once.
    let both = ["success", "success", "success"];
    check(tokens(6_000), false, 2_000, &both, "").await;
    check(tokens(6_000), true, 2_000, &both, "").await;
    check(tokens(6_000), false, 4_000, &["error", "success", "success"], "budget: the token budget of").await;
    check(tokens(6_000), true, 6_000, &["error", "error", "success"], "budget: the token budget of").await;
    let one = Budget::default().with_spawns(1);
    check(one, false, 1, &["success", "success"], "the spawn budget of the session has 0 of 1 left").await;
}
