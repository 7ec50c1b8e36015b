//! `agent_generate`: new agents are drafted, checked, and written to new files.

use mainstem::{message::ToolState, model::scripted::Turn, policy::Budget, prelude::*};
use mainstem_testing::{laws, render};
use serde_json::{Value, json};

use crate::support::harness;

const GOOD: &str = "---\ndescription: Finds typos\ntools: [read_file]\n---\nYou find typos.\n";

/// Returns a root that makes this call and then is done, with a model whose drafts are these.
fn drafts(call: Value, drafts: &[&str]) -> ScriptedModel {
    ScriptedModel::new()
        .agent("main", [Turn::new().call("agent_generate", call), Turn::new().text("Done.")])
        .agent("agent_generate", drafts.iter().map(|draft| Turn::new().text(*draft)).collect::<Vec<_>>())
}

fn typos() -> Value {
    json!({ "name": "typo-finder", "description": "Finds typos in texts" })
}

/// Returns the events, and the state and text of the call's result.
async fn run(harness: HarnessBuilder, options: RunOptions) -> (Vec<AgentEvent>, ToolState, String) {
    let harness = harness.with_agent_generate(true).build().unwrap();
    let events: Vec<_> = harness.stream_events(RunRequest::new("go").with_options(options)).collect().await;
    laws(&events).unwrap_or_else(|error| panic!("{error}\n{}", render(&events)));
    let (mut state, mut text) = (None, String::new());
    for event in events.iter().filter(|event| event.is_root()) {
        match &event.kind {
            EventKind::ToolResultTextDelta { delta, .. } => text.push_str(delta),
            EventKind::ToolResultEnd { state: is, .. } => state = Some(*is),
            _ => {}
        }
    }
    (events, state.unwrap(), text)
}

fn file(dir: &tempfile::TempDir) -> Option<String> {
    std::fs::read_to_string(dir.path().join("subagents/typo-finder.md")).ok()
}

#[tokio::test(start_paused = true)]
async fn a_draft_is_a_child_whose_file_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let model = drafts(typos(), &[&format!("```markdown\n{GOOD}```")]);
    let (events, state, text) =
        run(harness(model.clone()).with_workspace(dir.path()).with_file_tools(true), RunOptions::new()).await;
    insta::assert_snapshot!(render(&events), @r#"
    0 main AGENT_START main "go"
    0 main MODEL_CALL_START scripted #1
    0 main TOOL_CALL_START agent_generate (call-1)
    0 main TOOL_CALL_DELTA "{\"name\":\"typo-finder\",\"description\":\"Finds typos in texts\"}" (call-1)
    0 main TOOL_CALL_END agent_generate (call-1)
    0 main MODEL_CALL_END tool_calls
    0 main TOOL_RESULT_START agent_generate {"name":"typo-finder","description":"Finds typos in texts"} (call-1)
    0   agent_generate#1 AGENT_START agent_generate "Write the file of the agent `typo-finder`. What it shall be:\n\nFinds typos in tex"…
    0   agent_generate#1 MODEL_CALL_START scripted #1
    0   agent_generate#1 TEXT_BLOCK_START
    0   agent_generate#1 TEXT_BLOCK_DELTA "```markdown\n---\ndescription: Finds typos\ntools: [read_file]\n---\nYou find typos.\n"…
    0   agent_generate#1 TEXT_BLOCK_END
    0   agent_generate#1 MODEL_CALL_END stop
    0   agent_generate#1 AGENT_RESULT "```markdown\n---\ndescription: Finds typos\ntools: [read_file]\n---\nYou find typos.\n"…
    0   agent_generate#1 AGENT_END success 42/42 tok
    0 main TOOL_RESULT_TEXT_DELTA "path: subagents/typo-finder.md\nstatus: written\nnote: agent_spawn can start it fr"… (call-1)
    0 main TOOL_RESULT_END agent_generate success (call-1)
    0 main MODEL_CALL_START scripted #2
    0 main TEXT_BLOCK_START
    0 main TEXT_BLOCK_DELTA "Done."
    0 main TEXT_BLOCK_END
    0 main MODEL_CALL_END stop
    0 main AGENT_RESULT "Done."
    0 main AGENT_END success 19/61 tok
    "#);
    assert_eq!((state, file(&dir).as_deref()), (ToolState::Success, Some(GOOD)));
    insta::assert_snapshot!(text, @"
    path: subagents/typo-finder.md
    status: written
    note: agent_spawn can start it from now on
    file:
    ---
    description: Finds typos
    tools: [read_file]
    ---
    You find typos.
    ");
    assert_eq!(std::fs::read_dir(dir.path().join("subagents")).unwrap().count(), 1);
    // The root pays for it.
    let Some(EventKind::AgentEnd { usage, .. }) = events.last().map(|event| &event.kind) else { panic!() };
    assert!(usage.inclusive.output_tokens > usage.own.output_tokens);
    // Read again, it is an agent.
    let harness = harness(model).with_workspace(dir.path()).with_file_tools(true).build().unwrap();
    assert_eq!(harness.agents().catalog().get("typo-finder").unwrap().spec.prompt, "You find typos.");
    assert!(harness.agents().root().tools().get("agent_generate").is_none(), "only for those who want it");
}

#[tokio::test(start_paused = true)]
async fn a_draft_that_is_none_goes_back_once() {
    let bad = "---\ntools: [read_file, fly]\nsteps: many\n---\nYou find typos.";
    let unknown = "---\ndescription: Finds typos\ntools: [fly]\n---\nYou find typos.";
    // The second is right.
    let dir = tempfile::tempdir().unwrap();
    let (events, state, _) = run(
        harness(drafts(typos(), &[bad, GOOD])).with_workspace(dir.path()).with_file_tools(true),
        RunOptions::new(),
    )
    .await;
    assert_eq!((state, file(&dir).as_deref()), (ToolState::Success, Some(GOOD)));
    let asked: Vec<_> = events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::AgentStart { input, .. } if !event.is_root() => Some(input[0].text()),
            _ => None,
        })
        .collect();
    insta::assert_snapshot!(asked.join("\n\n"), @r#"
    Write the file of the agent `typo-finder`. What it shall be:

    Finds typos in texts

    This is no agent file:
    subagents/typo-finder.md:1:1: error: the description is missing: say what the agent is for, the model chooses by it
    subagents/typo-finder.md:3:8: error: expected a whole number, got "many"
    Answer with the whole file again, corrected.
    "#);
    // It is not.
    let dir = tempfile::tempdir().unwrap();
    let (_, state, text) = run(
        harness(drafts(typos(), &[bad, unknown])).with_workspace(dir.path()).with_file_tools(true),
        RunOptions::new(),
    )
    .await;
    assert_eq!((state, file(&dir)), (ToolState::Error, None));
    let (errors, shown) = text.split_once("file:\n").unwrap();
    assert!(
        errors.contains("error: there is no tool \"fly\"; known: edit_file, flaky, glob_files,"),
        "{errors}"
    );
    assert_eq!(shown.trim_end(), unknown);
    // It would be left out until it is trusted.
    let starts = "---\ndescription: Finds typos\nmcp_servers: {x: {command: evil}}\n---\nYou find typos.";
    let dir = tempfile::tempdir().unwrap();
    let (_, state, text) = run(
        harness(drafts(typos(), &[starts, starts])).with_workspace(dir.path()).with_file_tools(true),
        RunOptions::new(),
    )
    .await;
    assert_eq!((state, file(&dir)), (ToolState::Error, None));
    assert!(text.contains("error: mcp_servers.x needs the user's trust: leave it out"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn what_is_there_or_leads_out_or_is_no_name_is_refused() {
    let check = async |call: Value, prepare: fn(&std::path::Path), expected: &str| {
        let dir = tempfile::tempdir().unwrap();
        prepare(dir.path());
        let workspace = dir.path().join("ws");
        std::fs::create_dir_all(&workspace).unwrap();
        let (_, state, text) = run(
            harness(drafts(call, &[GOOD])).with_workspace(&workspace).with_file_tools(true),
            RunOptions::new(),
        )
        .await;
        assert_eq!((state, &*text), (ToolState::Error, expected));
        (dir, workspace)
    };
    let there =
        "subagents/typo-finder.md is there already, and stays as it is: edit it, or take another name";
    let (_dir, workspace) = check(
        typos(),
        |dir| {
            std::fs::create_dir_all(dir.join("ws/subagents")).unwrap();
            std::fs::write(dir.join("ws/subagents/typo-finder.md"), "mine").unwrap();
        },
        there,
    )
    .await;
    assert_eq!(std::fs::read_to_string(workspace.join("subagents/typo-finder.md")).unwrap(), "mine");
    #[cfg(unix)]
    {
        let (dir, _) = check(
            typos(),
            |dir| {
                std::fs::create_dir_all(dir.join("ws")).unwrap();
                std::fs::create_dir(dir.join("outside")).unwrap();
                std::os::unix::fs::symlink("../outside", dir.join("ws/subagents")).unwrap();
            },
            "subagents leads out of the workspace, so nothing was written",
        )
        .await;
        assert_eq!(std::fs::read_dir(dir.path().join("outside")).unwrap().count(), 0);
    }
    let call = json!({ "name": "../typo", "description": "Finds typos" });
    let no_name = "error: agent \"../typo\": invalid agent id \"../typo\": use a-z, 0-9, _ and -, starting with a letter or digit";
    check(call, |_| (), no_name).await;
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_only_shows_and_plans_and_budgets_hold() {
    let dir = tempfile::tempdir().unwrap();
    let dry = json!({ "name": "typo-finder", "description": "Finds typos", "dry_run": true });
    let (_, state, text) = run(
        harness(drafts(dry, &[GOOD])).with_workspace(dir.path()).with_file_tools(true),
        RunOptions::new(),
    )
    .await;
    assert_eq!((state, file(&dir)), (ToolState::Success, None));
    assert_eq!(
        text,
        format!("path: subagents/typo-finder.md\nstatus: dry_run, nothing was written\nfile:\n{GOOD}")
    );

    let planned = || harness(drafts(typos(), &[GOOD])).with_workspace(dir.path()).with_file_tools(true);
    let (_, state, _) = run(planned(), RunOptions::new().with_plan_mode(true)).await;
    assert_eq!((state, file(&dir)), (ToolState::Denied, None), "it writes");

    let mut budget = Budget::default();
    budget.spawns = Some(0);
    let (_, state, text) = run(planned(), RunOptions::new().with_budget(budget)).await;
    assert_eq!((state, file(&dir)), (ToolState::Error, None), "{text}");
}

#[tokio::test(start_paused = true)]
async fn children_have_it_if_they_list_it() {
    let dir = tempfile::tempdir().unwrap();
    let harness = harness(ScriptedModel::new())
        .with_workspace(dir.path())
        .with_file_tools(true)
        .with_agent_generate(true)
        .with_subagent(AgentSpec::new("maker", "M").with_tools(["agent_generate"]))
        .with_subagent(AgentSpec::new("other", "O"))
        .build()
        .unwrap();
    let has = |id: &str| {
        harness
            .agents()
            .catalog()
            .get(id)
            .unwrap()
            .agent
            .local()
            .unwrap()
            .tools()
            .get("agent_generate")
            .is_some()
    };
    assert_eq!((has("maker"), has("other"), has("general-purpose")), (true, false, false));
    assert_eq!(harness.diagnostics(), []);
}

#[test]
fn it_needs_a_workspace() {
    let built = harness(ScriptedModel::new()).with_agent_generate(true).build();
    assert!(built.unwrap_err().to_string().contains("workspace"));
}
