//! Background tasks at the end of a run.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    thread,
    time::Duration,
};

use mainstem::journal::{Journal, SqliteJournal};
use mainstem_event::{AgentEvent, EventKind, FleetState};
use mainstem_testing::{laws, render};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    server::{Server, Step},
    support::{Cli, events, mainstem},
};

/// The root begins a task and answers when the gate is open; told of its end, it answers again.
fn fleet(child: Vec<Step>) -> Server {
    paced_fleet(Duration::ZERO, child)
}

/// The same with a child that thinks for some time.
fn paced_fleet(pace: Duration, child: Vec<Step>) -> Server {
    Server::start(move |request| {
        let text = request["messages"].to_string();
        let spawn = json!({ "agent_id": "general-purpose", "task": "Dig", "timeout_seconds": 0 });
        match () {
            () if text.contains("You are a subagent") => {
                thread::sleep(pace);
                child.clone()
            }
            () if text.contains("Background tasks delivered") => vec![Step::Text("Gold.")],
            () if text.contains("status: accepted") => vec![Step::Gate, Step::Text("Begun.")],
            () => vec![Step::Call(vec![("agent_spawn", spawn)])],
        }
    })
}

fn dig(server: &Server, workspace: &TempDir, arguments: &str) -> Cli {
    let cli = mainstem(&format!("run {arguments} Dig -w")).arg(workspace.path());
    cli.env("OPENAI_BASE_URL", &server.url())
}

/// The only task that the workspace knows.
fn task(workspace: &TempDir) -> Value {
    let directory = fs::read_dir(workspace.path().join("agents/main/tasks")).unwrap();
    let files =
        directory.map(|entry| entry.unwrap().path()).filter(|path| path.extension().unwrap() == "json");
    let files: Vec<_> = files.collect();
    let tasks: Value = serde_json::from_str(&fs::read_to_string(&files[0]).unwrap()).unwrap();
    tasks.as_object().unwrap().values().next().unwrap().clone()
}

#[test]
fn wait_answers_with_what_the_task_found() {
    let server = fleet(vec![Step::Text("A nugget of gold.")]);
    server.open_gate();
    for arguments in ["--output json", "--output json --background wait"] {
        let workspace = tempfile::tempdir().unwrap();
        let done = dig(&server, &workspace, arguments).run();
        let json: Value = serde_json::from_str(&done.stdout).unwrap();
        assert_eq!(
            (done.code, &json["reply"], &json["outcome"]),
            (Some(0), &json!("Gold."), &json!("success"))
        );
        let task = task(&workspace);
        assert_eq!((&task["status"], &task["result"]), (&json!("completed"), &json!("A nugget of gold.")));
        assert!(task["deliveredAt"].is_string(), "{task}");
    }
}

#[test]
fn a_deleted_session_leaves_no_task_in_the_workspace() {
    let server = fleet(vec![Step::Text("A nugget of gold.")]);
    server.open_gate();
    let workspace = tempfile::tempdir().unwrap();
    let journal = workspace.path().join("journal.db");
    let run = |arguments: &str| dig(&server, &workspace, arguments).arg("--journal").arg(&journal).run();
    assert_eq!(run("--session s --progress quiet").code, Some(0));
    let tasks = || listed(&workspace, "list --output json");
    assert_eq!(tasks().as_array().unwrap().len(), 1);
    let rm = mainstem("sessions rm s --journal").arg(&journal).arg("-w").arg(workspace.path()).run();
    assert_eq!((rm.code, &*rm.stderr), (Some(0), ""));
    assert_eq!(tasks(), json!([]));
}

#[test]
fn cancel_stops_the_task_and_its_connection() {
    let server = fleet(vec![Step::Text("Well, "), Step::Hang]);
    let workspace = tempfile::tempdir().unwrap();
    let running = dig(&server, &workspace, "--output ndjson --background cancel").start();
    server.until_hanging(1);
    server.open_gate();
    let done = running.done();
    assert_eq!(done.code, Some(0), "{done:?}");
    server.closed(1);
    let events = events(&done.stdout);
    laws(&events).unwrap();
    assert!(
        matches!(events.last().unwrap().kind, EventKind::AgentEnd { .. }) && events.last().unwrap().is_root()
    );
    assert_eq!(task(&workspace)["status"], "cancelled");
}

#[test]
fn detach_needs_somebody_to_do_the_work() {
    let done = mainstem("run --background detach Dig").run();
    assert_eq!(done.code, Some(2), "{done:?}");
    assert!(done.stderr.contains("use wait or cancel"), "{done:?}");
}

#[test]
fn a_signal_stops_tasks_too_and_their_ends_are_recorded() {
    let server = fleet(vec![Step::Text("Well, "), Step::Hang]);
    let workspace = tempfile::tempdir().unwrap();
    let record = workspace.path().join("all.ndjson");
    let mut running = dig(&server, &workspace, "--progress quiet").arg("--record").arg(&record).start();
    server.until_hanging(1);
    server.open_gate();
    // The root has answered by then, or is about to; it waits for the task.
    thread::sleep(Duration::from_millis(100));
    running.signal("INT");
    running.wait();
    server.closed(1);
    let all = events(&fs::read_to_string(record).unwrap());
    laws(&all).unwrap();
    assert_eq!(task(&workspace)["status"], "cancelled");
    let told = all
        .iter()
        .any(|event| matches!(event.kind, EventKind::TaskUpdated { to, .. } if to.as_str() == "cancelled"));
    assert!(told);
    assert_eq!(running.done().code, Some(130));
}

/// What the workspace's tasks are, as another process reads them.
fn listed(workspace: &TempDir, command: &str) -> Value {
    let done = mainstem(&format!("tasks {command} -w")).arg(workspace.path()).run();
    assert_eq!(done.code, Some(0), "{done:?}");
    serde_json::from_str(&done.stdout).unwrap()
}

fn recorded(journal: &Path) -> Vec<AgentEvent> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let journal = SqliteJournal::open(journal).unwrap();
    runtime.block_on(journal.read(&"s".parse().unwrap(), 1, 10_000)).unwrap()
}

/// A run of the session `s`, recorded in the workspace.
fn ask(server: &Server, workspace: &TempDir, prompt: &str) -> Cli {
    let cli = mainstem("run --output ndjson --progress quiet --session s --background wait --journal");
    let cli = cli.arg(workspace.path().join("journal.db")).arg(prompt).arg("-w").arg(workspace.path());
    cli.env("OPENAI_BASE_URL", &server.url())
}

/// Checks that the session's log has the same end of each task as the list.
fn check_agrees(workspace: &TempDir, place: &str) {
    let (all, mut fleet) = (recorded(&workspace.path().join("journal.db")), FleetState::default());
    laws(&all).unwrap_or_else(|error| panic!("{place}: {error}\n{}", render(&all)));
    all.iter().for_each(|event| fleet.apply(event));
    let logged: BTreeMap<_, _> =
        fleet.tasks.iter().map(|(id, status)| (id.as_str(), status.as_str())).collect();
    let list = listed(workspace, "list --output json");
    let records = list.as_array().unwrap().iter();
    let kept: BTreeMap<_, _> =
        records.map(|task| (task["id"].as_str().unwrap(), task["status"].as_str().unwrap())).collect();
    assert_eq!(logged, kept, "{place}:\n{}", render(&all));
    assert!(fleet.tasks.values().all(|status| status.is_terminal()), "{place}: {kept:?}");
}

#[test]
fn the_task_of_a_killed_run_has_failed_at_once_in_the_list_and_in_the_log() {
    let server = fleet(vec![Step::Text("Well, "), Step::Hang]);
    let workspace = tempfile::tempdir().unwrap();
    let mut running = ask(&server, &workspace, "Dig").start();
    server.until_hanging(1);
    assert_eq!(listed(&workspace, "list --output json")[0]["status"], "running");
    running.signal("KILL");
    running.wait();
    let killed = listed(&workspace, "list --output json");
    assert_eq!((killed.as_array().unwrap().len(), &killed[0]["status"]), (1, &json!("failed")), "{killed}");
    assert_eq!(killed[0]["error"]["code"], "executor_lost", "{killed}");
    let next = ask(&server, &workspace, "And?").run();
    assert_eq!(next.code, Some(0), "{next:?}");
    check_agrees(&workspace, "killed while the task hangs");
    let task = task(&workspace);
    assert_eq!(task["status"], "failed");
    assert!(task["deliveredAt"].is_string(), "{task}");
}

#[test]
fn wherever_a_run_is_killed_its_log_and_its_tasks_agree() {
    let child = vec![Step::Text("A nugget "), Step::Text("of gold.")];
    let server = paced_fleet(Duration::from_millis(100), child);
    server.open_gate();
    let mut ended = BTreeSet::new();
    for seen in (1..40).step_by(3) {
        let workspace = tempfile::tempdir().unwrap();
        let mut running = ask(&server, &workspace, "Dig").start();
        let is_over = (0..seen).any(|_| running.line().is_empty());
        running.signal("KILL");
        running.wait();
        let place = format!("killed after {seen} events");
        // Every second time its tasks are listed before the session is opened.
        if seen % 2 == 0 {
            let list = listed(&workspace, "list --output json --status running");
            assert_eq!(list, json!([]), "{place}");
        }
        let next = ask(&server, &workspace, "And?").run();
        assert_eq!(next.code, Some(0), "{place}: {next:?}");
        check_agrees(&workspace, &place);
        let list = listed(&workspace, "list --output json");
        ended.extend(list.as_array().unwrap().iter().map(|task| task["status"].to_string()));
        if is_over {
            break;
        }
    }
    // Or nothing was shown by this.
    assert_eq!(ended.len(), 2, "{ended:?}");
}
