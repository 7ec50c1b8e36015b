//! Agents that are tools: their children are like those of `agent_spawn`, declared or in code.

use mainstem::{
    declarations::Code,
    journal::MemoryJournal,
    model::scripted::Turn,
    policy::PlanMode,
    prelude::*,
    react::{NextTool, PendingCall},
    subagent::ChildStatus,
};
use mainstem_testing::{FaultyJournal, laws, render, timeline};
use serde_json::{Value, json};

use crate::{
    journal::all,
    support::{OpenNow as _, Spawns, flaky, harness, ms},
};

/// Returns an agent in code as a tool.
fn poet(turns: impl IntoIterator<Item = Turn>) -> AgentTool {
    let model = ScriptedModel::named("poet-model").agent("poet", turns);
    Agent::builder("poet", model).build().unwrap().into_tool("Writes a verse")
}

fn task(task: &str) -> Value {
    json!({ "task": task })
}

/// Returns the results of each tool call, as its state and text.
fn results(events: &[AgentEvent]) -> Vec<String> {
    let mut texts = std::collections::HashMap::<_, String>::new();
    let mut results = Vec::new();
    for event in events {
        match &event.kind {
            EventKind::ToolResultTextDelta { tool_call_id, delta } => {
                texts.entry((event.session_id().clone(), tool_call_id.clone())).or_default().push_str(delta);
            }
            EventKind::ToolResultEnd { tool_call_id, state, .. } => {
                let text = texts.remove(&(event.session_id().clone(), tool_call_id.clone()));
                results.push(format!("{}: {}", state.as_str(), text.unwrap_or_default()));
            }
            _ => {}
        }
    }
    results
}

async fn read(run: Run) -> Vec<AgentEvent> {
    let events: Vec<_> = run.collect().await;
    laws(&events).unwrap_or_else(|error| panic!("{error}\n{}", render(&events)));
    events
}

#[tokio::test(start_paused = true)]
async fn it_takes_its_time_in_the_background_and_is_sent_to() {
    let slow = json!({ "task": "roses", "label": "bard", "timeout_seconds": 1 });
    let send = json!({ "label": "bard", "message": "and violets?" });
    let model = ScriptedModel::new().agent(
        "main",
        [
            Turn::new().call("poet", slow),
            Turn::new().call("task_wait", json!({})),
            Turn::new().call("agent_send", send),
            Turn::new().text("Done."),
        ],
    );
    let poet =
        poet([Turn::new().wait(ms(2_000)).text("Roses are red."), Turn::new().text("Violets are blue.")]);
    let harness = harness(model).with_tool(poet).build().unwrap();
    let session = harness.session("s");
    insta::assert_snapshot!(timeline(session.run("go").unwrap()).await);
    let children = session.children();
    assert_eq!(children.len(), 1);
    let child = &children[0];
    assert_eq!((child.label.as_deref(), child.turns, child.status), (Some("bard"), 2, ChildStatus::Idle));
}

/// The agent of a file, hidden from `agent_spawn`, is a tool by another name.
#[tokio::test(start_paused = true)]
async fn a_declared_agent_is_a_tool_too() {
    let model = ScriptedModel::new()
        .agent("main", [Turn::new().call("research", task("Rome")), Turn::new().text("Done.")])
        .agent("researcher", [Turn::new().text("Old.")]);
    let mut spec = AgentSpec::new("researcher", "Looks things up");
    spec.hidden = true;
    let tool = AgentTool::new("researcher", "Looks a city up").with_name("research");
    let harness = harness(model).with_subagent(spec).with_tool(tool).build().unwrap();
    insta::assert_snapshot!(timeline(harness.stream_events("go")).await);
}

/// A child has such a tool if its list names it, as it has `agent_spawn`.
#[tokio::test(start_paused = true)]
async fn who_has_it() {
    let model = ScriptedModel::new()
        .agent("main", [Turn::new().spawn("heir", "x").spawn("lister", "y"), Turn::new().text("Done.")])
        .agent("heir", [Turn::new().call("poet", task("roses")), Turn::new().text("No.")])
        .agent("lister", [Turn::new().call("poet", task("roses")), Turn::new().text("Yes.")]);
    let harness = harness(model)
        .with_subagent(AgentSpec::new("heir", "Inherits"))
        .with_subagent(AgentSpec::new("lister", "Lists").with_tools(["*", "poet"]))
        .with_tool(poet([Turn::new().text("Roses are red.")]))
        .build()
        .unwrap();
    let events = read(harness.stream_events("go")).await;
    let poets = events.iter().filter(|event| event.agent_id() == "poet");
    let is_below_lister = |event: &AgentEvent| event.source().unwrap().path.ends_with("/lister/poet");
    let below: Vec<_> = poets.map(is_below_lister).collect();
    assert!(!below.is_empty() && !below.contains(&false), "{}", render(&events));
    let results = results(&events).join("\n");
    assert!(results.contains("error: unknown tool \"poet\""), "{results}");
}

/// It runs in plan mode, and so does its child.
#[tokio::test(start_paused = true)]
async fn its_child_plans_with_its_caller() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Nothing {}
    let change = tool_fn("change", "Changes", |_, Nothing {}| async { Ok::<_, ToolError>("changed") });
    let scribe = ScriptedModel::new()
        .agent("scribe", [Turn::new().call("change", json!({})), Turn::new().text("A plan, then.")]);
    let scribe = Agent::builder("scribe", scribe).with_tool(change).build().unwrap().into_tool("Writes");
    let model = ScriptedModel::new()
        .agent("main", [Turn::new().call("scribe", task("go")), Turn::new().text("Done.")]);
    let harness = harness(model).with_tool(scribe).build().unwrap();
    let session = harness.session("s");
    session.set_plan_mode(PlanMode::On);
    let results = results(&read(session.run("go").unwrap()).await);
    assert_eq!(results[0], "denied: plan mode: change changes things; finish the plan and call plan_exit");
    assert!(results[1].starts_with("success: ") && results[1].contains("A plan, then."), "{results:?}");
}

/// A later process sends to the child if its harness has the same tool: also a child of a child,
/// and beside a declared agent of the same id.
#[tokio::test]
async fn a_later_process_goes_on_with_it() {
    let journal = FaultyJournal::new(MemoryJournal::new());
    let verses = ["Roses are red.", "Violets are blue."];
    let process = |has_tools: bool| {
        let call = Turn::new().call("lead", json!({ "task": "roses", "label": "first" }));
        let send = |label: &str| Turn::new().call("agent_send", json!({ "label": label, "message": "more" }));
        let done = || Turn::new().text("Done.");
        let turns = [call, done(), send("bard"), done(), send("first"), done(), send("bard"), done()];
        let model = ScriptedModel::new().agent("main", turns);
        let builder = harness(model).with_ids(mainstem::event::RandomIds).with_journal(journal.clone());
        let builder = builder.with_subagent(AgentSpec::new("lead", "Another one"));
        let poet = poet(verses.map(|verse| Turn::new().text(verse)));
        let call = Turn::new().call("poet", json!({ "task": "roses", "label": "bard" }));
        let lead =
            ScriptedModel::new().agent("lead", [call, Turn::new().text("One."), Turn::new().text("Two.")]);
        let lead = Agent::builder("lead", lead).with_tool(poet).build().unwrap().into_tool("Leads");
        if has_tools { builder.with_tool(lead) } else { builder }.build().unwrap()
    };
    let run = async |harness: &Harness| {
        let session = harness.open_session("s").await.unwrap();
        // The laws are those of the whole session, below.
        let events: Vec<_> = session.run("go").unwrap().collect().await;
        results(&events).pop().unwrap()
    };
    for expected in ["One.", verses[1], "Two."] {
        let result = run(&process(true)).await;
        assert!(result.contains(&format!("reply:\n{expected}")), "{result}");
    }
    let result = run(&process(false)).await;
    assert!(result.contains("agent \"poet\" can't be built as it was spawned"), "{result}");
    let events = all(&journal).await;
    laws(&events).unwrap();
    let has_spec = |event: &AgentEvent| matches!(&event.kind, EventKind::AgentStart { spec: Some(_), .. });
    assert!(!events.iter().any(has_spec), "what code has built is not recorded as if it was declared");
}

/// Refuses a tool.
#[derive(Debug)]
struct Guard;

#[async_trait]
impl Middleware for Guard {
    async fn on_tool_call(
        &self,
        cx: &RunContext,
        call: PendingCall,
        next: NextTool<'_>,
    ) -> Result<ToolOutput, ToolError> {
        if &*call.name == "flaky" { Ok("guarded".into()) } else { next.run(cx, call).await }
    }
}

/// The harness's middleware is around agents in code, too, at any depth.
#[tokio::test(start_paused = true)]
async fn middleware_is_around_it() {
    let poke = || [Turn::new().call("flaky", json!({ "how": "error" })), Turn::new().text("Ok.")];
    let inner = ScriptedModel::new().agent("inner", poke());
    let inner = Agent::builder("inner", inner).with_tool(flaky()).build().unwrap().into_tool("In");
    let [first, last] = poke();
    let outer = ScriptedModel::new().agent("outer", [first.call("inner", task("go")), last]);
    let outer = Agent::builder("outer", outer).with_tool(flaky()).with_tool(inner).build().unwrap();
    let model = ScriptedModel::new()
        .agent("main", [Turn::new().call("outer", task("go")), Turn::new().text("Done.")]);
    let harness = harness(model).with_middleware(Guard).with_tool(outer.into_tool("Out")).build().unwrap();
    let events = read(harness.stream_events("go")).await;
    let guarded = results(&events).into_iter().filter(|result| result == "success: guarded").count();
    assert_eq!(guarded, 2, "{}", render(&events));
}

/// The text about a background task names the tools that the caller has.
#[tokio::test(start_paused = true)]
async fn a_caller_is_told_of_the_tools_that_it_has() {
    let check = async |tools: &[&str], expected: &str| {
        let later = json!({ "task": "roses", "timeout_seconds": 0 });
        let model = ScriptedModel::new()
            .agent("main", [Turn::new().spawn("lead", "go"), Turn::new().text("Done.")])
            .agent("lead", [Turn::new().call("poet", later), Turn::new().text("Ok.")]);
        let lead = AgentSpec::new("lead", "Leads").with_tools(tools.iter().copied());
        let poet = poet([Turn::new().text("Roses are red.")]);
        let harness = harness(model).with_subagent(lead).with_tool(poet).build().unwrap();
        let run = harness.stream_events(RunRequest::new("go").with_background(Background::Wait));
        let result = results(&read(run).await).remove(0);
        assert!(result.ends_with(&format!("or answer.{expected}")), "{result}");
    };
    check(&["poet"], "").await;
    check(&["poet", "task_wait"], " task_wait waits for it.").await;
    check(
        &["poet", "task_*"],
        " task_wait waits for it, task_output shows how it stands, task_cancel stops it.",
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn what_can_t_be_called_is_said() {
    let check = async |builder: HarnessBuilder, diagnostic: Option<&str>, result: &str| {
        let harness = builder.build().unwrap();
        let said = harness.diagnostics();
        let said: Vec<_> = said.iter().filter(|said| said.code() == Code::AgentTool).collect();
        assert_eq!(said.first().map(ToString::to_string).as_deref(), diagnostic);
        assert_eq!(results(&read(harness.stream_events("go")).await), [result]);
    };
    let with = |id: &str, arguments: Value| {
        let model = ScriptedModel::new()
            .agent("main", [Turn::new().call("ask", arguments), Turn::new().text("Done.")])
            .agent("kid", [Turn::new().text("Hi.")]);
        let mut lead = AgentSpec::new("lead", "Leads");
        lead.mode = mainstem::spec::Mode::Primary;
        let kid = AgentSpec::new("kid", "A kid");
        let tool = AgentTool::new(id, "Asks").with_name("ask");
        harness(model).with_subagent(lead).with_subagent(kid).with_tool(tool)
    };
    let unknown = "warning: tool \"ask\" can't start its agent: unknown agent_id \"kit\"; \
                   known: general-purpose, kid, lead; did you mean \"kid\"?";
    let no_agent = "error: unknown agent_id \"kit\"; known: general-purpose, kid, lead";
    check(with("kit", task("x")), Some(unknown), no_agent).await;
    // Both are in code, so the program has to change.
    let error = with("lead", task("x")).build().unwrap_err().to_string();
    assert_eq!(
        error,
        "tool \"ask\" can't start its agent: agent \"lead\" can't be spawned: its mode is primary"
    );
    let missing = "error: the arguments of ask don't fit:\n- arguments: \"task\" is missing";
    check(with("kid", json!({})), None, missing).await;
    let none = "error: unknown tool \"ask\"; known: flaky, lookup";
    check(with("kid", task("x")).with_max_depth(0), None, none).await;
}

/// An agent without a fleet waits for its children, and says so.
#[tokio::test(start_paused = true)]
async fn without_a_fleet_a_call_waits() {
    let call = Turn::new().call("poet", json!({ "task": "roses", "timeout_seconds": 0 }));
    let model = ScriptedModel::new().agent("main", [call, Turn::new().text("Done.")]);
    let poet = poet([Turn::new().wait(ms(60_000)).text("Roses are red.")]);
    let main = Agent::builder("main", model).with_tool(poet).build().unwrap();
    let events: Vec<_> = main.stream_events("go").collect().await;
    laws(&events).unwrap();
    let result = results(&events).remove(0);
    assert!(
        result.contains("\nnote: label and timeout_seconds have no effect here\nstatus: completed"),
        "{result}"
    );
}

/// What is in the background when the run ends is told to the next one.
#[tokio::test(start_paused = true)]
async fn its_end_is_delivered() {
    let later = json!({ "task": "roses", "timeout_seconds": 0 });
    let model = ScriptedModel::new().agent(
        "main",
        [Turn::new().call("poet", later), Turn::new().text("It comes."), Turn::new().text("Here.")],
    );
    let poet = poet([Turn::new().wait(ms(10)).text("Roses are red.")]);
    let harness = harness(model).with_tool(poet).build().unwrap();
    let session = harness.session("s");
    let mut all = session.subscribe_from(1);
    let first: Vec<_> = session.run("go").unwrap().collect().await;
    assert!(results(&first)[0].starts_with("running: "), "{}", render(&first));
    tokio::time::sleep(ms(100)).await;
    let second: Vec<_> = session.run("and?").unwrap().collect().await;
    let mut events = Vec::new();
    while events.last() != second.last() {
        events.push(all.next().await.unwrap());
    }
    laws(&events).unwrap();
    let hint = second.iter().find_map(|event| match &event.kind {
        EventKind::HintBlock { hint, .. } => Some(hint.clone()),
        _ => None,
    });
    assert!(hint.is_some_and(|hint| hint.contains("result summary: Roses are red.")), "{}", render(&second));
}
