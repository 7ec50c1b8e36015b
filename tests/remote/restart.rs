//! A background task at a remote outlives the process that began it: the next process finds the
//! remote's turn again and goes on behind the last event that was recorded.

use std::{path::Path, sync::Arc, time::Duration};

use mainstem::{
    event::{SendMode, TaskStatus, fold::fold},
    journal::{Journal, MemoryJournal, SqliteJournal},
    model::scripted::Turn,
    prelude::*,
    task::{MemoryTaskStore, TaskFilter, TaskRecord, TaskStore},
};
use mainstem_server::Tokens;
use mainstem_testing::{laws, render};
use serde_json::json;
use tokio::{net::TcpListener, task::JoinHandle};

use crate::{
    anywhere::{TOKEN, serve, timeless},
    chain::{builder, local, remote},
    killed::killed_after,
    speaks::Speaks,
    support::ms,
};

/// A far agent that thinks, calls a tool, asks another agent, and answers slowly.
pub(crate) fn far() -> HarnessBuilder {
    let model = ScriptedModel::new()
        .agent(
            "far",
            [
                Turn::new().thinking("Hm.").text("I look ").call("echo", json!({ "say": "a" })),
                Turn::new()
                    .text("I ask.")
                    .call("agent_spawn", json!({ "agent_id": "third", "task": "look" })),
                Turn::new().pace(ms(2)).say("It is so, as I have seen"),
            ],
        )
        .agent("third", [Turn::new().call("echo", json!({ "say": "b" })), Turn::new().text("I see.")]);
    builder("far", model).with_subagent(local("third"))
}

/// The caller's process.
pub(crate) fn near(
    speaks: Speaks,
    url: &str,
    store: impl TaskStore,
    journal: &Arc<MemoryJournal>,
) -> Harness {
    let spawn = json!({ "agent_id": "far", "task": "find out", "timeout_seconds": 0 });
    let main = [Turn::new().call("agent_spawn", spawn), Turn::new().text("Begun.")];
    builder("main", ScriptedModel::new().agent("main", main))
        .with_subagent(speaks.declared("far", url))
        .with_journal(journal.clone())
        .with_task_store(store)
        .build()
        .unwrap()
}

pub(crate) async fn all_is_done(harness: &Harness) {
    let done = async {
        while harness.tasks().live() > 0 {
            tokio::time::sleep(ms(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), done).await.expect("a task is running");
}

/// Returns the events so far; a turn may be open.
pub(crate) async fn so_far(journal: &MemoryJournal) -> Vec<AgentEvent> {
    journal.read(&"s".parse().unwrap(), 1, 10_000).await.unwrap()
}

pub(crate) async fn all(journal: &MemoryJournal) -> Vec<AgentEvent> {
    let events = so_far(journal).await;
    laws(&events).unwrap_or_else(|error| panic!("{error}\n{}", render(&events)));
    events
}

/// What a whole run leaves: its events, its task's record, and the server of the far agent.
pub(crate) struct Whole {
    pub(crate) events: Vec<AgentEvent>,
    pub(crate) task: TaskRecord,
    pub(crate) speaks: Speaks,
    pub(crate) url: String,
    far: Harness,
    serving: JoinHandle<()>,
}

impl Whole {
    pub(crate) async fn run(speaks: Speaks) -> Self {
        let far = far().build().unwrap();
        let (url, serving) = speaks.serve(far.clone()).await;
        let (journal, store) = (Arc::new(MemoryJournal::new()), MemoryTaskStore::new());
        let harness = near(speaks, &url, store, &journal);
        let session = harness.open_session("s").await.unwrap();
        session.run("go").unwrap().reply().await.unwrap();
        all_is_done(&harness).await;
        let task = session.tasks().await.unwrap().remove(0);
        assert_eq!((task.status, task.is_resumable), (TaskStatus::Completed, true), "{task:?}");
        Self { events: all(&journal).await, task, speaks, url, far, serving }
    }

    /// Returns the number of runs that the server of the far agent has begun.
    pub(crate) fn far_runs(&self) -> usize {
        self.far.sessions().opened().iter().map(|session| session.runs().len()).sum()
    }

    /// Returns after how many events the task runs and its child has begun and not answered.
    pub(crate) fn while_it_runs(&self) -> std::ops::Range<usize> {
        let is_of_child = |event: &AgentEvent| event.agent_id() == "far";
        let begun = self.events.iter().position(is_of_child).unwrap();
        let running = self.events.iter().position(|event| event.kind.name() == "TASK_UPDATED").unwrap();
        let ended = self.events.iter().rposition(is_of_child).unwrap();
        // Behind its result, only its end is missing.
        begun.max(running) + 1..ended
    }
}

impl Drop for Whole {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Returns the events of children, without numbers and times.
fn of_children(events: &[AgentEvent]) -> String {
    let of_children: Vec<_> = events.iter().filter(|event| event.source().is_some()).cloned().collect();
    timeless(&of_children)
}

async fn check_each_cut(speaks: Speaks) {
    let whole = Whole::run(speaks).await;
    let every = if std::env::var_os("RUN_SLOW_TESTS").is_some() { 1 } else { 3 };
    for cut in whole.while_it_runs().step_by(every) {
        let (journal, store) = killed_after(&whole.events[..cut], &whole.task).await;
        let next = near(speaks, &whole.url, store, &journal);
        let session = next.open_session("s").await.unwrap();
        all_is_done(&next).await;
        let events = all(&journal).await;
        let text = render(&events);
        assert_eq!(of_children(&events), of_children(&whole.events), "cut after {cut}\n{text}");
        let task = session.tasks().await.unwrap().remove(0);
        assert_eq!(
            (task.status, &task.result, task.fence),
            (TaskStatus::Completed, &whole.task.result, 2),
            "{task:?}"
        );
        // Its child has the conversation, and goes on with a further turn.
        let usage = |events: &[AgentEvent]| match &events
            .iter()
            .rfind(|event| event.agent_id() == "far")
            .unwrap()
            .kind
        {
            EventKind::AgentEnd { usage, .. } => **usage,
            other => panic!("{other:?}"),
        };
        assert_eq!(usage(&events), usage(&whole.events), "cut after {cut}");
        assert_eq!(fold(&events).len(), fold(&whole.events).len());
        assert_eq!(next.tasks().live(), 0);
    }
    // The remote has run it once.
    let id = &whole.events.iter().find_map(|event| event.source()).unwrap().session_id;
    let sessions = whole.far.sessions().opened();
    let far = sessions.iter().find(|session| session.id() == id).unwrap();
    assert_eq!(far.runs().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_at_a_remote_goes_on_behind_each_event_at_which_its_process_was_killed() {
    check_each_cut(Speaks::Mainstem).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_of_agentscopes_protocol_goes_on_behind_each_event() {
    check_each_cut(Speaks::AgentScope).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_of_a2a_at_a_server_of_ours_goes_on_behind_each_event() {
    check_each_cut(Speaks::A2a).await;
}

/// A process that was killed while its remote child was running, and the one after it.
struct Killed {
    far: Harness,
    serving: JoinHandle<()>,
    journal: Arc<MemoryJournal>,
    next: Harness,
    session: Session,
}

impl Killed {
    /// Kills a process once the child has emitted an event of this kind, and starts the next one.
    async fn after(kind: &str, speaks: Speaks, far: HarnessBuilder) -> Self {
        let far = far.build().unwrap();
        let (url, serving) = speaks.serve(far.clone()).await;
        let (journal, store) = (Arc::new(MemoryJournal::new()), MemoryTaskStore::new());
        let first = near(speaks, &url, store, &journal);
        let session = first.open_session("s").await.unwrap();
        session.run("go").unwrap().reply().await.unwrap();
        let seen = async {
            let is_it = |event: &AgentEvent| event.source().is_some() && event.kind.name() == kind;
            while !so_far(&journal).await.iter().any(is_it) {
                tokio::time::sleep(ms(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), seen).await.expect("no such event");
        let task = session.tasks().await.unwrap().remove(0);
        let (journal, store) = killed_after(&so_far(&journal).await, &task).await;
        let next = near(speaks, &url, store, &journal);
        let session = next.open_session("s").await.unwrap();
        Self { far, serving, journal, next, session }
    }

    async fn events(&self) -> Vec<AgentEvent> {
        all(&self.journal).await
    }

    async fn task(&self) -> TaskRecord {
        self.session.tasks().await.unwrap().remove(0)
    }

    /// Returns the number of runs that the server has begun, and of those that are active.
    fn far_runs(&self) -> (usize, usize) {
        let sessions = self.far.sessions().opened();
        let active = sessions.iter().filter(|session| session.active().is_some()).count();
        (sessions.iter().map(|session| session.runs().len()).sum(), active)
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// A far agent with one turn.
fn far_with(turn: Turn) -> HarnessBuilder {
    builder("far", ScriptedModel::new().agent("far", [turn, Turn::new().text("Done.")]))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_goes_on_live_while_its_remote_still_answers() {
    check_live(Speaks::Mainstem).await;
}

pub(crate) async fn check_live(speaks: Speaks) {
    let words = "one two three four five six seven eight nine ten eleven twelve";
    let killed =
        Killed::after("TEXT_BLOCK_DELTA", speaks, far_with(Turn::new().pace(ms(60)).say(words))).await;
    assert_eq!(killed.task().await.status, TaskStatus::Running);
    let before = so_far(&killed.journal).await.len();
    all_is_done(&killed.next).await;
    let events = killed.events().await;
    let deltas = |events: &[AgentEvent]| {
        events
            .iter()
            .filter(|event| event.kind.name() == "TEXT_BLOCK_DELTA" && event.source().is_some())
            .count()
    };
    assert!(deltas(&events[before..]) > 3, "{}", render(&events));
    // Another protocol repeats the text that is discarded.
    assert!(deltas(&events) == 12 || speaks != Speaks::Mainstem, "{}", render(&events));
    assert_eq!(killed.task().await.result.as_deref(), Some(words));
    assert_eq!(killed.far_runs(), (1, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_after_the_restart_stops_the_remote() {
    check_cancel(Speaks::Mainstem).await;
}

pub(crate) async fn check_cancel(speaks: Speaks) {
    let killed = Killed::after("TEXT_BLOCK_DELTA", speaks, far_with(Turn::new().text("I hang").hang())).await;
    let id = killed.task().await.id;
    let task = killed.next.tasks().cancel(&id, "the test", Duration::from_secs(1)).await.unwrap();
    assert_eq!(task.status, TaskStatus::Cancelled, "{}", render(&killed.events().await));
    let stopped = async {
        while killed.far_runs() != (1, 0) {
            tokio::time::sleep(ms(5)).await;
        }
    };
    let is_stopped = tokio::time::timeout(Duration::from_secs(1), stopped).await.is_ok();
    let events = render(&killed.events().await);
    assert!(is_stopped, "the remote goes on, with runs {:?}\n{events}", killed.far_runs());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_whose_task_was_taken_over_does_not_stop_it() {
    let words = "one two three four five six seven eight nine ten eleven twelve";
    let far = far_with(Turn::new().pace(ms(60)).say(words)).build().unwrap();
    let (url, serving) = serve(far.clone()).await;
    let (before, store) = (Arc::new(MemoryJournal::new()), Arc::new(MemoryTaskStore::new()));
    let suspended = near(Speaks::Mainstem, &url, store.clone(), &before);
    let session = suspended.open_session("s").await.unwrap();
    session.run("go").unwrap().reply().await.unwrap();
    let said = async {
        while !so_far(&before)
            .await
            .iter()
            .any(|event| event.depth() == 1 && event.kind.name() == "TEXT_BLOCK_DELTA")
        {
            tokio::time::sleep(ms(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), said).await.expect("it says nothing");
    let journal = Arc::new(MemoryJournal::new());
    let record = journal.open(session.id()).await.unwrap();
    so_far(&before).await.iter().for_each(|event| record.append(event));
    drop(record);
    let next = near(Speaks::Mainstem, &url, store, &journal);
    let session = next.open_session("s").await.unwrap();
    assert_eq!(session.tasks().await.unwrap()[0].fence, 2);
    suspended.shutdown(ms(500)).await;
    all_is_done(&next).await;
    let (task, text) = (session.tasks().await.unwrap().remove(0), render(&all(&journal).await));
    assert_eq!(
        (task.status, task.result.as_deref()),
        (TaskStatus::Completed, Some(words)),
        "{task:?}\n{text}"
    );
    serving.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_remote_asked_before_the_restart_is_asked_again() {
    check_asks_again(Speaks::Mainstem).await;
}

pub(crate) async fn check_asks_again(speaks: Speaks) {
    let far = far_with(Turn::new().text("I look.").call("echo", json!({ "say": "a" })));
    let far = far.with_permissions(RuleSet::default().with_pattern(Effect::Ask, "echo").unwrap());
    let killed = Killed::after("REQUIRE_USER_CONFIRM", speaks, far).await;
    let requests = |events: &[AgentEvent]| {
        let asked = |event: &AgentEvent| match &event.kind {
            EventKind::RequireUserConfirm { confirm_id, .. } => Some(confirm_id.clone()),
            _ => None,
        };
        events.iter().filter_map(asked).collect::<Vec<_>>()
    };
    let asked_again = async {
        let is_asked = async || requests(&so_far(&killed.journal).await).len() == 2;
        while !is_asked().await || killed.task().await.status != TaskStatus::WaitingConfirm {
            tokio::time::sleep(ms(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), asked_again).await.expect("it is not asked again");
    let [old, new] = <[_; 2]>::try_from(requests(&so_far(&killed.journal).await)).unwrap();
    assert!(killed.session.confirm(&old, Decision::Allow).is_err(), "it was withdrawn");
    killed.session.confirm(&new, Decision::Allow).unwrap();
    all_is_done(&killed.next).await;
    let text = render(&killed.events().await);
    let result = killed.task().await.result.unwrap_or_default();
    assert!(result.ends_with("Done."), "{result:?}\n{text}");
    assert_eq!(text.matches("DELTA \"I look.\"").count(), 1, "{text}");
    assert_eq!(killed.far_runs(), (1, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_whose_remote_has_lost_it_fails_once_with_all_that_was_recorded() {
    let whole = Whole::run(Speaks::Mainstem).await;
    let session = &whole.events.iter().find_map(|event| event.source()).unwrap().session_id;
    whole.far.delete_session(session).await.unwrap();
    let range = whole.while_it_runs();
    for cut in [range.end - 12, range.end - 1] {
        let (journal, store) = killed_after(&whole.events[..cut], &whole.task).await;
        let next = near(Speaks::Mainstem, &whole.url, store, &journal);
        let session = next.open_session("s").await.unwrap();
        all_is_done(&next).await;
        let (events, task) = (all(&journal).await, session.tasks().await.unwrap().remove(0));
        let error = task.error.as_ref().map(|error| error.message.clone()).unwrap_or_default();
        assert_eq!(
            (task.status, error.contains("there is no session")),
            (TaskStatus::Failed, true),
            "{error}"
        );
        assert_eq!(render(&events[..cut]), render(&whole.events[..cut]));
        let ends = events.iter().filter(|event| matches!(event.kind, EventKind::AgentEnd { .. })).count();
        assert_eq!(ends, 3, "{}", render(&events));
    }
}

/// A server whose agents run children at a remote, with its records in a folder.
struct Node {
    harness: Harness,
    serving: JoinHandle<()>,
}

impl Node {
    async fn start(folder: &Path, url: &str) -> Self {
        let spawn = json!({ "agent_id": "far", "task": "find out", "timeout_seconds": 0 });
        let main = [Turn::new().call("agent_spawn", spawn), Turn::new().text("Begun.")];
        let harness = builder("main", ScriptedModel::new().agent("main", main))
            .with_subagent(remote("far", url))
            .with_workspace(folder)
            .with_journal(SqliteJournal::open(folder.join("sessions.db")).unwrap())
            .build()
            .unwrap();
        let tokens = Tokens::new().with_token(TOKEN, None).unwrap();
        let tokens = tokens.with_token("the-token-of-the-tenant", Some("acme")).unwrap();
        let server = mainstem_server::Server::new(harness.clone()).with_tokens(tokens).build().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        #[expect(clippy::disallowed_methods, reason = "aborted by the test")]
        let serving = tokio::spawn(async move { server.serve(listener, Default::default()).await.unwrap() });
        Self { harness, serving }
    }

    /// Stops as `mainstem serve` does.
    async fn stop(self) -> usize {
        self.serving.abort();
        let left = self.harness.leave_tasks();
        self.harness.shutdown(ms(500)).await;
        left
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_replaced_leaves_its_tasks_at_remotes_to_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let words = "one two three four five six seven eight nine ten eleven twelve";
    let far = far_with(Turn::new().pace(ms(60)).say(words)).build().unwrap();
    let (url, serving) = serve(far.clone()).await;
    let first = Node::start(folder.path(), &url).await;
    let tenant = first.harness.tenant("acme").unwrap();
    for harness in [&first.harness, &tenant] {
        let session = harness.open_session("s").await.unwrap();
        session.run("go").unwrap().reply().await.unwrap();
    }
    drop(tenant);
    tokio::time::sleep(ms(200)).await;
    assert_eq!(first.stop().await, 2);
    let next = Node::start(folder.path(), &url).await;
    for harness in [next.harness.clone(), next.harness.tenant("acme").unwrap()] {
        let over = async {
            let tasks = async || harness.tasks().list(&TaskFilter::all()).await.unwrap();
            while tasks().await.is_empty() || !tasks().await.iter().all(TaskRecord::is_over) {
                tokio::time::sleep(ms(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(5), over).await.expect("no server continues the task");
        // The record of a task ends before its log does.
        all_is_done(&harness).await;
        harness.journal().unwrap().flush().await.unwrap();
        let session = harness.open_session("s").await.unwrap();
        let task = session.tasks().await.unwrap().remove(0);
        assert_eq!((task.status, task.result.as_deref()), (TaskStatus::Completed, Some(words)), "{task:?}");
        let events = harness.journal().unwrap().read(session.id(), 1, 10_000).await.unwrap();
        laws(&events).unwrap_or_else(|error| panic!("{error}\n{}", render(&events)));
        let deltas =
            events.iter().filter(|event| event.kind.name() == "TEXT_BLOCK_DELTA" && event.depth() == 1);
        assert_eq!(deltas.count(), 12, "{}", render(&events));
    }
    let runs: Vec<_> = far.sessions().opened().iter().map(|session| session.runs().len()).collect();
    assert_eq!(runs, [1, 1], "each was run once");
    next.stop().await;
    serving.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_child_that_was_silent_since_its_promotion_goes_on() {
    let whole = Whole::run(Speaks::Mainstem).await;
    // As if it had become a task with the last of these events: none names the task yet.
    let is_promotion = |event: &&AgentEvent| event.kind.name() == "TASK_UPDATED";
    let before = &whole.events[..whole.while_it_runs().end - 3];
    let promotion = before.iter().find(is_promotion).unwrap();
    let others = before.iter().filter(|event| !is_promotion(event));
    let in_foreground = |(seq, event): (u64, &AgentEvent)| {
        let mut origin = (*event.origin).clone();
        if let Some(source) = &mut origin.source {
            Arc::make_mut(source).task_id = None;
        }
        let same = AgentEvent::new(seq, event.at, Arc::new(origin), event.kind.clone());
        event
            .metadata
            .as_deref()
            .map_or_else(|| same.clone(), |metadata| same.clone().with_metadata(metadata.clone()))
    };
    let mut events: Vec<_> = (1..).zip(others).map(in_foreground).collect();
    events.push(in_foreground((before.len() as u64, promotion)));
    let (journal, store) = killed_after(&events, &whole.task).await;
    let next = near(Speaks::Mainstem, &whole.url, store, &journal);
    let session = next.open_session("s").await.unwrap();
    all_is_done(&next).await;
    let task = session.tasks().await.unwrap().remove(0);
    assert_eq!((task.status, &task.result), (TaskStatus::Completed, &whole.task.result), "{task:?}");
    // The root's part of this log is made up, so it is not checked against the laws.
    let of_child = |events: &[AgentEvent]| events.iter().filter(|event| event.agent_id() == "far").count();
    assert_eq!(of_child(&so_far(&journal).await), of_child(&whole.events));
}

/// A foreground turn that was cut here goes on there. A further message comes after it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_to_a_child_comes_after_the_turn_that_goes_on_at_its_remote() {
    let slow = Turn::new().pace(ms(150)).say("one two three four five six seven eight nine ten eleven");
    let far = far_with(slow).build().unwrap();
    let (url, serving) = serve(far).await;
    let process = |journal: &Arc<MemoryJournal>| {
        let spawn = json!({ "agent_id": "far", "task": "find out", "timeout_seconds": 600 });
        let main = [Turn::new().call("agent_spawn", spawn), Turn::new().text("All done.")];
        let main = builder("main", ScriptedModel::new().agent("main", main));
        main.with_subagent(remote("far", &url)).with_journal(journal.clone()).build().unwrap()
    };
    let journal = Arc::new(MemoryJournal::new());
    let first = process(&journal);
    // Not read to its end, and not dropped: the server does not know that its reader is gone.
    let mut run = first.open_session("s").await.unwrap().run("go").unwrap();
    while !run.next().await.unwrap().kind.name().starts_with("TEXT_BLOCK_DELTA") {}
    let left = Arc::new(MemoryJournal::new());
    let record = left.open(&"s".parse().unwrap()).await.unwrap();
    so_far(&journal).await.iter().for_each(|event| record.append(event));
    drop(record);
    let session = process(&left).open_session("s").await.unwrap();
    let mut log = session.log().subscribe();
    let key = session.children().remove(0).agent_key;
    session.send(&key, "and now?", SendMode::Queue).unwrap();
    let mut said = String::new();
    let ended = async {
        loop {
            match log.next().await.unwrap().kind.clone() {
                EventKind::TextBlockDelta { delta, .. } => said.push_str(&delta),
                EventKind::AgentEnd { outcome, error, .. } => return (outcome, error),
                _ => {}
            }
        }
    };
    let (outcome, error) = tokio::time::timeout(Duration::from_secs(20), ended).await.unwrap();
    assert_eq!((outcome, said.as_str()), (Outcome::Success, "Done."), "{error:?}");
    serving.abort();
}
