//! What agents can touch: the files of the workspace, nothing else, and a shell only on request.

use std::path::Path;

use serde_json::{Value, json};

use crate::{
    server::{Server, Step},
    support::{Cli, Done, mainstem},
};

/// A model that makes these calls, a turn each, and ends.
pub(crate) fn calls(calls: Vec<(&'static str, Value)>) -> Server {
    Server::start(move |request| {
        let messages = request["messages"].as_array().unwrap();
        let turn = messages.iter().filter(|message| message["role"] == "assistant").count();
        match calls.get(turn) {
            Some(call) => vec![Step::Call(vec![call.clone()])],
            None => vec![Step::Text("Done.")],
        }
    })
}

fn write(path: impl AsRef<Path>) -> (&'static str, Value) {
    ("write_file", json!({ "path": path.as_ref(), "content": "hello" }))
}

fn read(path: &str) -> (&'static str, Value) {
    ("read_file", json!({ "path": path }))
}

pub(crate) fn shell(command: &str) -> (&'static str, Value) {
    ("shell", json!({ "command": command }))
}

pub(crate) fn cli(server: &Server, arguments: &str) -> Cli {
    mainstem(&format!("run --progress quiet {arguments}")).env("OPENAI_BASE_URL", &server.url())
}

/// Runs it to its end, which is a good one.
pub(crate) fn run(cli: Cli) -> Done {
    let done = cli.arg("Hi").run();
    assert_eq!((done.code, &*done.stdout), (Some(0), "Done.\n"), "{done:?}");
    done
}

/// What the model was told its calls came to.
pub(crate) fn results(server: &Server) -> Vec<String> {
    let requests = server.requests();
    let messages = requests.last().unwrap()["messages"].as_array().unwrap();
    let results = messages.iter().filter(|message| message["role"] == "tool");
    results.map(|message| message["content"].as_str().unwrap().trim_end().to_owned()).collect()
}

/// The tools that the model was offered, without those for children.
fn offered(server: &Server) -> String {
    let requests = server.requests();
    let names = requests[0]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["function"]["name"].as_str().unwrap());
    names
        .filter(|name| *name == "agent_generate" || !name.starts_with("agent_") && !name.starts_with("task_"))
        .collect::<Vec<_>>()
        .join(" ")
}

const FILES: &str = "edit_file glob_files grep_files list_files read_file write_file";

#[test]
fn files_are_written_in_the_workspace_and_read_back() {
    let server = calls(vec![write("notes/a.txt"), read("notes/a.txt")]);
    let dir = tempfile::tempdir().unwrap();
    let done = run(cli(&server, "-w").arg(dir.path()));
    assert_eq!(done.stderr, "");
    assert_eq!(results(&server), ["created \"notes/a.txt\" (5 bytes)", "1\thello"]);
    assert_eq!(std::fs::read_to_string(dir.path().join("notes/a.txt")).unwrap(), "hello");
}

#[test]
fn without_a_workspace_it_is_the_current_directory() {
    let server = calls(vec![read("here.txt")]);
    run(cli(&server, "").file("here.txt", "yes"));
    assert_eq!((offered(&server).as_str(), &*results(&server)), (FILES, &["1\tyes".to_owned()][..]));
}

#[test]
fn nothing_is_written_outside() {
    let outside = tempfile::tempdir().unwrap();
    let ws = outside.path().join("ws");
    std::fs::create_dir(&ws).unwrap();
    let server = calls(vec![write("../a.txt"), write(outside.path().join("b.txt"))]);
    run(cli(&server, "-w").arg(&ws));
    let results = results(&server);
    assert_eq!(results.len(), 2);
    assert!(results.iter().all(|result| result.contains("leads out of the workspace")), "{results:?}");
    let left: Vec<_> =
        std::fs::read_dir(outside.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["ws"]);
}

#[test]
fn who_says_so_gets_no_files_or_a_shell() {
    let check = |arguments: &str, config: &str, expected: &str| {
        let server = calls(Vec::new());
        let done = run(cli(&server, arguments).arg("--trust").file("mainstem.toml", config));
        assert_eq!((offered(&server), &*done.stderr), (expected.to_owned(), ""), "{arguments} {config}");
    };
    check("", "", FILES);
    check("--no-files", "", "");
    check("", "files = false", "");
    check("--no-files", "files = true", "");
    #[cfg(unix)]
    {
        let all = FILES.replace(" write_file", " shell write_file");
        check("--shell", "", &all);
        check("--shell --no-files", "shell = false", "shell");
        check("", "shell = true", &all);
    }
    check("", "shell = false", FILES);
    check("", "agent_generate = true", &format!("agent_generate {FILES}"));
    check("", "agent_generate = false", FILES);
}

#[cfg(unix)]
#[test]
fn a_command_runs_in_the_workspace() {
    let server = calls(vec![shell("echo hello > a.txt"), read("a.txt")]);
    let dir = tempfile::tempdir().unwrap();
    run(cli(&server, "--shell -w").arg(dir.path()));
    assert_eq!(results(&server)[1], "1\thello");
    assert!(dir.path().join("a.txt").exists());
}

#[test]
fn a_workspace_of_the_configuration_counts_too() {
    let server = calls(vec![write("a.txt")]);
    let dir = tempfile::tempdir().unwrap();
    let config = format!("workspace = '{}'", dir.path().display());
    run(cli(&server, "--trust").file("mainstem.toml", &config));
    assert!(dir.path().join("a.txt").exists());
}
