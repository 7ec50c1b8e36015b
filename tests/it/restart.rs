//! What a run gives its fleet stays in force after a restart: mode, user, attributes, budgets,
//! declarations, labels.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use mainstem::{
    event::SendMode,
    journal::MemoryJournal,
    message::Usage,
    model::{ModelOptions, ModelRequest, ModelStream, scripted::Turn},
    policy::{Budget, Cost, PlanMode, Price, Prices},
    prelude::*,
};
use mainstem_testing::{FaultyJournal, laws, render};
use serde_json::json;

use crate::{
    journal::all,
    resume::killed_after,
    support::{Overheard, Spawns, Told, harness, ms},
};

/// How many events a test adds so that the next process reads a checkpoint.
const LONG: usize = 5_000;

/// Returns a process on a journal: agents `kid` (with its prompt) and `keeper`, and a tool that
/// returns its user.
fn process(journal: &FaultyJournal, model: impl Model, prompt: &str) -> HarnessBuilder {
    harness(model)
        .with_ids(mainstem::event::RandomIds)
        .with_journal(journal.clone())
        .with_tool(whose())
        .with_subagent(AgentSpec::new("kid", "Does things").with_prompt(prompt))
        .with_subagent(AgentSpec::new("keeper", "Goes on").with_persist_session(true))
}

fn whose() -> impl Tool {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Nothing {}
    tool_fn("whose", "Say for whom", |cx: ToolContext, Nothing {}| async move {
        let attributes = serde_json::to_string(cx.attributes()).unwrap();
        Ok::<_, ToolError>(format!("{} {attributes}", cx.user().unwrap_or("no user")))
    })
    .with_read_only(true)
}

fn changes() -> impl Tool {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Nothing {}
    tool_fn("change", "Change something", |_, Nothing {}| async { Ok::<_, ToolError>("changed") })
}

async fn run(harness: &Harness, options: RunOptions) -> String {
    let session = harness.open_session("s").await.unwrap();
    session.run(RunRequest::new("go").with_options(options)).unwrap().reply().await.unwrap().text()
}

/// Waits until the first child of a session has ended so many turns.
pub(crate) async fn has_turns(session: &Session, turns: u32) {
    let is_done = || {
        let child = session.children().remove(0);
        child.turns == turns && child.status == mainstem::subagent::ChildStatus::Idle
    };
    for _ in 0..400 {
        if is_done() {
            return;
        }
        tokio::time::sleep(ms(5)).await;
    }
    panic!("{:?}", session.children());
}

/// Waits for a checkpoint that begins after a long run, as the next process finds it.
async fn checkpoint(journal: &FaultyJournal) {
    for _ in 0..400 {
        if mainstem::journal::Journal::checkpoint(journal, &"s".parse().unwrap()).await.unwrap().is_some() {
            return;
        }
        tokio::time::sleep(ms(5)).await;
    }
    panic!("no checkpoint was made");
}

/// Checks the laws; returns the events of these kinds as lines.
async fn lines(journal: &FaultyJournal, kinds: &[&str]) -> Vec<String> {
    let events = all(journal).await;
    laws(&events).unwrap_or_else(|error| panic!("{error}\n{}", render(&events)));
    let is_meant = |event: &&AgentEvent| kinds.contains(&event.kind.name());
    let line = |event: &AgentEvent| format!("{} {}", event.agent_label(), event.kind);
    events.iter().filter(is_meant).map(line).collect()
}

fn told(told: &Told, agent: &str) -> Vec<String> {
    let told = told.lock().unwrap();
    told.iter().filter(|(id, _)| id == agent).map(|(_, system)| system.clone()).collect()
}

#[tokio::test]
async fn a_session_that_plans_goes_on_planning() {
    let journal = FaultyJournal::new(MemoryJournal::new());
    let change = || {
        [1, 2, 3]
            .into_iter()
            .flat_map(|_| [Turn::new().call("change", json!({})), Turn::new().text("Tried.")])
    };
    let next = || {
        let builder = process(&journal, ScriptedModel::new().agent("main", change()), "");
        builder.with_tool(changes()).build().unwrap()
    };
    run(&next(), RunOptions::new().with_plan_mode(true)).await;
    let second = next();
    let session = second.open_session("s").await.unwrap();
    assert_eq!((session.plan_mode(), session.fleet().plan_mode), (PlanMode::On, true));
    drop(session);
    run(&second, RunOptions::new()).await;
    drop(second);
    run(&next(), RunOptions::new().with_plan_mode(false)).await;
    assert_eq!(next().open_session("s").await.unwrap().plan_mode(), PlanMode::Off);
    let lines = lines(&journal, &["PLAN_MODE_CHANGED", "TOOL_RESULT_END"]).await;
    let short: Vec<_> = lines.iter().map(|line| line.split(" (").next().unwrap()).collect();
    assert_eq!(
        short,
        [
            "main PLAN_MODE_CHANGED on",
            "main TOOL_RESULT_END change denied",
            "main TOOL_RESULT_END change denied",
            "main PLAN_MODE_CHANGED off",
            "main TOOL_RESULT_END change success",
        ]
    );
}

/// A child spawned for Ann is sent to without a user, and spawned again for her and for
/// Bob.
async fn check_children(filler: usize) {
    let journal = FaultyJournal::new(MemoryJournal::new());
    let script = || {
        let spawn =
            || Turn::new().call("agent_spawn", json!({ "agent_id": "keeper", "task": "t", "label": "k" }));
        let done = || Turn::new().text("Done.");
        let main = [spawn(), Turn::new().repeat("word ", filler), spawn(), done(), spawn(), done()];
        let ask = Turn::new().call("whose", json!({}));
        let keeper = [Turn::new().text("1"), ask, Turn::new().text("2"), Turn::new().text("3")];
        ScriptedModel::new().agent("main", main).agent("keeper", keeper)
    };
    let ann = || RunOptions::new().with_user("ann").with_attribute("desk", 7);
    run(&process(&journal, script(), "").build().unwrap(), ann()).await;
    if filler >= LONG {
        checkpoint(&journal).await;
    }
    let second = process(&journal, script(), "").build().unwrap();
    let session = second.open_session("s").await.unwrap();
    let child = session.children().remove(0);
    assert_eq!((child.label.as_deref(), child.turns), (Some("k"), 1));
    session.send(&child.agent_key, "and?", SendMode::Queue).unwrap();
    has_turns(&session, 2).await;
    drop((session, second));
    let results = lines(&journal, &["TOOL_RESULT_TEXT_DELTA"]).await;
    let said = results.iter().find(|line| line.starts_with("keeper")).unwrap();
    assert!(said.contains(r#"ann {\"desk\":7}"#), "{said}");

    // A third process finds the same child for Ann, and none for Bob.
    let third = process(&journal, script(), "").build().unwrap();
    let go = |options| run(&third, options);
    go(ann()).await;
    let children: Vec<_> =
        third.open_session("s").await.unwrap().children().iter().map(|child| child.turns).collect();
    assert_eq!(children, [3]);
    go(RunOptions::new().with_user("bob")).await;
    let session = third.open_session("s").await.unwrap();
    let labels = lines(&journal, &["TOOL_RESULT_TEXT_DELTA"]).await;
    assert!(labels.last().unwrap().contains("\\\"k\\\""), "the label is Ann's child's: {labels:?}");
    assert_eq!(session.children().len(), 1);
}

#[tokio::test]
async fn a_child_keeps_its_user_attributes_label_and_identity() {
    check_children(1).await;
}

#[tokio::test]
async fn so_does_one_of_which_a_checkpoint_tells() {
    check_children(LONG).await;
}

#[tokio::test]
async fn a_child_is_what_it_was_spawned_as() {
    for filler in [1, LONG] {
        let journal = FaultyJournal::new(MemoryJournal::new());
        let script = || {
            let send = Turn::new().call("agent_send", json!({ "label": "k", "message": "and?" }));
            let begin = json!({ "agent_id": "kid", "task": "t", "label": "k" });
            let turns = [
                Turn::new().call("agent_spawn", begin),
                Turn::new().spawn("kid", "again"),
                Turn::new().repeat("word ", filler),
                send,
                Turn::new().spawn("kid", "new"),
                Turn::new().text("Once more."),
            ];
            let says = (1..9).map(|n| Turn::new().text(format!("{n}")));
            Overheard::new(ScriptedModel::new().agent("main", turns).agent("kid", says))
        };
        let (model, first) = script();
        run(&process(&journal, model, "You are old.").build().unwrap(), RunOptions::new()).await;
        if filler >= LONG {
            checkpoint(&journal).await;
        }
        let (model, second) = script();
        run(&process(&journal, model, "You are new.").build().unwrap(), RunOptions::new()).await;
        let is_old = |text: &String| text.contains("You are old.");
        assert_eq!(told(&first, "kid").iter().map(is_old).collect::<Vec<_>>(), [true, true]);
        assert_eq!(told(&second, "kid").iter().map(is_old).collect::<Vec<_>>(), [true, false]);
        // Its declaration is recorded once a version, not once a child.
        let events = all(&journal).await;
        let specs = events.iter().filter_map(|event| match &event.kind {
            EventKind::AgentStart { spec_version: Some(version), spec, .. } => Some((version, spec)),
            _ => None,
        });
        let specs: Vec<_> = specs.collect();
        assert_eq!(specs.iter().map(|(_, spec)| spec.is_some()).collect::<Vec<_>>(), [true, false, true]);
        assert!(specs[0].0 == specs[1].0 && specs[1].0 != specs[2].0, "{specs:?}");
        assert_eq!(specs[0].1.as_ref().unwrap()["prompt"], "You are old.");
    }
}

#[tokio::test]
async fn a_child_that_cannot_be_built_again_says_so() {
    let journal = FaultyJournal::new(MemoryJournal::new());
    let script =
        || ScriptedModel::new().agent("main", [Turn::new().spawn("odd", "t"), Turn::new().text("Done.")]);
    let odd = || ScriptedModel::new().agent("odd", [Turn::new().text("Odd.")]);
    let first = process(&journal, script(), "").with_registry(ModelRegistry::new().with_model("odd", odd()));
    let first = first.with_subagent(AgentSpec::new("odd", "Odd").with_model("odd")).build().unwrap();
    run(&first, RunOptions::new()).await;
    let session = first.open_session("s").await.unwrap();
    let key = session.children().remove(0).agent_key;
    drop((session, first));
    let second = process(&journal, script(), "").build().unwrap();
    let session = second.open_session("s").await.unwrap();
    let error = session.send(&key, "and?", SendMode::Queue).unwrap_err().to_string();
    assert!(error.contains("agent \"odd\" can't be built as it was spawned"), "{error}");
}

/// Returns a process whose calls are estimated at about 1 800 tokens, most of them for its tools,
/// and take 1 500.
fn metered(journal: &FaultyJournal, limits: Budget) -> Harness {
    let mut options = ModelOptions::new();
    options.max_output_tokens = Some(100);
    let turn = |text: &str| Turn::new().text(text).usage(Usage::new(1_000, 500));
    let script = ScriptedModel::new().agent("main", ["1", "2", "3", "4"].map(turn));
    Harness::builder("main", script)
        .with_clock(mainstem_testing::FakeClock::default())
        .with_model_options(options)
        .with_prices(
            Prices::default()
                .with_price("scripted", Price::new(Cost::from_dollars(1), Cost::from_dollars(1))),
        )
        .with_budget(limits)
        .with_journal(journal.clone())
        .build()
        .unwrap()
}

#[tokio::test]
async fn a_sessions_budget_counts_what_earlier_processes_have_spent() {
    let cost = Cost::from_micros(3_500);
    for limits in [Budget::default().with_tokens(3_500), Budget::default().with_cost(cost)] {
        let journal = FaultyJournal::new(MemoryJournal::new());
        let said = async |input: &str| {
            let harness = metered(&journal, limits);
            let session = harness.open_session("s").await.unwrap();
            session.run(input).unwrap().reply().await.map(|reply| reply.text())
        };
        assert_eq!(said("one").await.unwrap(), "1");
        assert_eq!(said("two").await.unwrap(), "2");
        let error = said("three").await.unwrap_err().to_string();
        assert!(error.contains("budget of the session has"), "{error}");
    }
}

#[tokio::test]
async fn a_run_that_is_resumed_has_what_is_left_of_its_budget() {
    let whole = FaultyJournal::new(MemoryJournal::new());
    let script = || {
        let turn = |turn: Turn| turn.usage(Usage::new(1_000, 500));
        let look = || turn(Turn::new().call("whose", json!({})));
        ScriptedModel::new().agent("main", [look(), look(), turn(Turn::new().text("Done."))])
    };
    let next = |journal: &FaultyJournal| {
        let builder = Harness::builder("main", script()).with_clock(mainstem_testing::FakeClock::default());
        builder.with_tool(whose()).with_journal(journal.clone()).build().unwrap()
    };
    let options = RunOptions::new().with_user("ann").with_budget(Budget::default().with_tokens(20_000));
    run(&next(&whole), options).await;
    // Killed after its first call, of 1 500 tokens.
    let events = all(&whole).await;
    let is_cut = |event: &AgentEvent| matches!(event.kind, EventKind::ToolResultEnd { .. });
    let journal = killed_after(&events[..=events.iter().position(is_cut).unwrap()]).await;
    let second = next(&journal);
    let session = second.open_session("s").await.unwrap();
    let events: Vec<_> = session.resume(RunOptions::new()).unwrap().collect().await;
    let EventKind::AgentStart { settings: Some(settings), .. } = &events[0].kind else {
        panic!("{}", render(&events))
    };
    assert_eq!((settings.user.as_deref(), settings.budget.tokens), (Some("ann"), Some(18_500)));
    assert_eq!(lines(&journal, &["TOOL_RESULT_TEXT_DELTA"]).await.last().unwrap().matches("ann").count(), 1);
}

#[tokio::test]
async fn a_conversation_begins_at_its_checkpoint() {
    let journal = FaultyJournal::new(MemoryJournal::new());
    let model = ScriptedModel::new()
        .agent("main", [Turn::new().spawn("kid", "one"), Turn::new().text("Said.")])
        .agent("kid", [Turn::new().text("Done.")]);
    let first = process(&journal, model, "K").build().unwrap();
    run(&first, RunOptions::new()).await;
    let session = first.open_session("s").await.unwrap();
    let kid = session.children().remove(0).agent_key;
    for (agent_key, summary) in [("root".parse().unwrap(), "a summary"), (kid.clone(), "the kid's summary")] {
        let messages = vec![Arc::new(Message::user(summary))];
        session.log().emit(EventKind::state_checkpoint(agent_key, messages));
    }
    drop(session);
    first.shutdown(ms(0)).await;
    drop(first);

    let again = ScriptedModel::new().agent("main", [Turn::new().text("Again.")]);
    let (asked, inner) = (Asked::default(), again.agent("kid", [Turn::new().text("More.")]));
    let model = Asking { asked: asked.clone(), inner };
    let second = process(&journal, model, "K").build().unwrap();
    let session = second.open_session("s").await.unwrap();
    assert_eq!(texts(&session.history()), ["a summary"]);
    session.run("go on").unwrap().reply().await.unwrap();
    session.send(&kid, "and you", SendMode::Queue).unwrap();
    has_turns(&session, 2).await;
    let asked = asked.lock().unwrap();
    assert_eq!(asked["main"], ["a summary", "go on"]);
    assert_eq!(asked["kid"], ["the kid's summary", "and you"]);
}

/// The messages of each agent's latest model call.
type Asked = Arc<Mutex<BTreeMap<String, Vec<String>>>>;

struct Asking {
    asked: Asked,
    inner: ScriptedModel,
}

impl Model for Asking {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn stream(&self, request: ModelRequest) -> ModelStream {
        self.asked.lock().unwrap().insert(request.agent.to_string(), texts(&request.messages));
        self.inner.stream(request)
    }
}

fn texts(messages: &[Arc<Message>]) -> Vec<String> {
    messages.iter().map(|message| message.text()).collect()
}
