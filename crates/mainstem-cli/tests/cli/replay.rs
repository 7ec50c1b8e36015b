//! What was recorded is shown again, as it was and as fast as one likes.

use std::time::{Duration, Instant};

use mainstem::prelude::{AgentEvent, EventKind};
use mainstem_testing::{laws, render};
use serde_json::{Value, json};

use crate::{
    server::{Server, Step},
    support::{Cli, demo, events, mainstem},
};

/// The demo, recorded; what it said on stdout and stderr.
fn recorded() -> (String, String, String) {
    let file = tempfile::NamedTempFile::new().unwrap();
    let done = demo("--progress plain --record").arg(file.path()).run();
    assert_eq!(done.code, Some(0), "{done:?}");
    (std::fs::read_to_string(file.path()).unwrap(), done.stdout, done.stderr)
}

#[test]
fn a_replay_looks_as_the_run_did() {
    let (file, stdout, stderr) = recorded();
    let shown = mainstem("replay r.jsonl --speed max --progress plain").file("r.jsonl", &file).run();
    assert_eq!((shown.code, shown.stdout), (Some(0), stdout));
    assert_eq!(shown.stderr, stderr);
}

#[test]
fn it_takes_its_time() {
    let (file, ..) = recorded();
    // Two events of it, 800 ms apart, and one a night later.
    let at = |line: &str, at: &str| {
        let mut event: Value = serde_json::from_str(line).unwrap();
        event["createdAt"] = at.into();
        format!("{event}\n")
    };
    let times = ["2026-01-01T00:00:00Z", "2026-01-01T00:00:00.800Z", "2026-01-02T00:00:00Z"];
    let file: String = file.lines().zip(times).map(|(line, time)| at(line, time)).collect();
    let took = |speed: &str| {
        let began = Instant::now();
        let replay = mainstem("replay r.jsonl --progress quiet --speed").arg(speed);
        assert_eq!(replay.file("r.jsonl", &file).run().code, Some(0));
        began.elapsed()
    };
    let (slow, fast, at_once) = (took("8"), took("1000000"), took("max"));
    assert!(slow >= Duration::from_millis(3100), "a tenth of a second, and the longest pause: {slow:?}");
    assert!(fast >= Duration::from_millis(80) && fast < slow, "{fast:?}");
    assert!(at_once < slow, "{at_once:?}");
}

#[test]
fn what_is_no_record_is_said_with_its_place() {
    let (file, ..) = recorded();
    let check = |text: &str, place: &str| {
        let said = mainstem("replay r.jsonl --speed max --progress quiet").file("r.jsonl", text).run();
        assert!(said.code == Some(1) && said.stderr.starts_with(place), "{said:?}");
        assert_eq!(said.stderr.lines().count(), 1, "{said:?}");
    };
    let first = file.lines().next().unwrap();
    check("hello\n", "error: r.jsonl:1:1: not an event: expected value\n");
    check(&format!("{first}\n\n{{\"seq\": 2}}\n"), "error: r.jsonl:3:10: not an event: ");
    check(&format!("{first}\n{}", &first[..first.len() / 2]), "error: r.jsonl:2:");
    let none = mainstem("replay nothing").run();
    // The command line is valid, and the session does not exist: the code of `sessions show`.
    assert_eq!(none.code, Some(1));
    assert!(none.stderr.starts_with("error: there is no file \"nothing\", and no session"), "{none:?}");
    for speed in ["0", "-1", "NaN", "fast"] {
        let said = mainstem("replay x").arg(format!("--speed={speed}")).run();
        assert!(said.code == Some(2) && said.stderr.contains("above 0"), "{said:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn an_endless_line_is_refused() {
    // With a bound on its memory, the process is aborted if it reads on.
    let check = |command: &str, place: &str| {
        let script = format!("ulimit -v 1048576; {command}");
        let mut run = std::process::Command::new("sh");
        run.args(["-c", &script]).env("MAINSTEM", env!("CARGO_BIN_EXE_mainstem"));
        let done = run.output().unwrap();
        let stderr = String::from_utf8_lossy(&done.stderr);
        assert_eq!(stderr, format!("error: {place}: the line is longer than 128 MiB\n"));
        assert_eq!(done.status.code(), Some(1));
    };
    check("exec \"$MAINSTEM\" replay /dev/zero", "/dev/zero:1");
    check("(echo; cat /dev/zero) | \"$MAINSTEM\" replay /dev/stdin", "/dev/stdin:2");
}

#[test]
fn a_damaged_event_costs_that_event_and_a_damaged_row_that_session() {
    let server = Server::start(|_| vec![Step::Text("Yes.")]);
    let dir = tempfile::tempdir().unwrap();
    let journal = dir.path().join("j.db");
    for session in ["s", "t"] {
        let cli = mainstem("run -m openai:m --no-files --progress quiet Hi --session")
            .arg(session)
            .arg("--journal");
        let cli =
            cli.arg(&journal).env("OPENAI_BASE_URL", &server.url()).env("OPENAI_API_KEY", "sk-secret-123456");
        assert_eq!(cli.run().stdout, "Yes.\n");
    }
    let damage = |sql: &str| rusqlite::Connection::open(&journal).unwrap().execute_batch(sql).unwrap();
    let within = |line: &str| mainstem(line).arg("--journal").arg(&journal).run();
    let whole = events(&within("sessions export s").stdout);
    damage("UPDATE events SET event = json_remove(event, '$.modelName') WHERE seq = 2");
    let shown = within("replay s --speed max --progress plain");
    assert_eq!((shown.code, &*shown.stdout), (Some(0), "Yes.\n"), "{shown:?}");
    let reason = "MODEL_CALL_START has no field \"modelName\"";
    assert!(
        shown.stderr.contains(&format!("warning: event 2 can't be read: {reason} at line 1 ")),
        "{shown:?}"
    );
    let exported = events(&within("sessions export s").stdout);
    assert_eq!((exported.len(), &exported[2..]), (whole.len(), &whole[2..]));
    assert!(
        matches!(&exported[1].kind, EventKind::Gap { reason: Some(why), .. } if why.starts_with(reason)),
        "{}",
        exported[1]
    );
    laws(&exported).unwrap();

    damage("UPDATE sessions SET last = 'many' WHERE name = 's'");
    let listed = within("sessions list").stdout;
    let states: Vec<_> =
        listed.lines().skip(1).map(|row| (&row[..1], row.rsplit(' ').next().unwrap())).collect();
    assert!(states.contains(&("s", "damaged")) && states.contains(&("t", "idle")), "{listed}");
    assert_eq!(within("sessions rm s").code, Some(0));
    assert_eq!(within("sessions list").stdout.lines().count(), 2);
}

/// A model of 15 tokens a call: the first run has a child, the third a background task, the fourth
/// is cut and taken up again.
fn several_runs() -> Server {
    let spawn =
        |seconds: u64| json!({ "agent_id": "general-purpose", "task": "Dig", "timeout_seconds": seconds });
    let has = |request: &Value, text: &str| request["messages"].to_string().contains(text);
    Server::start(move |request| match () {
        () if !has(request, "One?") => vec![Step::Text("Dug.")],
        () if has(request, "Four?") && has(request, "Half of it") => vec![Step::Text("Whole.")],
        () if has(request, "Four?") => vec![Step::Text("Half of it"), Step::Hang],
        () if has(request, "Three?") && has(request, "Background tasks delivered") => {
            vec![Step::Text("Third.")]
        }
        () if has(request, "Three?") && has(request, "status: accepted") => vec![Step::Text("Begun.")],
        () if has(request, "Three?") => vec![Step::Call(vec![("agent_spawn", spawn(0))])],
        () if has(request, "Two?") => vec![Step::Text("Second.")],
        () if has(request, "Dug.") => vec![Step::Text("First.")],
        () => vec![Step::Text("Let me see."), Step::Call(vec![("agent_spawn", spawn(30))])],
    })
}

/// The tokens that lines like `done, 0.1s, 15 tok` name.
fn tokens(lines: &str) -> Vec<u64> {
    let words = lines.split_whitespace().collect::<Vec<_>>();
    let named = words.windows(2).filter(|pair| pair[1].trim_end_matches(':') == "tok");
    named.map(|pair| pair[0].parse().unwrap()).collect()
}

#[cfg(unix)]
#[test]
fn a_session_of_several_runs_has_the_tokens_of_each_and_each_reply_once() {
    let server = several_runs();
    let dir = tempfile::tempdir().unwrap();
    let journal = dir.path().join("j.db");
    let run = |more: &str| -> Cli {
        let cli = mainstem("run -m openai:m --no-files --progress quiet --session s")
            .arg("--journal")
            .arg(&journal);
        let cli = more.split_whitespace().fold(cli, Cli::arg);
        cli.env("OPENAI_BASE_URL", &server.url()).env("OPENAI_API_KEY", "sk-secret-123456")
    };
    let used = ["One?", "Two?", "--background=wait Three?"].map(|prompt| {
        let done = run(&format!("--output=json {prompt}")).run();
        let summary: Value = serde_json::from_str(&done.stdout).unwrap_or_else(|_| panic!("{done:?}"));
        let usage = &summary["usage"];
        usage["inputTokens"].as_u64().unwrap() + usage["outputTokens"].as_u64().unwrap()
    });
    let cut = run("Four?").start();
    server.until_hanging(1);
    // What is shown is committed a little later.
    std::thread::sleep(Duration::from_millis(200));
    cut.signal("KILL");
    cut.done();
    // With what was said before the cut.
    assert_eq!(run("--resume").run().stdout, "Half of itWhole.\n");

    let recorded = mainstem("sessions export s --journal").arg(&journal).run().stdout;
    let recorded = events(&recorded);
    laws(&recorded).unwrap_or_else(|error| panic!("{error}\n{}", render(&recorded)));
    let own = |event: &AgentEvent| match &event.kind {
        EventKind::AgentEnd { usage, .. } => Some(usage.own.total_tokens()),
        _ => None,
    };
    let mut expected: Vec<_> = recorded.iter().filter_map(own).collect();
    assert_eq!((used, expected.iter().sum::<u64>()), ([45, 15, 60], 45 + 15 + 60 + 15));

    let shown = mainstem("replay s --speed max --progress plain --journal").arg(&journal).run();
    assert_eq!(shown.stdout, "First.\nSecond.\nThird.\nWhole.\n", "{shown:?}");
    let mut named = tokens(&shown.stderr);
    named.sort();
    expected.sort();
    assert_eq!(named, expected, "{}", shown.stderr);
    for reply in ["First.", "Second.", "Third.", "Whole."] {
        assert!(!shown.stderr.contains(reply), "{reply} is the result, and no progress: {}", shown.stderr);
    }
    for progress in ["Let me see.", "Begun.", "Half of it"] {
        assert_eq!(shown.stderr.matches(progress).count(), 1, "{progress}: {}", shown.stderr);
    }
}
