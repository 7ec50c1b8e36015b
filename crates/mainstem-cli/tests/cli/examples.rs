//! The folders of `docs/examples` that the cookbook lists, each with a script for its models.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::{
    server::{Server, Step},
    support::{Cli, Done, mainstem},
};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples").join(name)
}

/// Copies an example's agents into the directory of a command, with files of its own.
fn within(name: &str, line: &str, files: &[(&str, &str)]) -> Cli {
    let mut cli = mainstem(line);
    for entry in std::fs::read_dir(folder(name).join("subagents")).unwrap() {
        let path = entry.unwrap().path();
        let file = format!("subagents/{}", path.file_name().unwrap().to_str().unwrap());
        cli = cli.file(&file, &std::fs::read_to_string(&path).unwrap());
    }
    files.iter().fold(cli, |cli, (path, text)| cli.file(path, text))
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

#[test]
fn the_agents_of_each_example_are_valid() {
    for name in ["first", "gate", "migrate", "research", "review"] {
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
    let settings = std::fs::read_to_string(folder("migrate").join("mainstem.toml")).unwrap();
    let files = [("a.rs", source), ("b.rs", source), ("mainstem.toml", &settings)];
    let cli = within("migrate", "run -a main --trust Migrate it", &files);
    let place = cli.dir.path().to_owned();
    let running = cli.env("OPENAI_BASE_URL", &server.url()).start();
    let changed =
        |file: &str| std::fs::read_to_string(place.join(file)).unwrap_or_default().contains("tracing");
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
    let schema = std::fs::read_to_string(folder("gate").join("verdict.json")).unwrap();
    let line = "run -a gate --approve never --budget-tokens 200000 --timeout 1m --output-schema verdict.json Judge it";
    let done = run(within("gate", line, &[("verdict.json", &schema)]), &server);
    let verdict: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(verdict["merge"], false);
    assert_eq!(verdict["faults"][0]["place"], "a.rs:1");
}
