//! Talking, following and looking after tasks: with what is kept here, and with a server.

use std::{path::Path, process::Stdio, time::Duration};

use mainstem::prelude::{AgentEvent, EventKind};
use mainstem_testing::{laws, render};
use serde_json::{Value, json};

use crate::{
    server::{Server, Step},
    support::{Cli, Done, Running, events, mainstem},
};

const TOKEN: &str = "the-token-of-the-test";

/// An answer of about a thousand tokens.
const LONG: &str = include_str!("talk.rs").split_at(4_000).0;

/// A server of the demo, and its address.
fn serve(more: &str, journal: &Path) -> (Running, String) {
    let line = format!("serve -m demo --bind 127.0.0.1:0 --log off --token-file tokens {more} --journal");
    let mut running = mainstem(&line).arg(journal).file("tokens", &format!("{TOKEN}\n")).start();
    let url = running.line().trim().to_owned();
    (running, url)
}

/// A command that asks a server.
fn ask(url: &str, arguments: &str) -> Cli {
    mainstem(arguments).env("MAINSTEM_SERVER", url).env("MAINSTEM_TOKEN", TOKEN)
}

/// What is typed.
fn typed(cli: Cli, text: &str) -> Cli {
    let (reader, mut writer) = std::io::pipe().unwrap();
    std::io::Write::write_all(&mut writer, text.as_bytes()).unwrap();
    cli.stdin(Stdio::from(reader))
}

fn said(request: &Value) -> Vec<&str> {
    let messages = request["messages"].as_array().unwrap().iter();
    messages
        .filter(|one| one["role"] != "system")
        .map(|one| one["content"].as_str().unwrap_or_default())
        .collect()
}

#[test]
fn a_chat_goes_on_from_turn_to_turn_and_from_process_to_process() {
    let server = Server::start(|request| match said(request).len() {
        1 => vec![Step::Text("Hello.")],
        3 => vec![Step::Refuse("401 Unauthorized", "", r#"{"error":{"message":"no such key"}}"#.to_owned())],
        n => vec![Step::Text(if n == 4 { "Again." } else { "And more." })],
    });
    let dir = tempfile::tempdir().unwrap();
    let journal = dir.path().join("j.db");
    let chat = |text: &str| {
        let cli =
            mainstem("chat -m openai:m --no-files --progress quiet --session s --journal").arg(&journal);
        let cli = cli.env("OPENAI_BASE_URL", &server.url()).env("OPENAI_API_KEY", "sk-secret-123456");
        typed(cli, text).run()
    };
    // The second turn fails, which a script is told in the end.
    let first = chat("Hi\n\nOnce more\n/quit\nnever read\n");
    assert_eq!((first.code, &*first.stdout), (Some(1), "Hello.\n"), "{first:?}");
    assert!(first.stderr.starts_with("error: ") && first.stderr.contains("no such key"), "{first:?}");
    let second = chat("And now?\n/agents\n/nonsense\n");
    // An unknown command of a script is an error.
    let unknown = "error: unknown command /nonsense; /help lists the commands\n";
    assert_eq!((second.code, &*second.stdout, &*second.stderr), (Some(1), "Again.\n", unknown), "{second:?}");
    assert_eq!(said(server.requests().last().unwrap()), ["Hi", "Hello.", "Once more", "And now?"]);
    // What has its answer can't be taken up.
    let third = chat("/resume\n");
    assert!(third.code == Some(1) && third.stderr.contains("has its answer"), "{third:?}");
}

#[test]
fn a_file_goes_with_the_next_line_of_the_chat() {
    let server = Server::start(|_| vec![Step::Text("Fine.")]);
    let cli = mainstem("chat -m openai:m --no-files --progress quiet").file("notes.txt", "Look closely.");
    let cli = cli.env("OPENAI_BASE_URL", &server.url()).env("OPENAI_API_KEY", "sk-secret-123456");
    let done = typed(cli, "/attach missing\n/attach notes.txt\nRead it.\nAnd now?\n").run();
    assert_eq!(&done.stdout, "Fine.\nFine.\n", "{done:?}");
    let missing = "error: /attach missing: No such file or directory (os error 2)";
    assert!(done.stderr.contains(missing), "{done:?}");
    let requests = server.requests();
    let content = |number: usize| &requests[1]["messages"][number]["content"];
    assert_eq!(*content(1), "Read it.\n\nThe file `notes.txt`:\n\nLook closely.");
    assert_eq!(*content(3), "And now?");

    // Or it is mentioned; a name of no file is said.
    let server = Server::start(|_| vec![Step::Text("Fine.")]);
    let cli = mainstem("chat -m openai:m --no-files").file("my notes.txt", "Look closely.");
    let cli = cli.env("OPENAI_BASE_URL", &server.url()).env("OPENAI_API_KEY", "sk-secret-123456");
    let done = typed(cli, "Read @\"my notes.txt\", @missing.md, and ask a@b.org.\n").run();
    let asked = &server.requests()[0]["messages"][1]["content"];
    let expected = "Read @\"my notes.txt\", @missing.md, and ask a@b.org.\n\n\
                    The file `my notes.txt`:\n\nLook closely.";
    assert_eq!(asked, expected, "{done:?}");
    assert!(done.stderr.contains("missing.md") && !done.stderr.contains("named \"b.org"), "{done:?}");
}

#[test]
fn a_conversation_is_compacted_in_the_chat() {
    /// Longer than its summary.
    const WELCOME: &str = "Hello, and welcome to this house, dear guest. Please take a seat by the fire, have \
        a cup of tea and some of the cake, and tell us how your journey was and what brings you here today.";
    let server = Server::start(|request| match said(request)[..] {
        [asked] if asked.contains("<messages>") => vec![Step::Text("They greeted each other.")],
        ["Hi"] => vec![Step::Text(WELCOME)],
        _ => vec![Step::Text("Fine.")],
    });
    let cli = mainstem("chat -m openai:m --no-files --progress quiet --journal j.db");
    let cli = cli.env("OPENAI_BASE_URL", &server.url()).env("OPENAI_API_KEY", "sk-secret-123456");
    let done = typed(cli, "Hi\nHow are you?\n/compact\nWell?\n").run();
    let replies = format!("{WELCOME}\nFine.\nFine.\n");
    assert_eq!((done.code, &done.stdout), (Some(0), &replies), "{done:?}");
    let requests = server.requests();
    let last = said(requests.last().unwrap());
    assert!(last[0].contains("They greeted each other."), "{last:?}");
    assert_eq!(last[1..], ["How are you?", "Fine.", "Well?"], "{last:?}");
}

/// Flags and a file decide when a conversation is compacted, and by which model.
#[test]
fn settings_say_when_conversations_are_compacted() {
    let check = |flags: &str, file: &str, expected: &[&str]| {
        let server = Server::start(|request| {
            let is_summary = said(request).first().is_some_and(|text| text.contains("<messages>"));
            vec![Step::Text(if is_summary { "They talk." } else { LONG })]
        });
        let cli = mainstem(&format!("chat -m openai:m --no-files --progress quiet --journal j.db {flags}"));
        let cli = cli.env("OPENAI_BASE_URL", &server.url()).env("OPENAI_API_KEY", "sk-secret-123456");
        let done = typed(cli.file("mainstem.toml", file), "One.\nTwo.\nThree.\nFour.\n").run();
        assert_eq!(done.code, Some(0), "{done:?}");
        let requests = server.requests();
        let is_summary =
            |request: &&Value| said(request).first().is_some_and(|text| text.contains("<messages>"));
        let mut models: Vec<_> =
            requests.iter().filter(is_summary).map(|request| request["model"].as_str().unwrap()).collect();
        models.dedup();
        assert_eq!(models, expected, "{flags} {file}");
    };
    let windows = "[context_windows]\nm = 6000\n";
    check("", "", &[]);
    check("", windows, &["m"]);
    check("--compact-at 0", windows, &[]);
    check("", &format!("compact_at = 0\n{windows}"), &[]);
    check("--compact-at 50 --compaction-model openai:cheap", windows, &["cheap"]);
    check("", &format!("compaction_model = \"openai:cheap\"\n{windows}"), &["cheap"]);
}

#[test]
fn a_turn_that_failed_is_taken_up_in_the_chat() {
    let server = Server::start({
        let asked = std::sync::atomic::AtomicUsize::new(0);
        move |_| match asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
            0 => vec![Step::Refuse("401 Unauthorized", "", "{}".to_owned())],
            _ => vec![Step::Text("Now.")],
        }
    });
    let cli = mainstem("chat -m openai:m --no-files --progress quiet --journal j.db");
    let cli = cli.env("OPENAI_BASE_URL", &server.url()).env("OPENAI_API_KEY", "sk-secret-123456");
    let done = typed(cli, "Hi\n/resume\n").run();
    assert_eq!(done.stdout, "Now.\n", "{done:?}");
    let requests = server.requests();
    assert_eq!(
        requests.iter().map(said).collect::<Vec<_>>(),
        [["Hi"], ["Hi"]],
        "nothing is asked twice over"
    );
}

#[test]
fn a_chat_needs_a_model_or_a_server() {
    let done = mainstem("chat").run();
    assert!(done.code == Some(3) && done.stderr.contains("a chat needs a model"), "{done:?}");
    let done = mainstem("chat -m demo").run();
    assert!(done.code == Some(0) && done.stderr.starts_with("the demo plays a script"), "{done:?}");
    let done = mainstem("chat -m demo --session s").run();
    assert!(done.code == Some(3) && done.stderr.contains("the demo is not recorded"), "{done:?}");
    let done = mainstem("chat --server nowhere").run();
    assert!(done.code == Some(2) && done.stderr.starts_with("error: --server nowhere: "), "{done:?}");
    let done = typed(mainstem("chat --server http://127.0.0.1:1"), "Hi\n").run();
    assert!(
        done.code == Some(1) && done.stderr.contains("http://127.0.0.1:1 can't be reached: "),
        "{done:?}"
    );
    let done = mainstem("chat --server http://127.0.0.1:1 --journal j.db").run();
    assert_eq!(done.code, Some(2), "{done:?}");
}

#[test]
fn a_server_is_talked_with_followed_and_looked_after() {
    let dir = tempfile::tempdir().unwrap();
    let journal = dir.path().join("j.db");
    let (running, url) = serve("--demo-pace 0", &journal);
    let chat = typed(ask(&url, "chat --session one --progress quiet"), "Review it\n/agents\n").run();
    assert!(chat.code == Some(0) && chat.stdout.contains("Don't merge"), "{chat:?}");
    assert!(chat.stdout.contains("AGENT ") && chat.stdout.contains("agent:reviewer:"), "{chat:?}");

    let whole = events(&ask(&url, "sessions export one").run().stdout);
    laws(&whole).unwrap_or_else(|error| panic!("{error}\n{}", render(&whole)));
    let listed: Value = serde_json::from_str(&ask(&url, "sessions list --output json").run().stdout).unwrap();
    assert_eq!((&listed[0]["id"], &listed[0]["last_seq"]), (&json!("one"), &json!(whole.len())));
    let text = ask(&url, "sessions list").run().stdout;
    let shown = ask(&url, "sessions show one").run().stdout;
    let reviewers =
        shown.lines().filter(|line| line.starts_with("reviewer ") && line.contains(" success ")).count();
    assert!(shown.starts_with(&text) && reviewers == 3, "{shown}");
    assert!(
        text.lines().count() == 2 && text.contains("one ") && text.trim_end().ends_with("idle"),
        "{text}"
    );

    let attached = ask(&url, "attach one --once --progress plain").run();
    let reply = chat.stdout.split("AGENT ").next().unwrap();
    assert_eq!((attached.code, &*attached.stdout), (Some(0), reply), "{attached:?}");
    assert!(attached.stderr.contains("reviewer"), "{attached:?}");
    let replayed = ask(&url, "replay one --speed max --progress quiet").run();
    assert_eq!((replayed.code, &*replayed.stdout), (Some(0), reply), "{replayed:?}");
    // The same from the file, which the server has open.
    let kept = mainstem("attach one --once --progress quiet --journal").arg(&journal).run();
    assert_eq!((kept.code, &*kept.stdout), (Some(0), reply), "{kept:?}");

    let tasks: Value = serde_json::from_str(&ask(&url, "tasks list --output json").run().stdout).unwrap();
    let id = tasks[0]["id"].as_str().unwrap();
    for command in ["show", "wait"] {
        let shown = ask(&url, &format!("tasks {command} {id}")).run();
        assert!(
            shown.stdout.contains("status: completed\n") && shown.stdout.contains("\nresult: "),
            "{shown:?}"
        );
    }
    let logs = ask(&url, &format!("tasks logs {id}")).run().stdout;
    assert!(logs.contains("  started: ") && logs.contains("✔ done"), "{logs}");
    for (code, text) in [(0, ""), (1, "there is no task")] {
        let removed = ask(&url, &format!("tasks rm {id}")).run();
        assert!(removed.code == Some(code) && removed.stderr.contains(text), "{removed:?}");
    }
    let unknown = ask(&url, "tasks show task-of-another").run();
    assert!(unknown.code == Some(1) && unknown.stderr.contains("task-of-another"), "{unknown:?}");

    assert_eq!(ask(&url, "sessions rm one").run().code, Some(0));
    assert_eq!(ask(&url, "sessions list").run().stderr, "no sessions\n");
    for command in ["sessions export one", "sessions rm one", "attach one"] {
        let gone = ask(&url, command).run();
        assert!(gone.code != Some(0) && gone.stderr.contains("there is no session \"one\""), "{gone:?}");
    }
    let stranger = mainstem("sessions list --server").arg(&url).run();
    assert!(
        stranger.code == Some(1) && stranger.stderr.trim_end().ends_with("; set MAINSTEM_TOKEN"),
        "{stranger:?}"
    );
    running.signal("INT");
    assert_eq!(running.done().code, Some(0));
}

/// A chat asks for a model that the server refuses, and goes back to the agent's.
#[test]
fn a_chat_goes_back_from_a_model_that_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (running, url) = serve("--demo-pace 0 --allow-model demo", &dir.path().join("j.db"));
    let chat = ask(&url, "chat --progress quiet --session two");
    let chat = typed(chat, "/model openai:gpt-4o\nReview it\n/model default\nReview it\n").run();
    assert!(chat.stderr.contains("lets callers choose demo, not \"openai:gpt-4o\""), "{chat:?}");
    assert_eq!(chat.stdout.matches("Don't merge").count(), 1, "{chat:?}");
    running.signal("INT");
    assert_eq!(running.done().code, Some(0));
}

#[test]
fn a_server_runs_what_is_asked_here() {
    let dir = tempfile::tempdir().unwrap();
    let (running, url) =
        serve("--demo-pace 0 --allow-agent tester --allow-model demo", &dir.path().join("j.db"));
    let run = |arguments: &str| {
        let cli = mainstem(&format!("run {arguments} --progress quiet --server")).arg(&url).arg("Review it");
        cli.env("MAINSTEM_TOKEN", TOKEN)
    };
    let text = run("--session one").run();
    assert!(
        text.code == Some(0) && text.stdout.starts_with("Don't merge") && text.stderr.is_empty(),
        "{text:?}"
    );
    let lines = run("--output ndjson --background detach").run();
    let all = events(&lines.stdout);
    laws(&all).unwrap_or_else(|error| panic!("{error}\n{}", render(&all)));
    let object: Value = serde_json::from_str(&run("--output json").run().stdout).unwrap();
    assert!(object["reply"].as_str().unwrap().starts_with("Don't merge"), "{object}");
    assert!(object["agents"].as_array().unwrap().len() > 3 && object["outcome"] == "success", "{object}");
    let record = dir.path().join("run.jsonl");
    let only = run(&format!("--output ndjson --only-agent tester --record {}", record.display())).run();
    assert!(events(&only.stdout).iter().all(|event| event.agent_label() == "tester"), "{only:?}");
    assert!(
        std::fs::read_to_string(&record).unwrap().lines().count() > 100,
        "filters don't apply to the record"
    );

    let led = run("-a tester --output ndjson").run();
    let all = events(&led.stdout);
    laws(&all).unwrap_or_else(|error| panic!("{error}\n{}", render(&all)));
    assert!(matches!(&all[0].kind, EventKind::AgentStart { name, .. } if &**name == "tester"), "{led:?}");
    let refused = run("-m openai:gpt-4o").run();
    assert!(
        refused.code == Some(1) && refused.stderr.contains("lets callers choose demo, not \"openai:gpt-4o\""),
        "{refused:?}"
    );
    assert_eq!(run("-m demo").run().code, Some(0));
    let unknown = run("-a unknown").run();
    assert!(
        unknown.code == Some(1) && unknown.stderr.contains("this server runs main, tester, not \"unknown\""),
        "{unknown:?}"
    );
    let prose = |events: &[AgentEvent]| {
        let is_prose = |event: &&AgentEvent| {
            event.source().is_none() && matches!(event.kind, EventKind::TextBlockDelta { .. })
        };
        events.iter().filter(is_prose).count()
    };
    let gated = events(&run("--gate-root-text --output ndjson").run().stdout);
    assert!(0 < prose(&gated) && prose(&gated) < prose(&events(&lines.stdout)), "{}", render(&gated));

    let refused = run("--resume --session one").run();
    assert_eq!(refused.code, Some(2), "a prompt, or --resume");
    let resume = mainstem("run --resume --session one --server").arg(&url).env("MAINSTEM_TOKEN", TOKEN).run();
    assert!(resume.code == Some(2) && resume.stderr.contains("has its answer"), "{resume:?}");
    let local = mainstem("run -w . --server http://127.0.0.1:1 Hi").run();
    assert!(local.code == Some(2) && local.stderr.contains("--workspace"), "{local:?}");
    let away = mainstem("run --server http://127.0.0.1:1 Hi").run();
    assert!(away.code == Some(1) && away.stderr.contains("can't be reached"), "{away:?}");
    running.signal("INT");
    assert_eq!(running.done().code, Some(0));
}

#[test]
fn a_run_of_a_server_is_stopped_from_here() {
    let dir = tempfile::tempdir().unwrap();
    let (running, url) = serve("--demo-pace 5", &dir.path().join("j.db"));
    let here = || {
        mainstem("run --progress plain --session one --server")
            .arg(&url)
            .arg("Review it")
            .env("MAINSTEM_TOKEN", TOKEN)
    };
    let begun = here().start();
    let until = std::time::Instant::now() + Duration::from_secs(20);
    while !ask(&url, "sessions list").run().stdout.contains("running") {
        assert!(std::time::Instant::now() < until, "no run has begun");
    }
    begun.signal("INT");
    let done = begun.done();
    assert!(done.code == Some(130) && done.stderr.contains("cancelling"), "{done:?}");
    assert!(ask(&url, "sessions list").run().stdout.contains("idle"), "it was cancelled there");
    let late = mainstem("run --progress quiet --timeout 300ms --server").arg(&url).arg("Review it");
    let late = late.env("MAINSTEM_TOKEN", TOKEN).run();
    assert!(late.code == Some(124) && late.stderr.contains("no reply within 300ms"), "{late:?}");
    // And that is what the server has recorded.
    let listed = ask(&url, "sessions list --output json").run().stdout;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let timed = listed.as_array().unwrap().iter().map(|session| session["id"].as_str().unwrap());
    let timed = timed.filter(|id| *id != "one").collect::<Vec<_>>();
    let ends = events(&ask(&url, &format!("sessions export {}", timed[0])).run().stdout);
    let end = ends.iter().rfind(|event| event.is_run_end()).unwrap().to_string();
    assert!(end.contains("AGENT_END timeout") && end.contains("timed out after 300 ms"), "{end}");
    running.signal("INT");
    assert_eq!(running.done().code, Some(0));
}

#[test]
fn an_attached_client_shows_each_event_of_a_run_once() {
    let dir = tempfile::tempdir().unwrap();
    let journal = dir.path().join("j.db");
    let (running, url) = serve("--demo-pace 0.2", &journal);
    let mut chat = typed(ask(&url, "chat --session one --progress quiet"), "Review it\n").start();
    let until = std::time::Instant::now() + Duration::from_secs(20);
    // Other processes know only what is on the disk.
    let kept = || mainstem("sessions list --journal").arg(&journal).run();
    while !kept().stdout.contains("running") {
        assert!(std::time::Instant::now() < until, "no run has begun");
    }
    let there = ask(&url, "attach one --once --from 1 --progress quiet").start();
    let here = mainstem("attach one --once --from 1 --progress quiet --journal").arg(&journal).start();
    let (there, here) = (there.done(), here.done());
    assert!(chat.wait().success());
    assert!(there.code == Some(0) && there.stdout.contains("Don't merge"), "{there:?}");
    assert_eq!(here.stdout, there.stdout);
    // One that is not to end with the run goes on until it is stopped.
    let follower = ask(&url, "attach one --progress quiet").start();
    std::thread::sleep(Duration::from_millis(300));
    follower.signal("INT");
    let follower = follower.done();
    assert_eq!((follower.code, &*follower.stdout), (Some(130), &*there.stdout));
    running.signal("KILL");
}

/// Does not remove a task that is running.
fn is_kept(tasks: &impl Fn(&str) -> Done, id: &str) {
    let early = tasks(&format!("rm {id}"));
    let told = format!("error: task {id} is running; stop it first: mainstem tasks cancel {id}\n");
    assert_eq!((early.code, early.stderr), (Some(1), told));
}

/// Removes a task that is over: all that are named are removed, or none.
fn are_removed(tasks: &impl Fn(&str) -> Done, id: &str) {
    assert_eq!(tasks(&format!("rm {id} task-of-another")).code, Some(1));
    let removed = tasks(&format!("rm {id} {id}"));
    assert_eq!((removed.code, &*removed.stdout, &*removed.stderr), (Some(0), "", ""));
    let left: Value = serde_json::from_str(&tasks("list --output json").stdout).unwrap();
    assert!(left.as_array().unwrap().iter().all(|task| task["id"] != id) && left[0].is_object(), "{left}");
}

#[test]
fn tasks_of_the_workspace_are_listed_shown_and_stopped() {
    let spawn = json!({"agent_id": "kid", "task": "Look around.", "timeout_seconds": 0});
    let server = Server::start(move |request| {
        let said = request["messages"].to_string();
        match (said.contains("You are a kid."), said.contains("accepted")) {
            (true, _) => vec![Step::Text("I look"), Step::Hang],
            (false, false) => vec![Step::Call(vec![("agent_spawn", spawn.clone())])],
            (false, true) => vec![Step::Text("It works on it.")],
        }
    });
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(dir.path().join("subagents")).unwrap();
    std::fs::write(dir.path().join("subagents/kid.md"), "---\ndescription: K\n---\nYou are a kid.\n")
        .unwrap();
    let journal = dir.path().join("j.db");
    let start = |session: &str| {
        let line = format!("run -m openai:m --no-files --progress quiet --session {session} Go --journal");
        let run = mainstem(&line).arg(&journal).arg("-w").arg(dir.path());
        run.env("OPENAI_BASE_URL", &server.url()).env("OPENAI_API_KEY", "sk-secret-123456").start()
    };
    let run = start("s");
    server.until_hanging(1);
    let tasks = |arguments: &str| mainstem(&format!("tasks {arguments} -w")).arg(dir.path()).run();
    let listed: Value = serde_json::from_str(&tasks("list --output json --status running").stdout).unwrap();
    let id = listed[0]["id"].as_str().unwrap_or_else(|| panic!("{listed}")).to_owned();
    let text = tasks("list").stdout;
    assert!(text.contains("kid") && text.contains("running") && text.contains("Look around."), "{text}");
    let late = tasks(&format!("wait {id} --timeout 100ms"));
    assert!(late.code == Some(124) && late.stderr.contains("has not ended after 100ms"), "{late:?}");
    let logs = mainstem(&format!("tasks logs {id} --journal")).arg(&journal).arg("-w").arg(dir.path()).run();
    assert!(logs.stdout.contains("kid  started: Look around."), "{logs:?}");
    is_kept(&tasks, &id);
    let stopped = tasks(&format!("cancel {id}"));
    assert_eq!(stopped.code, Some(0), "{stopped:?}");
    let over = tasks(&format!("wait {id} --timeout 10s"));
    assert!(over.code == Some(0) && over.stdout.contains("status: cancelled"), "{over:?}");
    let run = run.done();
    assert_eq!(run.code, Some(0), "{run:?}");
    // A task whose executor hangs does not stop because it is asked to.
    let mut hanging = start("hanging");
    server.until_hanging(2);
    hanging.signal("STOP");
    let listed: Value = serde_json::from_str(&tasks("list --output json --status running").stdout).unwrap();
    let id = listed[0]["id"].as_str().unwrap_or_else(|| panic!("{listed}"));
    let unheard = tasks(&format!("cancel {id}"));
    assert!(unheard.code == Some(1) && unheard.stdout.contains("status: running"), "{unheard:?}");
    assert!(
        unheard.stderr.contains("has not stopped: its executor has not answered within 5 s"),
        "{unheard:?}"
    );
    // It has failed once its executor is dead.
    hanging.signal("KILL");
    hanging.wait();
    let dead = tasks(&format!("cancel {id}"));
    assert!(dead.code == Some(0) && dead.stdout.contains("status: failed"), "{dead:?}");
    assert!(dead.stdout.contains("executor lost"), "{dead:?}");
    are_removed(&tasks, id);
    let unknown = tasks("show task-of-another");
    assert_eq!(
        (unknown.code, &*unknown.stderr),
        (Some(1), "error: there is no task \"task-of-another\"; `mainstem tasks list` lists tasks\n")
    );
}

#[test]
fn completions_are_written_for_each_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let done = mainstem(&format!("completions {shell}")).run();
        assert!(
            done.code == Some(0) && done.stdout.contains("replay") && done.stdout.contains("attach"),
            "{shell}"
        );
    }
    assert_eq!(mainstem("completions tcsh").run().code, Some(2));
}

#[test]
fn a_server_logs_requests_and_no_secrets() {
    let line = "serve -m demo --demo-pace 0 --bind 127.0.0.1:0 --log json --token-file tokens";
    let mut running = mainstem(line).file("tokens", &format!("{TOKEN}\n")).start();
    let url = running.line().trim().to_owned();
    typed(ask(&url, "chat --session secret-session --progress quiet"), "a secret question\n").run();
    mainstem("sessions list --server").arg(&url).env("MAINSTEM_TOKEN", "a-wrong-token-of-another").run();
    running.signal("INT");
    let done = running.done();
    let lines: Vec<Value> = done.stderr.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let has = |route: &str, status: u64| {
        lines.iter().any(|line| line["route"] == route && line["status"] == status && line["ms"].is_number())
    };
    assert!(has("/v1/sessions/{session}/runs", 202) && has("/v1/sessions", 401), "{done:?}");
    assert!(!done.stderr.contains("secret") && !done.stderr.contains("token-of"), "{done:?}");
    let wrong = mainstem("serve -m demo --log text").env("MAINSTEM_LOG", "a=b=c").run();
    assert!(wrong.code == Some(3) && wrong.stderr.contains("MAINSTEM_LOG"), "{wrong:?}");
}

#[test]
fn a_reader_goes_on_where_a_killed_server_was() {
    let dir = tempfile::tempdir().unwrap();
    let journal = dir.path().join("j.db");
    let (first, url) = serve("--demo-pace 0.5", &journal);
    let port = url.rsplit(':').next().unwrap().to_owned();
    let chat = typed(ask(&url, "chat --session one --progress plain"), "Review it\n").start();
    std::thread::sleep(Duration::from_millis(1200));
    let attached = ask(&url, "attach one --progress plain").start();
    std::thread::sleep(Duration::from_millis(300));
    first.signal("KILL");
    drop(first.done());
    // Longer than `attach` takes to ask for the state of the run.
    std::thread::sleep(Duration::from_millis(1200));
    let line = format!(
        "serve -m demo --demo-pace 0 --bind 127.0.0.1:{port} --log off --token-file tokens --journal"
    );
    let second = mainstem(&line).arg(&journal).file("tokens", &format!("{TOKEN}\n")).start();
    // Its turn was cut off, and it is told so by the server that came after.
    let chat = chat.done();
    assert!(
        chat.code == Some(1) && chat.stderr.contains("the process that ran the agent has ended"),
        "{chat:?}"
    );
    attached.signal("INT");
    let attached = attached.done();
    assert!(
        attached.code == Some(130) && attached.stderr.contains("the process that ran the agent has ended"),
        "{attached:?}"
    );
    let whole = events(&ask(&url, "sessions export one").run().stdout);
    laws(&whole).unwrap_or_else(|error| panic!("{error}\n{}", render(&whole)));
    assert!(whole.iter().any(|event| matches!(&event.kind, EventKind::AgentEnd { error: Some(error), .. } if error.code == "restarted")));
    second.signal("INT");
    assert_eq!(second.done().code, Some(0));
}

#[test]
fn a_run_whose_server_is_gone_says_so_and_shows_what_it_had_heard() {
    let dir = tempfile::tempdir().unwrap();
    let (server, url) = serve("--demo-pace 5", &dir.path().join("j.db"));
    let run =
        mainstem("run --progress quiet --gate-root-text --output ndjson --session one --server").arg(&url);
    let record = dir.path().join("run.jsonl");
    let run = run.arg("Review it").arg("--record").arg(&record).env("MAINSTEM_TOKEN", TOKEN).start();
    // What the root says is held back until it is known whether it calls tools.
    let heard = || std::fs::read_to_string(&record).unwrap_or_default();
    let until = std::time::Instant::now() + Duration::from_secs(20);
    while !heard().contains("TEXT_BLOCK_DELTA") {
        assert!(std::time::Instant::now() < until, "nothing is said");
        std::thread::sleep(Duration::from_millis(5));
    }
    server.signal("KILL");
    drop(server.done());
    let done = run.done();
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.stderr.contains(&format!("error: {url} can't be reached")), "{done:?}");
    let (shown, heard) = (events(&done.stdout), events(&heard()));
    assert!(shown == heard && !heard.iter().any(AgentEvent::is_run_end), "{}", render(&heard));
}

#[test]
fn a_line_that_is_no_utf8_is_one_line_and_not_the_end() {
    let server = Server::start(|_| vec![Step::Text("Yes.")]);
    let cli = mainstem("chat -m openai:m --no-files --progress quiet --journal j.db");
    let cli = cli.env("OPENAI_BASE_URL", &server.url()).env("OPENAI_API_KEY", "sk-secret-123456");
    let (reader, mut writer) = std::io::pipe().unwrap();
    std::io::Write::write_all(&mut writer, b"one\n\xff\nthree\n").unwrap();
    drop(writer);
    let done = cli.stdin(Stdio::from(reader)).run();
    assert_eq!((done.code, &*done.stdout), (Some(0), "Yes.\nYes.\nYes.\n"), "{done:?}");
    assert_eq!(said(server.requests().last().unwrap()), ["one", "Yes.", "\u{fffd}", "Yes.", "three"]);
}
