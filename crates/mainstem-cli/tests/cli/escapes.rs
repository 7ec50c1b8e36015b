//! Whatever a model, a tool, a file or a caller says: no control character of it reaches stdout or
//! stderr.

use std::path::Path;

use mainstem::prelude::EventKind;
use serde_json::{Value, json};

use crate::{
    server::{Server, Step},
    support::{Cli, Done, events, mainstem},
};

/// A title, a cleared screen, the clipboard, C1's CSI, DEL, backspaces, a return, and two changes
/// of the reading direction.
const HOSTILE: &str = "BEFORE\u{1b}]0;title\u{7}\u{1b}[2J\u{1b}]52;c;cm0=\u{1b}\\\u{9b}31m\u{85}\u{7f}\u{8}\r\u{202e}\u{2066}AFTER";

/// C0 but for line feed and tab, DEL, C1, and what turns the reading direction.
fn is_raw(c: char) -> bool {
    let turns = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}');
    turns || (c.is_control() && !matches!(c, '\n' | '\t'))
}

fn check(what: &str, done: &Done) {
    for text in [&done.stdout, &done.stderr] {
        let raw: Vec<_> = text.chars().filter(|c| is_raw(*c)).collect();
        assert!(raw.is_empty(), "{what}: {raw:?} in {text:?}");
    }
}

/// A root that calls tools with hostile arguments, begins a hostile task, and answers in the same
/// way.
fn fleet() -> Server {
    Server::start(|request| {
        let text = request["messages"].to_string();
        let spawn = |seconds: u64| json!({ "agent_id": "kid", "label": format!("{HOSTILE}{seconds}"), "task": HOSTILE, "timeout_seconds": seconds });
        match () {
            () if text.contains("Refuse.") => {
                let body = json!({ "error": { "message": HOSTILE, "code": HOSTILE } }).to_string();
                vec![Step::Refuse("400 Bad Request", "", body)]
            }
            () if text.contains("You are the kid.") => vec![Step::Text(HOSTILE)],
            () if text.contains("\"role\":\"tool\"") => vec![Step::Text(HOSTILE)],
            () => vec![
                Step::Text(HOSTILE),
                Step::Call(vec![
                    ("read_file", json!({ "path": "hostile.txt" })),
                    ("read_file", json!({ "path": HOSTILE })),
                    (HOSTILE, json!({ HOSTILE: HOSTILE })),
                    ("agent_spawn", json!({ "agent_id": HOSTILE, "task": HOSTILE })),
                    ("agent_spawn", spawn(30)),
                    ("agent_spawn", spawn(0)),
                ]),
            ],
        }
    })
}

fn within(dir: &Path, server: &Server, line: &str) -> Cli {
    let cli = mainstem(line).within(dir);
    cli.env("OPENAI_BASE_URL", &server.url()).env("OPENAI_API_KEY", "sk-secret-123456")
}

fn folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("subagents")).unwrap();
    // YAML has no raw control characters, and the escapes of JSON.
    let escape = |c: char| if is_raw(c) { format!("\\u{:04x}", c as u32) } else { c.to_string() };
    let description =
        format!("\"{}\"", HOSTILE.replace('\\', "\\\\").chars().map(escape).collect::<String>());
    let kid = format!("---\ndescription: {description}\nname: {description}\n---\nYou are the kid.\n");
    std::fs::write(dir.path().join("subagents/kid.md"), kid).unwrap();
    std::fs::write(dir.path().join("hostile.txt"), HOSTILE).unwrap();
    dir
}

#[test]
fn no_control_character_of_a_run_or_of_its_record_is_printed() {
    let (server, dir) = (fleet(), folder());
    let run = |line: &str| within(dir.path(), &server, &format!("run -m openai:m --journal j.db {line}"));
    let line = "--session s --output text --progress plain --record r.jsonl --background wait Go";
    let session = run(line).run();
    check("run", &session);
    assert!(session.stdout.starts_with("BEFORE") && session.stdout.ends_with("AFTER\n"), "{session:?}");
    assert!(session.stderr.contains("label") || session.stderr.contains("BEFORE"), "{session:?}");
    let refused = run("--session refused --progress plain Refuse.").run();
    check("refused", &refused);
    assert!(refused.code != Some(0) && refused.stderr.contains("AFTER"), "{refused:?}");
    for line in [
        "replay r.jsonl --speed max --progress plain",
        "sessions list --journal j.db",
        "sessions list --journal j.db --output json",
        "tasks list",
        "tasks list --output json",
        "agents list",
        "agents list --output json",
        "agents show kid",
        "agents validate",
        "tools",
    ] {
        let done = within(dir.path(), &server, line).run();
        check(line, &done);
        assert!(!done.stdout.is_empty() || line == "agents validate", "{line}: {done:?}");
    }
    let tasks = within(dir.path(), &server, "tasks list --output json").run().stdout;
    let tasks: Value = serde_json::from_str(&tasks).unwrap();
    assert_eq!(tasks[0]["task"], HOSTILE);
    for command in ["tasks show", "tasks logs --journal j.db"] {
        let done = within(dir.path(), &server, command).arg(tasks[0]["id"].as_str().unwrap()).run();
        check(command, &done);
        assert!(done.stdout.contains("BEFORE"), "{command}: {done:?}");
    }
    for command in ["replay --speed max --progress plain", "sessions show", "sessions export"] {
        let done = within(dir.path(), &server, command).arg("--journal").arg("j.db").arg("s").run();
        check(command, &done);
        assert!(done.stdout.contains("AFTER") || command == "sessions show", "{command}: {done:?}");
    }
    // A row that another program has written.
    let journal = rusqlite::Connection::open(dir.path().join("j.db")).unwrap();
    journal.execute("UPDATE sessions SET name = ?1 WHERE name = 's'", [HOSTILE]).unwrap();
    for form in ["text", "json"] {
        let line = format!("sessions list --journal j.db --output {form}");
        let listed = within(dir.path(), &server, &line).run();
        check(&line, &listed);
        assert!(listed.stdout.contains("BEFORE") && listed.stdout.contains("AFTER"), "{listed:?}");
    }
}

#[test]
fn a_refused_value_is_printed_without_control_characters() {
    let (server, dir) = (fleet(), folder());
    for line in ["run -m openai:m Go --session", "chat -m openai:m --session", "tasks show", "sessions show"]
    {
        let done = within(dir.path(), &server, line).arg(HOSTILE).run();
        check(line, &done);
        assert_eq!(done.code, Some(2), "{done:?}");
        assert!(done.stderr.contains("at character 7; use 1 to 256 ASCII letters"), "{done:?}");
    }
}

#[test]
fn json_has_them_escaped_and_means_the_same() {
    let (server, dir) = (fleet(), folder());
    for format in ["ndjson", "sse", "json"] {
        let line = format!("run -m openai:m --output {format} --background wait Go");
        let done = within(dir.path(), &server, &line).run();
        check(format, &done);
        match format {
            "ndjson" => {
                let said = events(&done.stdout);
                let result = said.iter().find_map(|event| match &event.kind {
                    EventKind::AgentResult { result } if event.is_root() => Some(result.text()),
                    _ => None,
                });
                assert_eq!(result.as_deref(), Some(HOSTILE));
            }
            "sse" => {
                assert!(done.stdout.contains(r"\u001b[2J") && done.stdout.contains(r"\u009b31m\u0085\u007f"))
            }
            _ => {
                let summary: Value = serde_json::from_str(&done.stdout).unwrap();
                assert_eq!(summary["reply"], HOSTILE);
            }
        }
    }
}

#[cfg(unix)]
#[test]
fn a_terminal_shows_what_is_said_and_obeys_nothing() {
    let (server, dir) = (fleet(), folder());
    let terminal = crate::terminal::Terminal::new();
    let cli = within(dir.path(), &server, "run -m openai:m --progress quiet --background wait Go");
    let mut running = crate::terminal::on(&terminal, cli);
    let (code, screen) = terminal.end(&mut running);
    assert_eq!(code, Some(0), "{screen}");
    assert!(screen.contains("BEFORE") && screen.contains("AFTER"), "{screen:?}");
}
