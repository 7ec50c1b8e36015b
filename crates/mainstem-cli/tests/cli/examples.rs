//! The folders of `docs/examples` that the cookbook lists, each with a script for its models.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Value, json};

use crate::{
    server::{Server, Step},
    support::{Cli, Done, mainstem},
};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples").join(name)
}

/// Copies an example into the directory of a command, with files of its own.
fn within(name: &str, line: &str, files: &[(&str, &str)]) -> Cli {
    let cli = mainstem(line);
    copy(&folder(name), cli.dir.path());
    files.iter().fold(cli, |cli, (path, text)| cli.file(path, text))
}

pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &to),
            false => drop(fs::copy(entry.path(), to).unwrap()),
        }
    }
}

fn run(cli: Cli, server: &Server) -> Done {
    let done = cli.env("OPENAI_BASE_URL", &server.url()).run();
    assert_eq!(done.code, Some(0), "{done:?}");
    done
}

/// The prompt of the agent that sends a request, and how often it has answered.
fn asking(request: &Value) -> (String, usize) {
    let messages = request["messages"].as_array().unwrap();
    let prompt = messages[0]["content"].as_str().unwrap().to_owned();
    let answers = messages.iter().filter(|message| message["role"] == "assistant").count();
    (prompt, answers)
}

/// Starts a child for each task, in one call.
fn fanout(agent: &str, tasks: &[&str]) -> Step {
    let spawn = |task: &&str| json!({ "agent_id": agent, "task": task, "label": task });
    let spawns: Vec<_> = tasks.iter().map(spawn).collect();
    Step::Call(vec![("agent_fanout", json!({ "spawns": spawns }))])
}

fn call(tool: &'static str, arguments: Value) -> Step {
    Step::Call(vec![(tool, arguments)])
}

/// Returns the requests of the agent with this in its prompt, as text.
fn requests_of(server: &Server, prompt: &str) -> Vec<String> {
    let requests = server.requests().into_iter().filter(|request| asking(request).0.contains(prompt));
    requests.map(|request| request.to_string()).collect()
}

const FLEETS: [&str; 10] = [
    "decide",
    "first",
    "gate",
    "incident",
    "migrate",
    "release-notes",
    "research",
    "review",
    "translate",
    "triage",
];

#[test]
fn the_cookbook_lists_each_example_and_its_agents_are_valid() {
    let page = fs::read_to_string(folder("../book/src/cookbook.md")).unwrap();
    for entry in fs::read_dir(folder("")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(page.contains(&format!("| [{name}](")), "the cookbook does not list {name}");
        let is_tested_elsewhere = ["clients", "two-machines"].contains(&&*name);
        assert!(is_tested_elsewhere || FLEETS.contains(&&*name), "{name} has no test");
    }
    for name in FLEETS {
        let done = mainstem("agents validate --strict --trust").within(&folder(name)).run();
        assert_eq!(done.code, Some(0), "{name}: {done:?}");
    }
}

#[test]
fn an_answer_with_citations_is_looked_up() {
    let server = Server::start(|request| {
        let (prompt, answers) = asking(request);
        let read = |path: &str| Step::Call(vec![("read_file", json!({ "path": path }))]);
        let task = request["messages"].to_string();
        let file = if task.contains("Read a.md") { "a.md" } else { "b.md" };
        match answers {
            0 if prompt.contains("You answer a question") => {
                let tasks = json!([
                    { "agent_id": "reader", "task": "Read a.md: what does it promise?" },
                    { "agent_id": "reader", "task": "Read b.md: what does it promise?" },
                ]);
                vec![Step::Call(vec![("agent_fanout", json!({ "spawns": tasks }))])]
            }
            1 if prompt.contains("You answer a question") => {
                let task = "Nothing is lost (a.md:1).";
                vec![Step::Call(vec![("agent_spawn", json!({ "agent_id": "checker", "task": task }))])]
            }
            _ if prompt.contains("You answer a question") => vec![Step::Text("Nothing is lost (a.md:1).")],
            0 if prompt.contains("Read each file") => vec![read(file)],
            0 if prompt.contains("Read each of these places") => vec![read("a.md")],
            _ if prompt.contains("Read each of these places") => vec![Step::Text("a.md:1 holds")],
            _ if task.contains("Nothing is lost.") && file == "a.md" => {
                vec![Step::Text("a.md:1 \"Nothing is lost.\"")]
            }
            _ => vec![Step::Text("b.md has nothing")],
        }
    });
    let files = [("a.md", "Nothing is lost.\n"), ("b.md", "Hello.\n")];
    let done = run(within("research", "run -a main --progress plain What is promised?", &files), &server);
    assert_eq!(done.stdout, "Nothing is lost (a.md:1).\n");
    assert!(
        done.stderr.contains("reader  started by #1: Read b.md") && done.stderr.contains("checker"),
        "{done:?}"
    );
    let requests = server.requests();
    let reader = requests.iter().find(|request| asking(request).0.contains("Read each file")).unwrap();
    let tools: Vec<_> =
        reader["tools"].as_array().unwrap().iter().map(|tool| &tool["function"]["name"]).collect();
    assert_eq!(tools, ["grep_files", "read_file"], "a reader can't write");
}

#[test]
fn each_file_is_changed_by_an_editor_of_its_own() {
    let server = Server::start(|request| {
        let (prompt, answers) = asking(request);
        let task = request["messages"].to_string();
        let file = if task.contains("Change a.rs") { "a.rs" } else { "b.rs" };
        let edit = json!({ "path": file, "old": "println!", "new": "tracing::info!" });
        let tasks =
            ["a.rs", "b.rs"].map(|file| json!({ "agent_id": "editor", "task": format!("Change {file}") }));
        let check = json!({ "agent_id": "checker", "task": "Run the checks" });
        match answers {
            0 if prompt.contains("You make one change") => {
                vec![Step::Call(vec![("agent_fanout", json!({ "spawns": tasks }))])]
            }
            1 if prompt.contains("You make one change") => vec![Step::Call(vec![("agent_spawn", check)])],
            0 if prompt.contains("Change the one file") => vec![Step::Call(vec![("edit_file", edit)])],
            0 if prompt.contains("Run the project's") => {
                vec![Step::Call(vec![("shell", json!({ "command": "grep -c tracing a.rs b.rs" }))])]
            }
            _ => vec![Step::Text("Two places.")],
        }
    });
    let source = "fn main() { println!(\"a\"); }\n";
    let files = [("a.rs", source), ("b.rs", source)];
    let cli = within("migrate", "run -a main --trust Migrate it", &files);
    let place = cli.dir.path().to_owned();
    let running = cli.env("OPENAI_BASE_URL", &server.url()).start();
    let changed = |file: &str| fs::read_to_string(place.join(file)).unwrap_or_default().contains("tracing");
    let started = std::time::Instant::now();
    while !(changed("a.rs") && changed("b.rs")) {
        assert!(started.elapsed().as_secs() < 20, "the files are not changed");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let done = running.done();
    assert_eq!((done.code, &*done.stdout), (Some(0), "Two places.\n"), "{done:?}");
    let saw =
        |text: &str| server.requests().iter().any(|request| request["messages"].to_string().contains(text));
    assert!(saw("a.rs:1") && saw("b.rs:1"), "the checker counts both: {done:?}");
}

#[test]
fn a_gate_answers_with_an_object_and_changes_nothing() {
    let server = Server::start(|request| {
        let (prompt, answers) = asking(request);
        let critic = |task: &str| ("agent_spawn", json!({ "agent_id": "critic", "task": task }));
        match answers {
            0 if prompt.contains("You judge") => {
                vec![Step::Call(vec![critic("correctness"), critic("callers")])]
            }
            1 if prompt.contains("You judge") => {
                let verdict =
                    json!({ "merge": false, "faults": [{ "place": "a.rs:1", "fault": "It panics." }] });
                match request["response_format"].is_object() {
                    true => vec![Step::Text(Box::leak(verdict.to_string().into_boxed_str()))],
                    false => vec![Step::Call(vec![("final_answer", verdict)])],
                }
            }
            _ => vec![Step::Text("a.rs:1 panics if the list is empty.")],
        }
    });
    let line = "run -a gate --approve never --budget-tokens 200000 --timeout 1m --output-schema verdict.json Judge it";
    let done = run(within("gate", line, &[]), &server);
    let verdict: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(verdict["merge"], false);
    assert_eq!(verdict["faults"][0]["place"], "a.rs:1");
}

#[test]
fn each_night_knows_what_the_last_one_reported() {
    let server = Server::start(|request| {
        let (prompt, answers) = asking(request);
        match (prompt.contains("You report what is new"), answers) {
            (true, 0 | 2) => vec![fanout("reader", &["Read logs/app.log"])],
            (true, 1) => vec![Step::Text("New: disk full (logs/app.log:2), once.")],
            (true, _) => vec![Step::Text("There is nothing new.")],
            (false, 0) => vec![call("grep_files", json!({ "pattern": "ERROR", "path": "logs/app.log" }))],
            (false, _) => vec![Step::Text("1 logs/app.log:2 disk full")],
        }
    });
    let dir = tempfile::tempdir().unwrap();
    copy(&folder("triage"), dir.path());
    fs::create_dir(dir.path().join("logs")).unwrap();
    fs::write(dir.path().join("logs/app.log"), "INFO began\nERROR disk full\n").unwrap();
    let night = || {
        let bin = Path::new(env!("CARGO_BIN_EXE_mainstem")).parent().unwrap();
        let output = Command::new(dir.path().join("nightly.sh"))
            .env_clear()
            .env("HOME", dir.path())
            .env("PATH", format!("{}:/usr/bin:/bin", bin.display()))
            .env("OPENAI_BASE_URL", server.url())
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        fs::read_to_string(dir.path().join("report.md")).unwrap()
    };
    assert_eq!(night(), "New: disk full (logs/app.log:2), once.\n");
    assert_eq!(night(), "There is nothing new.\n");
    let last = requests_of(&server, "You report what is new").pop().unwrap();
    assert!(last.contains("disk full (logs/app.log:2), once"), "the report of the first night: {last}");
    assert!(requests_of(&server, "Find the errors")[1].contains("ERROR disk full"), "the reader's result");
}

#[test]
fn a_translator_corrects_its_page_and_can_not_change_the_original() {
    let server = Server::start(|request| {
        let (prompt, answers) = asking(request);
        let write = |path: &str, text: &str| call("write_file", json!({ "path": path, "content": text }));
        let send = json!({ "label": "en/a.md", "message": "de/a.md:1 should say Hallo." });
        if prompt.contains("You have the pages") {
            return vec![match answers {
                0 => fanout("translator", &["en/a.md"]),
                1 => fanout("proofreader", &["en/a.md and de/a.md"]),
                2 => call("agent_send", send),
                _ => Step::Text("One page."),
            }];
        }
        vec![match (prompt.contains("Translate the page"), answers) {
            (true, 0) => write("en/a.md", "Spoiled."),
            (true, 1) => write("de/a.md", "Halo."),
            (true, 3) => call("edit_file", json!({ "path": "de/a.md", "old": "Halo", "new": "Hallo" })),
            (true, _) => Step::Text("de/a.md"),
            (false, 0) => call("read_file", json!({ "path": "de/a.md" })),
            (false, _) => Step::Text("de/a.md:1 should say Hallo."),
        }]
    });
    let cli = within("translate", "run -a main Translate en/ to German", &[("en/a.md", "Hello.")]);
    let place = cli.dir.path().to_owned();
    let running = cli.env("OPENAI_BASE_URL", &server.url()).start();
    let text = |file: &str| fs::read_to_string(place.join(file)).unwrap_or_default();
    let started = std::time::Instant::now();
    while text("de/a.md") != "Hallo." {
        assert!(started.elapsed().as_secs() < 20, "the page is not corrected");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert_eq!(text("en/a.md"), "Hello.", "the original");
    let done = running.done();
    assert_eq!((done.code, &*done.stdout), (Some(0), "One page.\n"), "{done:?}");
    let told = requests_of(&server, "Translate the page").pop().unwrap();
    assert!(told.contains("de/a.md:1 should say Hallo.") && told.contains("denied"), "{told}");
}

#[test]
fn notes_have_the_changes_of_the_log_and_the_style_of_the_skill() {
    let server = Server::start(|request| {
        let (prompt, answers) = asking(request);
        let sorted = json!({ "changes": [{ "kind": "fixed", "change": "Paste works." }] });
        let sort = json!({ "agent_id": "sorter", "task": "Fix paste; Rename a test" });
        vec![match (prompt.contains("You write the notes"), answers) {
            (true, 0) => {
                Step::Call(vec![("load_skill", json!({ "name": "house-style" })), ("agent_spawn", sort)])
            }
            (true, _) => Step::Text("# 1.3.0\n\n- **fixed:** Paste works."),
            (false, _) if request["response_format"].is_object() => {
                Step::Text(Box::leak(sorted.to_string().into_boxed_str()))
            }
            (false, _) => call("final_answer", sorted),
        }]
    });
    let mut log = tempfile::tempfile().unwrap();
    std::io::Write::write_all(&mut log, b"Fix paste\nRename a test\n").unwrap();
    std::io::Seek::rewind(&mut log).unwrap();
    let done = run(within("release-notes", "run -a main Write the notes of 1.3.0", &[]).stdin(log), &server);
    assert_eq!(done.stdout, "# 1.3.0\n\n- **fixed:** Paste works.\n");
    let requests = requests_of(&server, "You write the notes");
    assert!(requests[0].contains("Rename a test"), "the log is in the input: {}", requests[0]);
    assert!(requests[1].contains("Begin with the version as a heading"), "the skill: {}", requests[1]);
    assert!(requests[1].contains("Paste works."), "the sorter's list: {}", requests[1]);
}

#[cfg(target_os = "linux")]
#[test]
fn probes_look_in_the_background_and_are_refused_to_change() {
    let server = Server::start(|request| {
        let (prompt, answers) = asking(request);
        let probe = |question: &str| {
            let arguments = json!({ "agent_id": "probe", "task": question, "timeout_seconds": 0 });
            ("agent_spawn", arguments)
        };
        let task = request["messages"].to_string();
        let command = if task.contains("Is the disk full?") { "wc -l app.log" } else { "rm app.log" };
        vec![match (prompt.contains("You take a first look"), answers) {
            (true, 0) => Step::Call(vec![probe("Is the disk full?"), probe("Can the log go?")]),
            (true, 1) => call("task_wait", json!({})),
            (true, _) => Step::Text("Seen."),
            (false, 0) => call("shell", json!({ "command": command })),
            (false, _) => Step::Text("Looked."),
        }]
    });
    let files = [("app.log", "ERROR disk full\n")];
    let cli = within("incident", "run -a main --trust --output ndjson It is slow", &files);
    let done = run(cli, &server);
    let events = crate::support::events(&done.stdout);
    let in_background = events.iter().filter(|event| event.to_string().contains("AGENT_END success"));
    let tasks = in_background.filter_map(|event| event.source()?.task_id.clone());
    assert_eq!(tasks.collect::<std::collections::BTreeSet<_>>().len(), 2, "{}", done.stdout);
    let seen = requests_of(&server, "Answer the question").concat();
    assert!(seen.contains("1 app.log"), "what wc prints: {seen}");
    assert!(seen.contains("shell(rm *)"), "the rule that refuses: {seen}");
}

#[test]
fn two_advocates_answer_each_other_and_a_judge_decides() {
    let server = Server::start(|request| {
        let (prompt, answers) = asking(request);
        let advocate = |label: &str| {
            let task = format!("Argue for the {label} option");
            ("agent_spawn", json!({ "agent_id": "advocate", "label": label, "task": task }))
        };
        let answer =
            |label: &str, message: &str| ("agent_send", json!({ "label": label, "message": message }));
        let verdict = json!({ "choice": "SQLite", "reason": "Two people.", "unless": "A fourth node." });
        if prompt.contains("You have a decision argued") {
            return vec![match answers {
                0 => Step::Call(vec![advocate("first"), advocate("second")]),
                1 => Step::Call(vec![
                    answer("first", "The other side says: it scales."),
                    answer("second", "The other side says: it is simple."),
                ]),
                2 => call("agent_spawn", json!({ "agent_id": "judge", "task": "SQLite or PostgreSQL?" })),
                _ => Step::Text("SQLite."),
            }];
        }
        vec![match prompt.contains("Argue for the option that") {
            true => Step::Text("It is simple, and it scales."),
            false if request["response_format"].is_object() => {
                Step::Text(Box::leak(verdict.to_string().into_boxed_str()))
            }
            false => call("final_answer", verdict),
        }]
    });
    let done = run(within("decide", "run -a main SQLite or PostgreSQL?", &[]), &server);
    assert_eq!(done.stdout, "SQLite.\n");
    let advocates = requests_of(&server, "Argue for the option that");
    let second: Vec<_> = advocates.iter().filter(|request| request.contains("The other side says")).collect();
    assert_eq!((advocates.len(), second.len()), (4, 2));
    for (option, other) in [("first", "it scales"), ("second", "it is simple")] {
        let knows =
            |request: &&&String| request.contains(other) && request.contains(&format!("the {option} option"));
        assert_eq!(second.iter().filter(knows).count(), 1, "the {option} one still knows its case");
    }
    let last = requests_of(&server, "You have a decision argued").pop().unwrap();
    assert!(last.contains("Two people."), "what the judge decided: {last}");
}
