//! Sessions that go on in another process: what was said is known there, also when the first was
//! killed.

use std::{
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use mainstem::{
    journal::{Journal, JournalError, SqliteJournal},
    prelude::{AgentEvent, EventKind},
};
use mainstem_testing::{laws, render};
use serde_json::{Value, json};

use crate::{
    server::{Server, Step},
    support::{Cli, Running, demo, events, mainstem},
};

/// A run of the session `s` in that journal.
fn run(server: &Server, journal: &Path, prompt: &str) -> Cli {
    run_in("s", server, journal, prompt)
}

fn run_in(session: &str, server: &Server, journal: &Path, prompt: &str) -> Cli {
    let cli =
        mainstem("run -m openai:m --progress quiet --journal").arg(journal).arg("--session").arg(session);
    let cli = cli.arg(prompt);
    cli.env("OPENAI_BASE_URL", &server.url()).env("OPENAI_API_KEY", "sk-secret-123456")
}

/// What was said in a request, the instructions aside.
fn said(request: &Value) -> Vec<(&str, &str)> {
    let messages = request["messages"].as_array().unwrap().iter();
    let said =
        messages.map(|message| (message["role"].as_str().unwrap(), message["content"].as_str().unwrap()));
    said.filter(|(role, _)| *role != "system").collect()
}

fn recorded(journal: &Path) -> Vec<AgentEvent> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let journal = SqliteJournal::open(journal).unwrap();
    match runtime.block_on(journal.read(&"s".parse().unwrap(), 1, 10_000)) {
        // Nothing is committed yet.
        Err(JournalError::Unknown { .. }) => Vec::new(),
        events => events.unwrap(),
    }
}

#[test]
fn a_session_goes_on_in_the_next_run() {
    let server = Server::start(|request| match said(request).len() {
        1 => vec![Step::Text("I will.")],
        _ => vec![Step::Text("Blue.")],
    });
    let dir = tempfile::tempdir().unwrap();
    let mistyped = run(&server, &dir.path().join("deep/journal.db"), "Remember blue.").run();
    assert!(mistyped.code == Some(3) && mistyped.stderr.contains("there is no folder /"), "{mistyped:?}");
    assert!(!dir.path().join("deep").exists() && server.requests().is_empty());
    let journal = dir.path().join("journal.db");
    assert_eq!(run(&server, &journal, "Remember blue.").run().stdout, "I will.\n");
    let second = run(&server, &journal, "Which?").run();
    assert_eq!((second.code, &*second.stdout, &*second.stderr), (Some(0), "Blue.\n", ""));
    let expected = [("user", "Remember blue."), ("assistant", "I will."), ("user", "Which?")];
    assert_eq!(said(&server.requests()[1]), expected);
    let all = recorded(&journal);
    laws(&all).unwrap_or_else(|error| panic!("{error}\n{}", render(&all)));
}

#[test]
fn without_a_file_it_is_kept_with_the_users_data() {
    let server = Server::start(|_| vec![Step::Text("Yes.")]);
    let data = tempfile::tempdir().unwrap();
    let ask = |prompt: &str| {
        let cli =
            mainstem("run -m openai:m --session s").arg(prompt).env("OPENAI_API_KEY", "sk-secret-123456");
        let cli = cli.env("OPENAI_BASE_URL", &server.url());
        cli.env("XDG_DATA_HOME", data.path().to_str().unwrap()).run()
    };
    assert_eq!((ask("One.").code, ask("Two.").code), (Some(0), Some(0)));
    assert_eq!(said(&server.requests()[1]).len(), 3);
    assert!(data.path().join("mainstem/journal.db").exists());
}

#[test]
fn the_session_that_was_active_last_is_continued() {
    let server = Server::start(|request| match said(request).last().unwrap().1 {
        "Fail." => vec![Step::Refuse("400 Bad Request", "", "no".to_owned())],
        _ => vec![Step::Text("Yes.")],
    });
    let home = tempfile::tempdir().unwrap();
    let cli = |line: &str| {
        let cli =
            mainstem(line).env("OPENAI_API_KEY", "sk-secret-123456").env("OPENAI_BASE_URL", &server.url());
        cli.env("HOME", home.path().to_str().unwrap())
    };
    let none = cli("run -m openai:m --continue Hi").run();
    assert_eq!((none.code, none.stderr.contains("there is no session yet")), (Some(2), true));
    for (session, prompt) in [("a", "One."), ("b", "Two."), ("a", "Three.")] {
        assert_eq!(cli(&format!("run -m openai:m --session {session} {prompt}")).run().code, Some(0));
    }
    assert_eq!(cli("run -m openai:m -c Four.").run().code, Some(0));
    let asked: Vec<_> = server.requests().last().unwrap()["messages"].as_array().unwrap().clone();
    assert!(asked.iter().any(|message| message["content"] == "Three."), "{asked:?}");
    let (reader, mut writer) = std::io::pipe().unwrap();
    std::io::Write::write_all(&mut writer, b"Five.\nFail.\n").unwrap();
    drop(writer);
    let failed = cli("chat -m openai:m -c").stdin(reader).run();
    assert_eq!(failed.stdout, "Yes.\n", "{failed:?}");

    let begun = cli("sessions show a --at 2").run();
    assert!(begun.stdout.contains("main   running") && !begun.stdout.contains("One."), "{begun:?}");
    let beyond = cli("sessions show a --at 100000").run();
    assert_eq!((beyond.code, &*beyond.stdout), (Some(1), ""), "{beyond:?}");
    assert!(beyond.stderr.contains("event \"100000\""), "{beyond:?}");
    let shown = cli("sessions show a").run().stdout;
    let conversation = shown.split_once("\n> ").unwrap().1;
    assert!(
        conversation.starts_with("One.\n\nYes.\n\n> Three.\n\nYes.\n\n> Four.\n\nYes.\n\n> Five."),
        "{shown}"
    );
    assert!(conversation.contains("> Fail.\n\nerror: "), "{shown}");
}

#[test]
fn verbose_progress_has_times() {
    let done = demo("-v").run();
    let is_time = |line: &str| line.len() > 15 && line.as_bytes()[2] == b':' && line.as_bytes()[8] == b'.';
    let mut lines = done.stderr.lines().filter(|line| line.contains("#1 main"));
    assert!(lines.all(is_time) && done.stderr.contains("#1 main"), "{done:?}");
}

#[test]
fn sessions_are_listed_exported_and_deleted() {
    let server = Server::start(|_| vec![Step::Text("Yes.")]);
    let dir = tempfile::tempdir().unwrap();
    let journal = dir.path().join("j.db");
    let sessions = |command: &str| mainstem(&format!("sessions {command} --journal")).arg(&journal).run();
    assert!(sessions("list").stderr.contains("there is no journal"));
    assert_eq!(run(&server, &journal, "Hi").run().code, Some(0));

    let listed = sessions("list").stdout;
    let row: Vec<_> = listed.lines().nth(1).unwrap().split_whitespace().collect();
    let count = recorded(&journal).len().to_string();
    assert!(row[..3] == ["s", "1", &count] && row[4] == "idle", "{listed}");
    let text: Vec<_> = listed.lines().collect();
    let json: Value = serde_json::from_str(&sessions("list --output json").stdout).unwrap();
    assert_eq!((&json[0]["id"], &json[0]["state"]), (&"s".into(), &"idle".into()));
    assert_eq!(
        (&json[0]["active_run"], &json[0]["last_seq"]),
        (&Value::Null, &recorded(&journal).len().into())
    );

    assert_eq!(run_in("t", &server, &journal, "Hi").run().code, Some(0));
    let first = sessions("list --limit 1");
    let rows: Vec<_> = first.stdout.lines().skip(1).collect();
    assert!(rows.len() == 1 && rows[0].starts_with("t "), "{first:?}");
    assert_eq!(first.stderr, "there are more sessions; `--limit N` lists N of them\n");
    assert_eq!(sessions("list --limit 2").stderr, "");
    let found = sessions("list S").stdout;
    assert!(found.lines().count() == 2 && found.lines().nth(1).unwrap().starts_with("s "), "{found}");
    assert_eq!(sessions("rm t").code, Some(0));

    let shown = sessions("show s").stdout;
    let lines: Vec<_> = shown.lines().collect();
    assert!(
        lines[..2] == text[..]
            && lines[3].starts_with("AGENT  STATUS")
            && lines[4].starts_with("main   success"),
        "{shown}"
    );
    assert_eq!(events(&sessions("export s").stdout), recorded(&journal));
    let missing = "error: there is no session \"t\"; `mainstem sessions list` lists sessions\n";
    for command in ["show t", "export t", "rm s t"] {
        let said = sessions(command);
        assert_eq!((said.code, &*said.stdout, &*said.stderr), (Some(1), "", missing));
    }
    let replay = mainstem("replay s --speed max --progress quiet --journal").arg(&journal).run();
    assert_eq!((replay.code, &*replay.stdout), (Some(0), "Yes.\n"));
    assert_eq!(sessions("rm s").code, Some(0));
    assert_eq!(sessions("list").stderr, "no sessions\n");
}

#[cfg(unix)]
#[test]
fn a_killed_run_has_its_ending_and_the_next_goes_on() {
    let server = Server::start(|request| match said(request).len() {
        1 => vec![Step::Text("Half of it"), Step::Hang],
        _ => vec![Step::Text("Whole.")],
    });
    let dir = tempfile::tempdir().unwrap();
    let journal = dir.path().join("journal.db");
    let first: Running = run(&server, &journal, "Go.").start();
    let has_half = |event: &AgentEvent| matches!(event.kind, EventKind::TextBlockDelta { .. });
    server.until_hanging(1);
    while !recorded(&journal).iter().any(has_half) {
        std::thread::sleep(Duration::from_millis(5));
    }
    let busy = run(&server, &journal, "And?").run();
    assert_eq!((busy.code, &*busy.stdout), (Some(3), ""), "{busy:?}");
    assert!(busy.stderr.starts_with("error: --session s: ") && busy.stderr.contains("open"), "{busy:?}");

    let kept = || mainstem("sessions list --journal").arg(&journal).run().stdout;
    assert!(kept().contains("running"), "{}", kept());
    let reader = mainstem("attach s --once --progress quiet --journal").arg(&journal).start();

    first.signal("KILL");
    assert_eq!(first.done().code, None);
    assert!(kept().contains("unfinished"), "{}", kept());
    let reader = reader.done();
    assert!(reader.code == Some(1) && reader.stderr.contains("--session s --resume"), "{reader:?}");
    let next = run(&server, &journal, "Once more.").run();
    assert_eq!((next.code, &*next.stdout), (Some(0), "Whole.\n"), "{next:?}");
    let expected = [("user", "Go."), ("assistant", "Half of it"), ("user", "Once more.")];
    assert_eq!(said(server.requests().last().unwrap()), expected);
    let all = recorded(&journal);
    laws(&all).unwrap_or_else(|error| panic!("{error}\n{}", render(&all)));
    let ends: Vec<_> = all.iter().filter(|event| event.is_run_end()).map(ToString::to_string).collect();
    assert!(ends.len() == 2 && ends[0].contains("restarted"), "{ends:?}");
}

#[cfg(unix)]
#[test]
fn a_killed_turn_is_taken_up_and_its_finished_child_is_not_asked_again() {
    let spawn = |kid: &str| ("agent_spawn", json!({"agent_id": kid, "task": "Look."}));
    let server = Server::start(move |request| {
        let said = request["messages"].to_string();
        match (said.contains("Go both."), said.contains("quick found it")) {
            // The slow one's turn never comes to an end.
            (false, _) if said.contains("You are slow.") => vec![Step::Text("Well"), Step::Hang],
            (false, _) => vec![Step::Text("quick found it")],
            (true, false) => vec![Step::Call(vec![spawn("quick"), spawn("slow")])],
            (true, true) => vec![Step::Text("One has it.")],
        }
    });
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(dir.path().join("subagents")).unwrap();
    for kid in ["quick", "slow"] {
        let file = format!("---\ndescription: K\n---\nYou are {kid}.\n");
        std::fs::write(dir.path().join(format!("subagents/{kid}.md")), file).unwrap();
    }
    let journal = dir.path().join("journal.db");
    let begin = |more: &str| {
        let cli = mainstem("run -m openai:m --no-files --progress quiet --session s --journal").arg(&journal);
        let cli = cli.arg("-w").arg(dir.path()).arg(more);
        cli.env("OPENAI_BASE_URL", &server.url()).env("OPENAI_API_KEY", "sk-secret-123456")
    };
    let first = begin("Go both.").start();
    let quick_is_done = |event: &AgentEvent| {
        event.agent_label() == "quick" && matches!(event.kind, EventKind::AgentEnd { .. })
    };
    server.until_hanging(1);
    while !recorded(&journal).iter().any(quick_is_done) {
        std::thread::sleep(Duration::from_millis(5));
    }
    first.signal("KILL");
    assert_eq!(first.done().code, None);

    let asked = server.requests().len();
    let next = begin("--resume").run();
    assert_eq!((next.code, &*next.stdout, &*next.stderr), (Some(0), "One has it.\n", ""), "{next:?}");
    let requests = server.requests();
    assert_eq!(requests.len(), asked + 1, "only the root is asked");
    let results: Vec<_> =
        requests[asked]["messages"].as_array().unwrap().iter().filter(|one| one["role"] == "tool").collect();
    assert!(
        results[0]["content"].as_str().unwrap().contains("status: completed\nreply:\nquick found it"),
        "{results:?}"
    );
    assert!(
        results[1]["content"].as_str().unwrap().contains("status: interrupted\nerror: restarted:"),
        "{results:?}"
    );
    let all = recorded(&journal);
    laws(&all).unwrap_or_else(|error| panic!("{error}\n{}", render(&all)));

    let again = begin("--resume").run();
    let expected = "error: --resume: --session s: the latest turn of the session has its answer\n";
    assert_eq!((again.code, &*again.stderr), (Some(2), expected));
}

/// As on a full disk, where SQLite has no room for its files.
#[test]
fn a_journal_that_can_t_be_opened_for_writing_can_be_read() {
    let server = Server::start(|_| vec![Step::Text("Hello.")]);
    let dir = tempfile::tempdir().unwrap();
    let journal = dir.path().join("journal.db");
    assert_eq!(run(&server, &journal, "Hi").run().code, Some(0));
    // An empty log may be left if a reader of the process was the last to close the file.
    let log = dir.path().join("journal.db-wal");
    let _ = std::fs::remove_file(&log);
    std::fs::create_dir(&log).unwrap();
    let on = |line: &str| mainstem(line).arg("--journal").arg(&journal).run();
    let (list, shown, removed) = (on("sessions list"), on("sessions show s"), on("sessions rm s"));
    assert!(list.code == Some(0) && list.stdout.contains("\ns "), "{list:?}");
    assert!(shown.code == Some(0) && shown.stdout.ends_with("> Hi\n\nHello.\n"), "{shown:?}");
    assert!(removed.code == Some(3) && removed.stderr.contains("journal.db"), "{removed:?}");
}

/// `sessions show` has what a model has said before it called a tool, and before it was cut off.
#[test]
fn a_session_shows_all_that_was_said() {
    let calls = AtomicUsize::new(0);
    let server = Server::start(move |_| match calls.fetch_add(1, Ordering::SeqCst) {
        0 => vec![Step::Text("I look."), Step::Call(vec![("agent_list", json!({}))])],
        1 => vec![Step::Text("None"), Step::Garbage],
        _ => vec![Step::Text(" is here.")],
    });
    let dir = tempfile::tempdir().unwrap();
    let journal = dir.path().join("journal.db");
    let first = run(&server, &journal, "Who is here?").arg("--on-cut").arg("fail").run();
    assert_eq!(first.code, Some(1), "{first:?}");
    assert_eq!(run(&server, &journal, "--resume").run().code, Some(0));
    let shown = mainstem("sessions show s --journal").arg(&journal).run().stdout;
    let conversation = &shown[shown.find("> Who").unwrap()..];
    let expected = "> Who is here?\n\nI look.\n  agent_list {}\n\nNone\n\n(cut off here)\n\nerror: ";
    assert!(conversation.starts_with(expected), "{conversation}");
    assert!(conversation.ends_with("\n\n is here.\n"), "{conversation}");
}

/// The reply of a resumed turn has the part that was said before the cut.
#[test]
fn a_resumed_answer_is_whole() {
    let calls = AtomicUsize::new(0);
    let server = Server::start(move |_| match calls.fetch_add(1, Ordering::SeqCst) {
        0 => vec![Step::Text("The first half, "), Step::Garbage],
        // A resume that fails at once, and one that is cut again.
        1 => vec![Step::Refuse("401 Unauthorized", "", "{}".to_owned())],
        2 => vec![Step::Text("the second, "), Step::Garbage],
        3 => vec![Step::Text("and the rest.")],
        4 => vec![Step::Text("Cut "), Step::Garbage],
        5 => vec![Step::Refuse("401 Unauthorized", "", "{}".to_owned())],
        _ => vec![Step::Text("Another answer.")],
    });
    let dir = tempfile::tempdir().unwrap();
    let journal = dir.path().join("journal.db");
    let cut = run(&server, &journal, "Tell me.").arg("--on-cut").arg("fail").run();
    assert_eq!((cut.code, &*cut.stdout), (Some(1), ""), "{cut:?}");
    let resume = || run(&server, &journal, "--resume").arg("--on-cut").arg("fail").run();
    assert!(resume().code != Some(0) && resume().code != Some(0));
    let next = resume();
    let whole = "The first half, the second, and the rest.\n";
    assert_eq!((next.code, &*next.stdout), (Some(0), whole), "{next:?}");
    // The turn of another prompt has nothing to do with what was cut before it.
    for prompt in ["One more.", "Something else."] {
        assert!(run(&server, &journal, prompt).arg("--on-cut").arg("fail").run().code != Some(0));
    }
    let other = resume();
    assert_eq!((other.code, &*other.stdout), (Some(0), "Another answer.\n"), "{other:?}");
}

#[test]
fn what_can_not_be_kept_is_said_beforehand() {
    let server = Server::start(|_| vec![Step::Text("Never.")]);
    let dir = tempfile::tempdir().unwrap();
    let text = dir.path().join("notes.txt");
    std::fs::write(&text, "no database, but another file".repeat(100)).unwrap();
    let foreign = run(&server, &text, "Hi").run();
    assert_eq!((foreign.code, foreign.stderr.lines().count()), (Some(3), 1), "{foreign:?}");
    assert!(foreign.stderr.contains("notes.txt"), "{foreign:?}");
    let alone = mainstem("run --journal j.db Hi").run();
    assert!(alone.code == Some(2) && alone.stderr.contains("--session"), "{alone:?}");
    let script = demo("--session s").run();
    assert!(script.code == Some(2) && script.stderr.contains("--session: the demo"), "{script:?}");
    assert!(server.requests().is_empty());
}

#[test]
fn a_session_that_plans_goes_on_planning_until_it_is_told_to_leave() {
    let server = Server::start(|_| vec![Step::Text("Yes.")]);
    let dir = tempfile::tempdir().unwrap();
    let journal = dir.path().join("journal.db");
    let stderr = |more: &str| {
        let cli = mainstem("run -m openai:m --no-files --progress plain --session s --journal").arg(&journal);
        let cli = more.split_whitespace().fold(cli, Cli::arg).arg("go");
        let cli = cli.env("OPENAI_BASE_URL", &server.url()).env("OPENAI_API_KEY", "sk-secret-123456");
        let ran = cli.run();
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran.stderr
    };
    let planning = "the session is in plan mode; --no-plan leaves it";
    assert!(!stderr("--plan").contains(planning));
    assert!(stderr("").contains(planning));
    assert!(!stderr("--no-plan").contains(planning));
    assert!(!stderr("").contains(planning));
    let modes: Vec<_> = recorded(&journal)
        .iter()
        .filter_map(|event| match event.kind {
            EventKind::PlanModeChanged { active } => Some(active),
            _ => None,
        })
        .collect();
    assert_eq!(modes, [true, false]);
}

#[test]
fn sessions_that_are_not_kept_are_deleted_and_printed() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("j.db");
    for session in ["a", "b"] {
        let job = mainstem(&format!("jobs add Hi --session {session} --journal")).arg(&journal).run();
        assert_eq!(job.code, Some(0), "{job:?}");
        let worker = mainstem("worker -m demo --demo-pace 0 --log off --journal").arg(&journal).start();
        let list = || mainstem("jobs list --all --journal").arg(&journal).run().stdout;
        while list().matches("success").count() < list().lines().count() - 1 {
            std::thread::sleep(Duration::from_millis(20));
        }
        worker.signal("TERM");
        assert_eq!(worker.done().code, Some(0));
    }
    let prune = |more: &str| mainstem(&format!("sessions prune {more} --journal")).arg(&journal).run();
    let check = |more: &str, stdout: &str, stderr: &str| {
        let done = prune(more);
        assert_eq!((done.code, &*done.stdout, &*done.stderr), (Some(0), stdout, stderr), "{more}");
    };
    check("--keep 1h", "", "0 sessions deleted\n");
    check("--keep 1ms --dry-run", "a\nb\n", "2 sessions would be deleted\n");
    check("--keep-size 10GiB", "", "0 sessions deleted\n");
    let sizes: Vec<u64> = ["a", "b"]
        .iter()
        .map(|session| {
            let export = mainstem(&format!("sessions export {session} --journal")).arg(&journal).run();
            export.stdout.lines().map(|line| line.len() as u64).sum()
        })
        .collect();
    // What holds the second alone.
    check(&format!("--keep-size {}", sizes[0] + sizes[1] - 1), "a\n", "1 session deleted\n");
    let list = mainstem("sessions list --journal").arg(&journal).run().stdout;
    assert!(list.lines().count() == 2 && list.contains("\nb "), "{list}");
    check("--keep 1ms --keep-size 0", "b\n", "1 session deleted\n");
    for (more, expected) in [
        ("", "name what is kept: --keep 30d, --keep-size 10GiB, or both"),
        ("--keep soon", "write it like 90s, 5m or 1h 30m"),
        ("--keep-size much", "expected a size, such as 500MiB or 10GiB"),
    ] {
        let done = prune(more);
        assert!(done.code == Some(2) && done.stderr.contains(expected), "{more}: {done:?}");
    }
    let done = mainstem("sessions prune --keep 1h --server http://127.0.0.1:9").run();
    assert!(done.code == Some(2) && done.stderr.contains("`mainstem serve --keep 30d`"), "{done:?}");
    let done = mainstem("serve -m demo --keep 1h").run();
    assert!(
        done.code == Some(2) && done.stderr.contains("--keep and --keep-size require --journal"),
        "{done:?}"
    );
}
