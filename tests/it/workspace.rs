//! Agents and the files of a workspace: who has which tools, and whose directory they work in.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    time::{Duration, Instant},
};

use mainstem::{
    model::scripted::Turn,
    prelude::*,
    spec::WorkspaceMode::{Isolated, Shared},
};
use mainstem_testing::{laws, render, timeline};
use serde_json::json;
use tempfile::TempDir;

use crate::support::{OpenNow, Spawns, answers, harness};

/// Calls of the file tools.
trait Files {
    fn write(self, path: &str, content: &str) -> Self;
    fn read(self, path: &str) -> Self;
}

impl Files for Turn {
    fn write(self, path: &str, content: &str) -> Self {
        self.call("write_file", json!({ "path": path, "content": content }))
    }

    fn read(self, path: &str) -> Self {
        self.call("read_file", json!({ "path": path }))
    }
}

fn spec(id: &str) -> AgentSpec {
    AgentSpec::new(id, "Works")
}

/// Every file below a directory, with what is in it.
fn tree(dir: &Path) -> String {
    fn walk(dir: &Path, root: &Path, files: &mut BTreeMap<String, String>) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, root, files);
            } else {
                let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
                files.insert(name, fs::read_to_string(&path).unwrap());
            }
        }
    }
    let mut files = BTreeMap::new();
    walk(dir, dir, &mut files);
    files.into_iter().map(|(name, text)| format!("{name}: {text}\n")).collect()
}

fn dir() -> TempDir {
    tempfile::tempdir().unwrap()
}

#[tokio::test(start_paused = true)]
async fn twins_write_the_same_name_and_do_not_meet() {
    let model = ScriptedModel::new()
        .agent(
            "main",
            [
                Turn::new().write("notes.md", "of the root"),
                Turn::new().spawn("writer", "left").spawn("writer", "right"),
                Turn::new().read("notes.md"),
                Turn::new().text("Done."),
            ],
        )
        .agent_on(
            "writer",
            "left",
            [Turn::new().write("notes.md", "left"), Turn::new().read("notes.md"), Turn::new().text("ok")],
        )
        .agent(
            "writer",
            [Turn::new().write("notes.md", "right"), Turn::new().read("notes.md"), Turn::new().text("ok")],
        );
    let ws = dir();
    let harness = harness(model)
        .with_workspace(ws.path())
        .with_file_tools(true)
        .with_subagent(spec("writer"))
        .build()
        .unwrap();
    let run = harness.session("s").run(RunRequest::new("go").with_user("ann")).unwrap();
    let answers = answers(run).await;
    assert_eq!(
        answers,
        [
            "main read_file: 1\tof the root",
            "main write_file: created \"notes.md\" (11 bytes)",
            "writer read_file: 1\tleft",
            "writer read_file: 1\tright",
            "writer write_file: created \"notes.md\" (4 bytes)",
            "writer write_file: created \"notes.md\" (5 bytes)",
        ]
    );
    insta::assert_snapshot!(tree(ws.path()), @"
    agents/writer/ann/s/sub-1/notes.md: left
    agents/writer/ann/s/sub-2/notes.md: right
    notes.md: of the root
    ");
}

#[tokio::test(start_paused = true)]
async fn a_shared_child_works_where_its_parent_does() {
    let model = ScriptedModel::new()
        .agent(
            "main",
            [
                Turn::new().write("plan.md", "one"),
                Turn::new().spawn("general-purpose", "go on"),
                Turn::new().read("plan.md"),
                Turn::new().text("Done."),
            ],
        )
        .agent(
            "general-purpose",
            [Turn::new().read("plan.md"), Turn::new().write("plan.md", "two"), Turn::new().text("ok")],
        );
    let ws = dir();
    let run = timeline(
        harness(model).with_workspace(ws.path()).with_file_tools(true).build().unwrap().stream_events("go"),
    )
    .await;
    insta::assert_snapshot!(run, @r#"
    0 main AGENT_START main "go"
    0 main MODEL_CALL_START scripted #1
    0 main TOOL_CALL_START write_file (call-1)
    0 main TOOL_CALL_DELTA "{\"path\":\"plan.md\",\"content\":\"one\"}" (call-1)
    0 main TOOL_CALL_END write_file (call-1)
    0 main MODEL_CALL_END tool_calls
    0 main TOOL_RESULT_START write_file {"path":"plan.md","content":"one"} (call-1)
    0 main TOOL_RESULT_TEXT_DELTA "created \"plan.md\" (3 bytes)" (call-1)
    0 main TOOL_RESULT_END write_file success (call-1)
    0 main MODEL_CALL_START scripted #2
    0 main TOOL_CALL_START agent_spawn (call-2)
    0 main TOOL_CALL_DELTA "{\"agent_id\":\"general-purpose\",\"task\":\"go on\"}" (call-2)
    0 main TOOL_CALL_END agent_spawn (call-2)
    0 main MODEL_CALL_END tool_calls
    0 main TOOL_RESULT_START agent_spawn {"agent_id":"general-purpose","task":"go on"} (call-2)
    0   general-purpose#1 AGENT_START general-purpose "go on"
    0   general-purpose#1 MODEL_CALL_START scripted #1
    0   general-purpose#1 TOOL_CALL_START read_file (call-3)
    0   general-purpose#1 TOOL_CALL_DELTA "{\"path\":\"plan.md\"}" (call-3)
    0   general-purpose#1 TOOL_CALL_END read_file (call-3)
    0   general-purpose#1 MODEL_CALL_END tool_calls
    0   general-purpose#1 TOOL_RESULT_START read_file {"path":"plan.md"} (call-3)
    0   general-purpose#1 TOOL_RESULT_TEXT_DELTA "1\tone" (call-3)
    0   general-purpose#1 TOOL_RESULT_END read_file success (call-3)
    0   general-purpose#1 MODEL_CALL_START scripted #2
    0   general-purpose#1 TOOL_CALL_START write_file (call-4)
    0   general-purpose#1 TOOL_CALL_DELTA "{\"path\":\"plan.md\",\"content\":\"two\"}" (call-4)
    0   general-purpose#1 TOOL_CALL_END write_file (call-4)
    0   general-purpose#1 MODEL_CALL_END tool_calls
    0   general-purpose#1 TOOL_RESULT_START write_file {"path":"plan.md","content":"two"} (call-4)
    0   general-purpose#1 TOOL_RESULT_TEXT_DELTA "overwrote \"plan.md\" (3 bytes)" (call-4)
    0   general-purpose#1 TOOL_RESULT_END write_file success (call-4)
    0   general-purpose#1 MODEL_CALL_START scripted #3
    0   general-purpose#1 TEXT_BLOCK_START
    0   general-purpose#1 TEXT_BLOCK_DELTA "ok"
    0   general-purpose#1 TEXT_BLOCK_END
    0   general-purpose#1 MODEL_CALL_END stop
    0   general-purpose#1 AGENT_RESULT "ok"
    0   general-purpose#1 AGENT_END success 21/21 tok
    0 main TOOL_RESULT_TEXT_DELTA "agent_key: agent:general-purpose:1\nagent_id: general-purpose\nsession_id: sub-1\ns"… (call-2)
    0 main TOOL_RESULT_END agent_spawn success (call-2)
    0 main MODEL_CALL_START scripted #3
    0 main TOOL_CALL_START read_file (call-5)
    0 main TOOL_CALL_DELTA "{\"path\":\"plan.md\"}" (call-5)
    0 main TOOL_CALL_END read_file (call-5)
    0 main MODEL_CALL_END tool_calls
    0 main TOOL_RESULT_START read_file {"path":"plan.md"} (call-5)
    0 main TOOL_RESULT_TEXT_DELTA "1\ttwo" (call-5)
    0 main TOOL_RESULT_END read_file success (call-5)
    0 main MODEL_CALL_START scripted #4
    0 main TEXT_BLOCK_START
    0 main TEXT_BLOCK_DELTA "Done."
    0 main TEXT_BLOCK_END
    0 main MODEL_CALL_END stop
    0 main AGENT_RESULT "Done."
    0 main AGENT_END success 32/53 tok
    "#);
    assert_eq!(tree(ws.path()), "plan.md: two\n");
}

#[tokio::test(start_paused = true)]
async fn a_shared_grandchild_of_an_isolated_parent() {
    let model = ScriptedModel::new()
        .agent(
            "main",
            [
                Turn::new().write("secret.md", "of the root"),
                Turn::new().spawn("lead", "go"),
                Turn::new().text("Done."),
            ],
        )
        .agent(
            "lead",
            [
                Turn::new().write("plan.md", "of the lead"),
                Turn::new().spawn("kid", "go").spawn("loner", "go"),
                Turn::new().text("ok"),
            ],
        )
        .agent("kid", [Turn::new().read("plan.md").read("secret.md"), Turn::new().text("ok")])
        .agent("loner", [Turn::new().read("plan.md"), Turn::new().text("ok")]);
    let ws = dir();
    let lead = ["agent_spawn", "read_file", "write_file"];
    let harness = harness(model)
        .with_workspace(ws.path())
        .with_file_tools(true)
        .with_subagent(spec("lead").with_tools(lead))
        .with_subagent(spec("kid").with_workspace_mode(Shared))
        .with_subagent(spec("loner").with_workspace_mode(Isolated))
        .build()
        .unwrap();
    let answers = answers(harness.stream_events("go")).await;
    assert_eq!(
        answers.iter().filter(|answer| answer.contains("read_file")).collect::<Vec<_>>(),
        [
            "kid read_file: 1\tof the lead",
            "kid read_file: failed: \"secret.md\" does not exist; list_files shows what does",
            "loner read_file: failed: \"plan.md\" does not exist; list_files shows what does",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_directory_that_a_spec_names_brings_files_and_prompt() {
    let asks =
        |id: &str| [Turn::new().spawn(id, "go"), Turn::new().spawn(id, "again"), Turn::new().text("ok")];
    let model = ScriptedModel::new()
        .agent("main", asks("editor"))
        .agent_on("editor", "go", [Turn::new().write("draft.md", "one"), Turn::new().text("ok")])
        .agent("editor", [Turn::new().read("draft.md").read("../secret.md"), Turn::new().text("ok")]);
    let ws = dir();
    fs::create_dir_all(ws.path().join("desk")).unwrap();
    fs::create_dir_all(ws.path().join("subagents")).unwrap();
    fs::write(ws.path().join("secret.md"), "no").unwrap();
    fs::write(ws.path().join("desk/AGENTS.md"), "You edit.").unwrap();
    let file = "---\ndescription: Edits\nworkspace.path: desk\n---\n";
    fs::write(ws.path().join("subagents/editor.md"), file).unwrap();
    let harness = harness(model).with_workspace(ws.path()).with_file_tools(true).build().unwrap();
    assert_eq!(harness.diagnostics(), []);
    assert_eq!(harness.agents().catalog().get("editor").unwrap().spec.prompt, "You edit.");
    assert_eq!(
        answers(harness.stream_events("go")).await,
        [
            "editor read_file: 1\tone",
            "editor read_file: failed: \"../secret.md\" leads out of the workspace, which is all that can be used; give a path \
             inside it, such as \"src/main.rs\"",
            "editor write_file: created \"draft.md\" (3 bytes)",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_root_has_the_directory_that_its_spec_names_and_shares_it() {
    let model = ScriptedModel::new()
        .agent(
            "main",
            [
                Turn::new().write("a.md", "a"),
                Turn::new().spawn("general-purpose", "go"),
                Turn::new().text("ok"),
            ],
        )
        .agent("general-purpose", [Turn::new().read("a.md"), Turn::new().text("ok")]);
    // Code may name any directory.
    let (ws, elsewhere) = (dir(), dir());
    let main = || spec("main").with_workspace_path(elsewhere.path());
    let harness = harness(model.clone())
        .with_workspace(ws.path())
        .with_file_tools(true)
        .with_subagent(main())
        .build()
        .unwrap();
    let expected = ["general-purpose read_file: 1\ta", "main write_file: created \"a.md\" (1 bytes)"];
    assert_eq!(answers(harness.stream_events("go")).await, expected);
    assert_eq!((tree(ws.path()).as_str(), tree(elsewhere.path()).as_str()), ("", "a.md: a\n"));
    assert!(
        harness
            .diagnostics()
            .iter()
            .any(|found| found.to_string().contains("AGENTS.md: warning: agent \"main\" has no prompt"))
    );
    let error = Harness::builder("main", model).with_subagent(main()).build().unwrap_err().to_string();
    assert!(error.contains("workspace.path needs a harness with a workspace"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn an_allowlist_makes_an_agent_read_only() {
    let tries = [
        Turn::new()
            .read("plan.md")
            .write("plan.md", "mine")
            .call("shell", json!({ "command": "rm plan.md" })),
        Turn::new().text("ok"),
    ];
    let model = ScriptedModel::new()
        .agent("main", [Turn::new().spawn("reader", "go"), Turn::new().text("Done.")])
        .agent("reader", tries);
    let ws = dir();
    fs::create_dir(ws.path().join("subagents")).unwrap();
    let file = "---\ndescription: Reads\ntools: [read_file]\nworkspace.mode: shared\n---\n";
    fs::write(ws.path().join("subagents/reader.md"), file).unwrap();
    fs::write(ws.path().join("plan.md"), "one").unwrap();
    let harness = harness(model).with_workspace(ws.path()).with_file_tools(true);
    #[cfg(unix)]
    let harness = harness.with_shell(guarded());
    let harness = harness.build().unwrap();
    assert_eq!(harness.diagnostics(), []);
    let answers = answers(harness.stream_events("go")).await;
    assert_eq!(
        answers,
        [
            "reader read_file: 1\tone",
            "reader shell: failed: unknown tool \"shell\"; known: read_file",
            "reader write_file: failed: unknown tool \"write_file\"; known: read_file",
        ]
    );
    assert_eq!(fs::read_to_string(ws.path().join("plan.md")).unwrap(), "one");
}

/// Returns which of these paths the root and a child whose directory code names write; the child's
/// begin with `kid:`.
async fn written(ws: &Path, build: impl FnOnce(HarnessBuilder) -> HarnessBuilder) -> Vec<String> {
    let paths = ["mainstem.toml", "subagents/a.md", "tenants/acme/skills/a.md", "private/a.md", "notes.md"];
    let write = |paths: &[&str]| paths.iter().fold(Turn::new(), |turn, path| turn.write(path, "x"));
    let model = ScriptedModel::new()
        .agent("main", [write(&paths), Turn::new().spawn("kid", "go"), Turn::new().text("Done.")])
        .agent("kid", [write(&["b.md", "sub/c.md"]), Turn::new().text("ok")]);
    let harness = harness(model)
        .with_workspace(ws)
        .with_file_tools(true)
        .with_subagent(spec("kid").with_workspace_path("subagents"));
    let run = build(harness).build().unwrap().stream_events("go");
    let answers = answers(run).await;
    let written = answers.iter().filter_map(|answer| answer.split_once(" write_file: created "));
    written.map(|(who, what)| format!("{who}: {}", what.split('"').nth(1).unwrap())).collect()
}

#[tokio::test(start_paused = true)]
async fn what_the_next_run_obeys_is_written_only_where_the_harness_allows_it_by_name() {
    let allow = |pattern: &str| RuleSet::default().with_pattern(Effect::Allow, pattern).unwrap();
    let ws = dir();
    let protect = |harness: HarnessBuilder| harness.with_protected(ws.path().join("private"));
    assert_eq!(written(ws.path(), protect).await, ["main: notes.md"]);
    assert_eq!(tree(ws.path()), "notes.md: x\n");
    let everything = |harness: HarnessBuilder| {
        harness.with_permissions(allow("*")).with_workspace_permissions(allow("write_file(subagents/**)"))
    };
    assert_eq!(written(dir().path(), everything).await, ["main: notes.md", "main: private/a.md"]);
    let agents = |harness: HarnessBuilder| harness.with_permissions(allow("write_file(subagents/**)"));
    assert_eq!(
        written(dir().path(), agents).await,
        ["kid: b.md", "kid: sub/c.md", "main: notes.md", "main: private/a.md", "main: subagents/a.md"]
    );
}

/// Returns the names of the tools that the root has without those for children, and of those that a
/// child has.
fn tools(harness: HarnessBuilder) -> String {
    let harness = harness
        .with_subagent(spec("kid").with_disallowed_tools(["write_file"]))
        .with_max_depth(0)
        .build()
        .unwrap();
    let names = |agent: &Agent| agent.tools().names().collect::<Vec<_>>().join(" ");
    let warnings: String = harness.diagnostics().iter().map(|warning| format!("{warning}\n")).collect();
    let kid = names(harness.agents().catalog().get("kid").unwrap().agent.local().unwrap());
    format!("{}\n{kid}\n{warnings}", names(harness.agents().root()))
}

fn bare() -> HarnessBuilder {
    Harness::builder("main", ScriptedModel::new())
}

#[test]
fn who_has_which_tools() {
    let ws = dir();
    let with = || bare().with_workspace(ws.path());
    assert_eq!(tools(with()), "\n\n", "a directory alone brings no tools");
    let with = || with().with_file_tools(true);
    insta::assert_snapshot!(tools(with()), @"
    edit_file glob_files grep_files list_files read_file write_file
    edit_file glob_files grep_files list_files read_file
    ");
    assert_eq!(tools(bare().with_file_tools(true)), "\n\n");
    assert_eq!(tools(with().with_file_tools(false)), "\n\n");
    // The program's own tool wins.
    let own = || tool_fn("read_file", "Mine", |_, (): ()| async { Ok::<_, ToolError>("mine") });
    insta::assert_snapshot!(tools(with().with_tool(own())), @r#"
    edit_file glob_files grep_files list_files read_file write_file
    edit_file glob_files grep_files list_files read_file
    warning: the program has a tool "read_file", so the workspace's is not used
    "#);
    let harness = with().with_tool(own()).build().unwrap();
    assert_eq!(harness.agents().root().tools().get("read_file").unwrap().spec().description, "Mine");
    assert_eq!(tools(with().with_tool(own()).with_file_tools(false)), "read_file\nread_file\n");
}

#[cfg(unix)]
#[test]
fn a_shell_is_for_those_who_ask_for_it() {
    let ws = dir();
    assert_eq!(tools(bare().with_workspace(ws.path()).with_shell(guarded())), "shell\nshell\n");
    let error = bare().with_workspace(ws.path()).with_shell(ShellOptions::default()).build().unwrap_err();
    assert_eq!(
        error.to_string(),
        "the shell can't be used: no program guards commands: call `mainstem::guard::init()` first in `main`, or name one by `ShellOptions::with_guard`"
    );
    let error = bare().with_shell(guarded()).build().unwrap_err();
    assert_eq!(
        error.to_string(),
        "the shell needs a workspace to run in; name one with `workspace(directory)`"
    );
}

#[cfg(unix)]
#[tokio::test]
async fn a_command_runs_where_its_agent_works() {
    let command = |command: &str| Turn::new().call("shell", json!({ "command": command }));
    let model = ScriptedModel::new()
        .agent("main", [command("echo root > a"), Turn::new().spawn("kid", "go"), Turn::new().text("Done.")])
        .agent("kid", [command("ls; echo kid > a"), Turn::new().text("ok")]);
    let ws = dir();
    let harness = harness(model)
        .with_workspace(ws.path())
        .with_file_tools(true)
        .with_shell(guarded())
        .with_subagent(spec("kid"));
    answers(harness.build().unwrap().session("s").run("go").unwrap()).await;
    assert_eq!(tree(ws.path()), "a: root\n\nagents/kid/_/s/sub-1/a: kid\n\n");
}

/// Returns a shell whose commands this test binary guards, by the test below.
#[cfg(unix)]
fn guarded() -> ShellOptions {
    let itself = mainstem::guard::Program::new(std::env::current_exe().unwrap());
    let itself = itself.with_arg("--exact").with_arg("workspace::guards").with_arg("--nocapture");
    ShellOptions::default().with_guard(itself.with_arg("--test-threads=1"))
}

/// In a process that was started as a guard, this is where it works.
#[cfg(unix)]
#[test]
fn guards() {
    mainstem::guard::take_role();
}

/// A file that takes a minute to read: all but its beginning is a hole.
fn endless(path: &Path) {
    fs::write(path, "x\n".repeat(1 << 14)).unwrap();
    fs::File::options().write(true).open(path).unwrap().set_len(1 << 37).unwrap();
}

#[test]
fn a_cancel_ends_the_reading_of_a_file() {
    let ws = dir();
    endless(&ws.path().join("huge.txt"));
    let read = Turn::new().call("read_file", json!({ "path": "huge.txt", "offset": 1_000_000_000 }));
    let model = ScriptedModel::new().agent("main", [read, Turn::new().text("Done.")]);
    let started = Instant::now();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let run = runtime.block_on(async {
        let mut run = harness(model)
            .with_workspace(ws.path())
            .with_file_tools(true)
            .build()
            .unwrap()
            .stream_events("go");
        let (handle, mut events) = (run.handle(), Vec::new());
        while let Some(event) = run.next().await {
            if event.kind.name() == "TOOL_RESULT_START" {
                handle.cancel();
            }
            events.push(event);
        }
        laws(&events).unwrap();
        render(&events)
    });
    // Waits for the thread that reads.
    drop(runtime);
    assert!(started.elapsed() < Duration::from_secs(5), "it read on for {:?}", started.elapsed());
    let end = "TOOL_RESULT_END read_file interrupted (call-1)";
    assert!(run.contains(end) && run.contains("AGENT_END cancelled"), "{run}");
}
