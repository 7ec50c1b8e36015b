//! Conversations that become too long for their model are shortened, and go on.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
};

use mainstem::{
    event::{
        RandomIds,
        fold::{self, Conversation},
    },
    journal::MemoryJournal,
    message::{Message, Role},
    model::{ErrorKind, Fallback, ModelError, ModelRequest, ModelStream, scripted::Turn},
    policy::{Budget, ContextWindows},
    prelude::*,
    react::Compaction,
};
use mainstem_testing::{FaultyJournal, laws, render, timeline};
use serde_json::json;

use crate::{
    journal::all,
    resume::killed_after,
    support::{OpenNow, harness},
};

/// A model with a small context window: `answer` decides what it says, and a longer prompt is
/// refused.
pub(crate) struct Small {
    /// In tokens.
    window: usize,
    /// The bytes of a token.
    pub(crate) token: usize,
    /// A refusal names the window.
    is_named: bool,
    answer: Box<dyn Fn(&ModelRequest) -> Turn + Send + Sync>,
    prompts: Prompts,
}

/// What a model was sent: sizes in bytes, and the text of the last message.
pub(crate) type Prompts = Arc<Mutex<Vec<(usize, String)>>>;

impl Small {
    pub(crate) fn new(
        window: usize,
        answer: impl Fn(&ModelRequest) -> Turn + Send + Sync + 'static,
    ) -> (Self, Prompts) {
        let (prompts, answer) = (Prompts::default(), Box::new(answer));
        (Self { window, token: 4, is_named: false, answer, prompts: prompts.clone() }, prompts)
    }
}

impl Model for Small {
    fn name(&self) -> &str {
        "small"
    }

    fn stream(&self, request: ModelRequest) -> ModelStream {
        // A summary's prompt is sent once, so a vendor need not cache it.
        assert_eq!(request.cache_key.is_none(), summarizes(&request));
        let last = request.messages.last().map(|message| message.text()).unwrap_or_default();
        self.prompts.lock().unwrap().push((request.size(), last));
        let tokens = request.size() / self.token;
        let turn = if tokens > self.window {
            let message = format!("the prompt has {tokens} tokens, at most {} fit", self.window);
            let refusal = ModelError::new(ErrorKind::ContextOverflow, message);
            let named = if self.is_named { refusal.with_context_window(self.window as u64) } else { refusal };
            Turn::new().fail(named)
        } else {
            (self.answer)(&request).usage(mainstem::message::Usage::new(tokens as u64, 10))
        };
        // The script's turn is chosen by the number of answers.
        let answers = request.messages.iter().filter(|message| message.role == Role::Assistant).count();
        let script = (0..answers).map(|_| Turn::new()).chain([turn]);
        ScriptedModel::named("small").agent(&*request.agent, script).stream(request)
    }
}

/// Returns `true` for a call that summarizes.
pub(crate) fn summarizes(request: &ModelRequest) -> bool {
    request.system.as_ref().is_some_and(|text| text.contains("notes"))
}

pub(crate) fn windows(tokens: u64) -> Compaction {
    Compaction::default().with_windows(ContextWindows::default().with_window("small", tokens))
}

/// Returns a page of a book.
fn page() -> impl Tool {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Page {
        number: usize,
    }
    tool_fn("page", "Read a page", |_, Page { number }: Page| async move {
        Ok::<_, ToolError>(format!("Page {number}. {}", "word ".repeat(800)))
    })
    .with_read_only(true)
}

/// Reads so many pages, one a call, then ends. Its notes say which pages it has read.
fn reads(pages: usize) -> impl Fn(&ModelRequest) -> Turn {
    move |request| {
        if summarizes(request) {
            let text = request.messages[0].text();
            let read = (1..=pages).filter(|page| text.contains(&format!("Page {page}.")));
            return Turn::new().text(read.map(|page| format!("Page {page}. is read.\n")).collect::<String>());
        }
        let has =
            |page: &usize| request.messages.iter().any(|message| says(message, &format!("Page {page}.")));
        match (1..=pages).find(|page| !has(page)) {
            None => Turn::new().text("It is a book."),
            Some(number) => Turn::new().call("page", json!({ "number": number })),
        }
    }
}

fn says(message: &Message, what: &str) -> bool {
    message.text().contains(what) || message.tool_results().any(|result| result.text().contains(what))
}

pub(crate) fn sizes(prompts: &Prompts) -> Vec<usize> {
    prompts.lock().unwrap().iter().map(|(size, _)| *size).collect()
}

#[tokio::test(start_paused = true)]
async fn earlier_results_are_shortened_first() {
    let (model, prompts) = Small::new(8_000, reads(6));
    let run = harness(model).with_tool(page()).with_compaction(windows(8_000)).build().unwrap();
    insta::assert_snapshot!(timeline(run.stream_events("Read all pages.")).await);
    insta::assert_debug_snapshot!(sizes(&prompts));
}

#[tokio::test(start_paused = true)]
async fn older_messages_become_notes() {
    let (model, prompts) = Small::new(4_000, reads(4));
    let run = harness(model).with_tool(page()).with_compaction(windows(4_000)).build().unwrap();
    insta::assert_snapshot!(timeline(run.stream_events("Read all pages.")).await);
    insta::assert_debug_snapshot!(sizes(&prompts));
}

/// Checks the laws; returns the model calls, checkpoints and ends, a line each.
fn lines(events: &[AgentEvent]) -> Vec<String> {
    laws(events).unwrap_or_else(|error| panic!("{error}\n{}", render(events)));
    let is_meant = |event: &&AgentEvent| {
        matches!(
            event.kind,
            EventKind::ModelCallStart { .. } | EventKind::StateCheckpoint { .. } | EventKind::AgentEnd { .. }
        )
    };
    events.iter().filter(is_meant).map(|event| format!("{} {}", event.agent_label(), event.kind)).collect()
}

pub(crate) async fn read(run: Run) -> Vec<String> {
    lines(&run.collect::<Vec<_>>().await)
}

/// Answers in so many words; its notes are short.
fn talks(words: usize) -> impl Fn(&ModelRequest) -> Turn {
    move |request| match summarizes(request) {
        true => Turn::new().text("They talk."),
        false => Turn::new().text("word ".repeat(words)),
    }
}

/// Runs turns in one session; returns their lines.
async fn turns(harness: &Harness, turns: usize) -> Vec<String> {
    turns_of(&harness.session("s"), turns).await
}

async fn turns_of(session: &Session, turns: usize) -> Vec<String> {
    let mut all = Vec::new();
    for turn in 1..=turns {
        all.extend(read(session.run(format!("Turn {turn}.")).unwrap()).await);
    }
    all
}

#[tokio::test(start_paused = true)]
async fn a_prompt_that_is_refused_is_compacted_and_sent_again() {
    let (model, prompts) = Small::new(4_000, talks(700));
    let harness = harness(model).build().unwrap();
    insta::assert_debug_snapshot!(turns(&harness, 4).await);
    insta::assert_debug_snapshot!(sizes(&prompts));
}

#[tokio::test(start_paused = true)]
async fn a_window_that_a_refusal_names_is_known_from_then_on() {
    let (mut model, prompts) = Small::new(4_000, talks(700));
    model.is_named = true;
    let harness = harness(model).build().unwrap();
    insta::assert_debug_snapshot!(turns(&harness, 6).await);
    let refused = sizes(&prompts).into_iter().filter(|size| *size > 16_000).count();
    assert_eq!(refused, 1);
}

#[tokio::test(start_paused = true)]
async fn a_summary_that_fails_leaves_the_conversation_as_it_is() {
    let check = async |summary: fn() -> Turn, compaction: Compaction, fits: bool, expected: &[&str]| {
        let talk = talks(700);
        let (model, _) = Small::new(if fits { 8_000 } else { 4_000 }, move |request| {
            if summarizes(request) { summary() } else { talk(request) }
        });
        let harness = harness(model).with_compaction(compaction).build().unwrap();
        let lines = turns(&harness, 4).await;
        let ends = lines.iter().filter_map(|line| line.strip_prefix("main AGENT_END "));
        let ends: Vec<_> = ends.map(|end| end.split(' ').next().unwrap()).collect();
        assert_eq!(ends, expected, "{lines:#?}");
        assert!(!lines.iter().any(|line| line.contains("CHECKPOINT")), "{lines:#?}");
        // One a run.
        let summaries = lines.iter().filter(|line| line.contains("for compaction")).count();
        assert_eq!(summaries, if fits { 2 } else { 1 }, "{lines:#?}");
    };
    let empty = Turn::new;
    let fails = || Turn::new().fail(ModelError::new(ErrorKind::InvalidRequest, "no"));
    let filtered = || Turn::new().text("Th").stop(mainstem::message::StopReason::ContentFilter);
    for summary in [empty, fails, filtered] {
        check(summary, windows(4_000), true, &["success"; 4]).await;
        check(summary, Compaction::default(), false, &["success", "success", "success", "error"]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn without_compaction_a_prompt_that_is_refused_ends_the_run() {
    let (model, _) = Small::new(4_000, talks(700));
    let harness = harness(model).with_compaction(Compaction::default().with_enabled(false)).build().unwrap();
    insta::assert_debug_snapshot!(turns(&harness, 4).await);
}

#[tokio::test(start_paused = true)]
async fn a_run_can_be_cancelled_during_a_summary() {
    let talk = talks(700);
    let (model, _) = Small::new(
        4_000,
        move |request| if summarizes(request) { Turn::new().hang() } else { talk(request) },
    );
    let harness = harness(model).with_compaction(windows(4_000)).build().unwrap();
    let session = harness.session("s");
    for turn in 1..=4 {
        let mut run = session.run(format!("Turn {turn}.")).unwrap();
        let mut events = Vec::new();
        while let Some(event) = run.next().await {
            if let EventKind::ModelCallStart { purpose: Some(_), .. } = event.kind {
                run.handle().cancel();
            }
            events.push(event);
        }
        let lines = lines(&events);
        if lines.iter().any(|line| line.contains("for compaction")) {
            assert!(lines.last().unwrap().contains("AGENT_END cancelled"), "{lines:#?}");
            assert_eq!(session.history().len(), 2 * turn - 1, "the conversation stays, with the new input");
            return;
        }
    }
    panic!("no summary");
}

#[tokio::test(start_paused = true)]
async fn a_summary_counts_in_usage_and_budgets() {
    let (model, _) = Small::new(4_000, talks(700));
    let harness = harness(model).with_compaction(windows(4_000)).build().unwrap();
    let session = harness.session("s");
    let mut used = 0;
    for turn in 1..=4 {
        let events: Vec<_> = session.run(format!("Turn {turn}.")).unwrap().collect().await;
        for event in &events {
            if let EventKind::ModelCallEnd { usage: Some(usage), .. } = &event.kind {
                used += usage.total_tokens();
            }
        }
    }
    assert_eq!(session.fleet().root().unwrap().usage.total_tokens(), used);
    let context = session.fleet().root().unwrap().context.unwrap();
    assert_eq!(context.window, 4_000);
    assert!(context.percent() > 40 && context.percent() < 80, "{context:?}");
}

/// Remembers what it is told of boxes, as far as the prompt has it.
fn remembers(request: &ModelRequest) -> Turn {
    let text: String = request.messages.iter().map(|message| message.text() + "\n").collect();
    let facts = text.split('|').filter(|fact| fact.starts_with("Box "));
    if summarizes(request) {
        let facts: BTreeSet<_> = facts.collect();
        return Turn::new().text(facts.into_iter().map(|fact| format!("|{fact}|\n")).collect::<String>());
    }
    let last = request.messages.last().unwrap().text();
    match last.strip_prefix("What is in box ") {
        Some(number) => {
            let wanted = format!("Box {} has ", number.trim_end_matches('?'));
            let found = facts.into_iter().find_map(|fact| fact.strip_prefix(&wanted));
            Turn::new().text(found.unwrap_or("I do not know.").to_owned())
        }
        None => Turn::new().text("Noted. ".repeat(30)),
    }
}

/// Returns the conversation of the root, as a reader of the events has it.
fn folded(events: &[AgentEvent]) -> Vec<Arc<Message>> {
    let mut conversation = Conversation::of(fold::ROOT.parse().unwrap());
    events.iter().for_each(|event| conversation.apply(event));
    conversation.messages().cloned().collect()
}

#[tokio::test]
async fn a_fact_of_the_first_turn_is_known_after_500_turns_and_restarts() {
    const WINDOW: usize = 32_000;
    let journal = FaultyJournal::new(MemoryJournal::new());
    let mut refused = 0;
    for process in 0..5 {
        let (model, prompts) = Small::new(WINDOW, remembers);
        let builder = harness(model).with_ids(RandomIds).with_journal(journal.clone());
        let harness = builder.with_compaction(windows(WINDOW as u64)).build().unwrap();
        let session = harness.open_session("s").await.unwrap();
        let say = async |text: String| session.run(text).unwrap().reply().await.unwrap().text();
        for turn in process * 100..process * 100 + 100 {
            say(format!("|Box {turn} has {}|{}", turn * 7, " Please remember.".repeat(40))).await;
        }
        for turn in [0, process * 50, process * 100 + 99] {
            assert_eq!(say(format!("What is in box {turn}?")).await, (turn * 7).to_string());
        }
        refused += sizes(&prompts).iter().filter(|size| **size / 4 > WINDOW).count();
        let events = all(&journal).await;
        laws(&events).unwrap_or_else(|error| panic!("{error}"));
        // The record has the same conversation as the process.
        assert_eq!(folded(&events), session.history());
    }
    assert_eq!(refused, 0);
    let events = all(&journal).await;
    let compactions =
        events.iter().filter(|event| matches!(event.kind, EventKind::StateCheckpoint { .. })).count();
    assert!((3..40).contains(&compactions), "{compactions}");
}

/// A run whose conversation is compacted is cut after each of its events, and resumed.
#[tokio::test(start_paused = true)]
async fn a_run_that_compacts_is_cut_anywhere_and_resumed() {
    let journal = FaultyJournal::new(MemoryJournal::new());
    let process = |journal: &FaultyJournal| {
        let (model, _) = Small::new(4_000, reads(3));
        let builder = harness(model).with_ids(RandomIds).with_journal(journal.clone()).with_tool(page());
        builder.with_compaction(windows(4_000)).build().unwrap()
    };
    process(&journal).session("s").run("Read all pages.").unwrap().reply().await.unwrap();
    let whole = all(&journal).await;
    assert!(whole.iter().any(|event| matches!(event.kind, EventKind::StateCheckpoint { .. })));
    let answered =
        whole.iter().position(|event| matches!(event.kind, EventKind::AgentResult { .. })).unwrap();
    for cut in 1..answered {
        let journal = killed_after(&whole[..cut]).await;
        let session = process(&journal).open_session("s").await.unwrap();
        let reply = session.resume(RunOptions::new()).unwrap().reply().await.unwrap().text();
        let events = all(&journal).await;
        laws(&events).unwrap_or_else(|error| panic!("cut after {cut}: {error}\n{}", render(&events)));
        assert_eq!(reply, "It is a book.", "cut after {cut}:\n{}", render(&events));
        let ids: Vec<_> = events
            .iter()
            .filter_map(|event| match &event.kind {
                EventKind::ToolCallStart { tool_call_id, .. } => Some(tool_call_id),
                _ => None,
            })
            .collect();
        assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "ids of calls are used once");
        assert_eq!(folded(&events), session.history());
    }
}

#[tokio::test(start_paused = true)]
async fn a_child_goes_on_with_its_compacted_conversation() {
    let check = async |restarts: bool| {
        let journal = FaultyJournal::new(MemoryJournal::new());
        let process = || {
            let (model, prompts) = Small::new(4_000, |request| match &*request.agent {
                "keeper" => remembers(request),
                _ if summarizes(request) => Turn::new().text("It passes on what it is told."),
                _ => {
                    let last = request.messages.last().unwrap();
                    if last.role == Role::Tool {
                        return Turn::new().text(last.tool_results().next().unwrap().text());
                    }
                    let task = last.text();
                    let args = json!({ "agent_id": "keeper", "task": task, "label": "k" });
                    Turn::new().call("agent_spawn", args)
                }
            });
            let keeper = AgentSpec::new("keeper", "Keeps").with_persist_session(true);
            let builder = harness(model).with_ids(RandomIds).with_journal(journal.clone());
            let builder = builder.with_subagent(keeper).with_compaction(windows(4_000));
            (builder.build().unwrap(), prompts)
        };
        let mut now = process();
        for turn in 0..12 {
            let session = now.0.open_session("s").await.unwrap();
            let told = format!("|Box {turn} has {}|{}", turn * 7, " Please remember.".repeat(120));
            session.run(told).unwrap().reply().await.unwrap();
            let asked =
                session.run(format!("What is in box {}?", turn / 2)).unwrap().reply().await.unwrap().text();
            assert!(asked.contains(&format!("reply:\n{}", turn / 2 * 7)), "{turn}: {asked}");
            drop(session);
            if restarts {
                now = process();
            }
        }
        let events = all(&journal).await;
        laws(&events).unwrap_or_else(|error| panic!("{error}\n{}", render(&events)));
        let is_of_child = |event: &&AgentEvent| matches!(&event.kind, EventKind::StateCheckpoint { agent_key, .. } if agent_key.as_str() != "root");
        assert!(events.iter().filter(is_of_child).count() > 1);
    };
    check(false).await;
    check(true).await;
}

/// Compacts because a person asks for it; returns the run's lines.
async fn compacted(session: &Session) -> Vec<String> {
    read(session.compact(RunOptions::new()).unwrap()).await
}

#[tokio::test(start_paused = true)]
async fn a_person_can_have_a_conversation_compacted() {
    let (model, prompts) = Small::new(100_000, remembers);
    let harness = harness(model).build().unwrap();
    let session = harness.session("s");
    let nothing = ["main AGENT_END success 0/0 tok"];
    assert_eq!(compacted(&session).await, nothing, "there is no conversation");
    for turn in 0..9 {
        session
            .run(format!("|Box {turn} has {}| Please remember.", turn * 7))
            .unwrap()
            .reply()
            .await
            .unwrap();
    }
    let before = session.history();
    insta::assert_debug_snapshot!(compacted(&session).await);
    assert!(session.history().len() < before.len(), "{:?}", session.history());
    assert_eq!(session.run("What is in box 0?").unwrap().reply().await.unwrap().text(), "0");
    let error = session.compact(RunOptions::new()).unwrap().reply().await.unwrap_err();
    assert_eq!(error.to_string(), "the run compacts the conversation, and has no reply");
    // A conversation that is as short as it can be stays.
    let short = session.history();
    assert_eq!(compacted(&session).await.len(), 1);
    assert_eq!(session.history(), short);
    assert!(sizes(&prompts).len() > 10);
}

#[tokio::test(start_paused = true)]
async fn a_compaction_that_a_person_asked_for_can_fail_and_leaves_turns_to_resume() {
    let (model, _) = Small::new(100_000, |request| match summarizes(request) {
        true => Turn::new(),
        false if request.messages.len() > 6 => {
            Turn::new().fail(ModelError::new(ErrorKind::InvalidRequest, "no"))
        }
        false => Turn::new().text("word ".repeat(100)),
    });
    let harness = harness(model).build().unwrap();
    let session = harness.session("s");
    turns_of(&session, 4).await;
    let before = session.history();
    let lines = compacted(&session).await;
    assert!(
        lines.last().unwrap().contains("AGENT_END error") && lines.last().unwrap().contains("empty_reply"),
        "{lines:?}"
    );
    assert_eq!(session.history(), before);
    // The turn before is the one without an answer.
    assert!(session.resume(RunOptions::new()).is_ok());
}

/// A compaction that does not help is not paid for again and again.
#[tokio::test(start_paused = true)]
async fn a_conversation_that_can_not_be_shorter_is_left_alone() {
    let check = async |window: usize, task: String, expected: std::ops::RangeInclusive<usize>| {
        let (model, prompts) = Small::new(window, reads(3));
        let builder = harness(model).with_tool(page()).with_compaction(windows(window as u64));
        let lines = read(builder.build().unwrap().stream_events(task)).await;
        let summaries = lines.iter().filter(|line| line.contains("for compaction")).count();
        assert!(expected.contains(&summaries), "{summaries} summaries: {lines:#?} {:?}", sizes(&prompts));
        lines
    };
    // Instructions and tools alone exceed the threshold; the service decides.
    check(2_500, "Read.".to_owned(), 0..=1).await;
    // The task has half of the window, and always stays.
    check(8_000, format!("Read. {}", "word ".repeat(3_000)), 0..=2).await;
}

#[tokio::test(start_paused = true)]
async fn a_summary_has_a_budget() {
    let (model, prompts) = Small::new(4_000, reads(6));
    let harness = harness(model).with_tool(page()).with_compaction(windows(4_000)).build().unwrap();
    let budget = Budget::default().with_tokens(13_000);
    let lines = read(harness.stream_events(RunRequest::new("Read all pages.").with_budget(budget))).await;
    assert!(
        lines.last().unwrap().contains("AGENT_END error") && lines.last().unwrap().contains("budget"),
        "{lines:#?}"
    );
    assert!(lines.iter().any(|line| line.contains("for compaction")), "{lines:#?} {:?}", sizes(&prompts));
}

/// The windows of other models are not taken for the agent's own.
#[tokio::test(start_paused = true)]
async fn a_refusal_of_another_model_teaches_nothing() {
    let (mut spare, _) = Small::new(600, talks(10));
    spare.is_named = true;
    // The first fails once, and the one that answers for it has no room for tools.
    let first = ScriptedModel::named("small").agent(
        "main",
        [
            Turn::new().fail_first(1, ModelError::new(ErrorKind::Overloaded, "busy")).text("Hi."),
            Turn::new().text("Again."),
        ],
    );
    let harness = harness(Fallback::new(first, spare)).with_max_depth(0).build().unwrap();
    let session = harness.session("s");
    let failed = read(session.run(format!("Go. {}", "word ".repeat(600))).unwrap()).await;
    assert!(failed.last().unwrap().contains("context_overflow"), "{failed:?}");
    let events: Vec<_> = session.run("Go on.").unwrap().collect().await;
    let window = events.iter().find_map(|event| match &event.kind {
        EventKind::ModelCallStart { context_window, .. } => Some(*context_window),
        _ => None,
    });
    assert_eq!(window, Some(None), "{}", render(&events));
}

/// The report of a turn has what was done in it, also after its conversation was compacted.
#[tokio::test(start_paused = true)]
async fn the_report_of_a_compacted_child_has_only_its_turn() {
    let (model, _) = Small::new(4_000, |request| match &*request.agent {
        _ if summarizes(request) => Turn::new().text("It was asked."),
        "main" => match request.messages.last().unwrap() {
            last if last.role == Role::Tool => Turn::new().text(last.tool_results().next().unwrap().text()),
            last => Turn::new()
                .call("agent_spawn", json!({ "agent_id": "keeper", "task": last.text(), "label": "k" })),
        },
        _ if request.messages.last().unwrap().text() == "fail" => {
            Turn::new().fail(ModelError::new(ErrorKind::InvalidRequest, "no"))
        }
        _ => Turn::new().text("earlier ".repeat(250)),
    });
    let keeper = AgentSpec::new("keeper", "Keeps").with_persist_session(true).with_compact_at(40);
    let main = harness(model).with_subagent(keeper).with_compaction(windows(4_000)).build().unwrap();
    let session = main.session("s");
    for _ in 0..3 {
        session.run("talk").unwrap().reply().await.unwrap();
    }
    let report = session.run("fail").unwrap().reply().await.unwrap().text();
    assert!(report.contains("status: error") && !report.contains("earlier"), "{report}");
}

/// The model of a compaction gets the calls for summaries, and the agent's own gets the others.
#[tokio::test(start_paused = true)]
async fn another_model_can_summarize() {
    let (cheap, summaries) = Small::new(100_000, talks(700));
    let (model, prompts) = Small::new(4_000, talks(700));
    let compaction = windows(4_000).with_model(cheap);
    let harness = harness(model).with_compaction(compaction).build().unwrap();
    let lines = turns(&harness, 4).await;
    let compacted = lines.iter().filter(|line| line.contains("CHECKPOINT")).count();
    assert!(compacted > 0 && sizes(&summaries).len() >= compacted, "{lines:#?}");
    assert_eq!(sizes(&prompts).len(), 4, "one answer a turn");
}

/// `compact_at` of an agent's spec goes before the option of all agents.
#[tokio::test(start_paused = true)]
async fn each_agent_has_its_own_threshold() {
    let check = async |percent: Option<u8>, for_all: bool, expected: bool| {
        let (model, _) = Small::new(8_000, |request| match &*request.agent {
            _ if summarizes(request) => Turn::new().text("They talk."),
            "main" if request.messages.last().unwrap().role == Role::Tool => Turn::new().text("Passed on."),
            "main" => {
                Turn::new().call("agent_spawn", json!({ "agent_id": "kid", "task": "talk", "label": "k" }))
            }
            _ => Turn::new().text("word ".repeat(900)),
        });
        let mut kid = AgentSpec::new("kid", "Talks").with_persist_session(true);
        kid.compact_at = percent;
        let compaction = windows(8_000).with_enabled(for_all);
        let harness = harness(model).with_subagent(kid).with_compaction(compaction).build().unwrap();
        let lines = turns(&harness, 5).await;
        let has = lines.iter().any(|line| line.starts_with("kid MODEL_CALL_START small for compaction"));
        assert_eq!(has, expected, "{percent:?}, {for_all}: {lines:#?}");
    };
    check(None, true, false).await;
    check(Some(30), true, true).await;
    check(Some(30), false, true).await;
    check(Some(0), true, false).await;
}
