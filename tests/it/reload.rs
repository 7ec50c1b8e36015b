//! Files that change while a harness lives: in effect from the next turn on, and never in the
//! middle of one.

use std::{fs, path::PathBuf};

use mainstem::{event::view::EventStreamExt as _, model::scripted::Turn, prelude::*};
use serde_json::json;

use crate::support::{OpenNow, Overheard, Spawns, Told, answers, harness, ms, workspace, write};

/// Returns an agent file.
fn agent(description: &str, prompt: &str) -> String {
    format!("---\ndescription: {description}\n---\n{prompt}\n")
}

/// Returns a tool that changes the files of this workspace, in the middle of a turn.
fn edits(dir: PathBuf) -> impl Tool {
    tool_fn("edits", "Edits", move |_, _: serde_json::Map<String, serde_json::Value>| {
        write(&dir, "subagents/critic.md", &agent("New", "You are the new critic."));
        write(&dir, "subagents/added.md", &agent("Added", "You were added."));
        fs::remove_file(dir.join("subagents/gone.md")).unwrap();
        async { Ok::<_, ToolError>("edited") }
    })
}

/// Returns the first line of the instructions of an agent's model calls, in their order.
fn prompts(told: &Told, agent: &str) -> Vec<String> {
    let told = told.lock().unwrap();
    let mine = told.iter().filter(|(who, _)| who == agent);
    mine.map(|(_, system)| system.lines().next().unwrap_or_default().to_owned()).collect()
}

fn warnings(harness: &Harness, dir: &tempfile::TempDir) -> String {
    let root = format!("{}/", dir.path().display());
    harness.diagnostics().iter().map(|line| format!("{line}\n").replace(&root, "")).collect()
}

#[tokio::test(start_paused = true)]
async fn an_edit_is_in_effect_from_the_next_turn_and_not_before() {
    let (old, gone) = (agent("Old", "You are the old critic."), agent("Gone", "You will be gone."));
    let ws = workspace(&[("subagents/critic.md", &old), ("subagents/gone.md", &gone)]);
    let all = || Turn::new().spawn("critic", "x").spawn("added", "x").spawn("gone", "x");
    let ok = || [Turn::new().text("ok"), Turn::new().text("ok")];
    let model = ScriptedModel::new()
        .agent(
            "main",
            [
                Turn::new().call("edits", json!({})),
                all(),
                Turn::new().text("Done."),
                all(),
                Turn::new().text("Done."),
            ],
        )
        .agent("critic", ok())
        .agent("added", ok())
        .agent("gone", ok());
    let (model, told) = Overheard::new(model);
    let harness =
        harness(model).with_workspace(ws.path()).with_tool(edits(ws.path().to_owned())).build().unwrap();
    let session = harness.session("s");
    let spawned = async |run: Run| {
        let ends = run.kinds(["TOOL_RESULT_TEXT_DELTA"]).at_depth(0);
        let text: Vec<_> = ends.map(|event| event.kind.to_string()).collect().await;
        text.into_iter().filter(|line| line.contains("unknown")).collect::<Vec<_>>().join("\n")
    };
    insta::assert_snapshot!(spawned(session.run("one").unwrap()).await, @r#"TOOL_RESULT_TEXT_DELTA "unknown agent_id \"added\"; known: critic, general-purpose, gone" (call-3)"#);
    assert_eq!(prompts(&told, "critic"), ["You are the old critic."]);
    insta::assert_snapshot!(spawned(session.run("two").unwrap()).await, @r#"TOOL_RESULT_TEXT_DELTA "unknown agent_id \"gone\"; known: added, critic, general-purpose" (call-7)"#);
    assert_eq!(prompts(&told, "critic"), ["You are the old critic.", "You are the new critic."]);
    let lists = |description: &str| {
        let told = told.lock().unwrap();
        let roots = told.iter().filter(|(who, _)| who == "main");
        roots.map(|(_, system)| system.contains(&format!("`critic`: {description}"))).collect::<Vec<_>>()
    };
    assert_eq!(lists("Old"), [true, true, true, false, false]);
    assert_eq!(lists("New"), [false, false, false, true, true]);
}

#[tokio::test(start_paused = true)]
async fn a_child_stays_what_it_was_spawned_as() {
    let free = "---\ndescription: Free\n---\nYou are free.\n";
    let bound = "---\ndescription: Bound\npermissions:\n  deny: [lookup]\n---\nYou are bound.\n";
    let ws = workspace(&[("subagents/critic.md", free)]);
    let spawn = |label: &str| json!({ "agent_id": "critic", "task": "look", "label": label });
    let look = || Turn::new().call("lookup", json!({ "word": "sense" }));
    let send = |label: &str| json!({ "label": label, "message": "again" });
    let model = ScriptedModel::new()
        .agent(
            "main",
            [
                Turn::new().call("agent_spawn", spawn("a")),
                Turn::new().text("Done."),
                Turn::new().call("agent_send", send("a")).call("agent_spawn", spawn("b")),
                Turn::new().text("Done."),
            ],
        )
        .agent("critic", [look(), Turn::new().text("ok"), look(), Turn::new().text("ok")]);
    let (model, told) = Overheard::new(model);
    let harness = harness(model).with_workspace(ws.path()).build().unwrap();
    let session = harness.session("s");
    assert_eq!(answers(session.run("one").unwrap()).await, ["critic lookup: sense found"]);
    write(ws.path(), "subagents/critic.md", bound);
    let answers = answers(session.run("two").unwrap()).await;
    let denied = "critic lookup: failed: lookup is denied by the rule \"lookup\" of agent \"critic\"";
    assert_eq!(answers, [denied, "critic lookup: sense found"]);
    let mut prompts = prompts(&told, "critic");
    prompts.sort();
    assert_eq!(prompts.iter().filter(|prompt| *prompt == "You are free.").count(), 4, "{prompts:?}");
    assert_eq!(prompts.iter().filter(|prompt| *prompt == "You are bound.").count(), 2, "{prompts:?}");
}

#[tokio::test(start_paused = true)]
async fn what_a_run_began_keeps_its_catalog_when_the_run_is_over() {
    let spawner = "---\ndescription: Spawns\ntools: [agent_spawn]\n---\n";
    let ws = workspace(&[
        ("subagents/boss.md", spawner),
        ("subagents/critic.md", &agent("Old", "You are the old critic.")),
    ]);
    let task = json!({ "agent_id": "boss", "task": "later", "timeout_seconds": 0 });
    let model = ScriptedModel::new()
        .agent(
            "main",
            [
                Turn::new().call("agent_spawn", task),
                Turn::new().text("Begun."),
                Turn::new().wait(ms(100)).text("Waited."),
            ],
        )
        .agent("boss", [Turn::new().wait(ms(50)).spawn("critic", "x"), Turn::new().text("ok")])
        .agent("critic", [Turn::new().text("ok")]);
    let (model, told) = Overheard::new(model);
    let harness = harness(model).with_workspace(ws.path()).build().unwrap();
    let session = harness.session("s");
    session.run("one").unwrap().reply().await.unwrap();
    write(ws.path(), "subagents/critic.md", &agent("New", "You are the new critic."));
    session.run("two").unwrap().reply().await.unwrap();
    assert_eq!(prompts(&told, "critic"), ["You are the old critic."]);
    assert_eq!(harness.agents().catalog().get("critic").unwrap().spec.description, "New");
    harness.shutdown(ms(10)).await;
}

#[tokio::test(start_paused = true)]
async fn a_file_that_has_errors_now_leaves_its_agent_as_it_was() {
    let ws = workspace(&[
        ("subagents/critic.md", &agent("Good", "You are good.")),
        ("subagents/poet.md", &agent("Good", "You are good.")),
        ("skills/pdf/SKILL.md", "---\ndescription: Good\n---\nGood.\n"),
    ]);
    let turns = || (0..4).map(|_| Turn::new().text("ok")).collect::<Vec<_>>();
    let harness =
        harness(ScriptedModel::new().agent("main", turns())).with_workspace(ws.path()).build().unwrap();
    assert_eq!(warnings(&harness, &ws), "");
    write(ws.path(), "subagents/critic.md", "---\ndescription: Broken\nsteps: many\n---\n");
    write(ws.path(), "subagents/poet.md", "---\ndescription: Lost\nmodel: unknown:model\n---\n");
    write(ws.path(), "skills/pdf/SKILL.md", "Broken.");
    harness.call("one").await.unwrap();
    insta::assert_snapshot!(warnings(&harness, &ws), @r#"
    subagents/critic.md:3:8: error: expected a whole number, got "many"
    subagents/critic.md: warning: agent "critic" stays in effect as it was before its file had errors
    skills/pdf/SKILL.md:1:1: error: the front matter is missing: the file starts with a "---" line, keys, and a "---" line
    skills/pdf/SKILL.md: warning: skill "pdf" stays in effect as it was before its file had errors
    subagents/poet.md:3:8: error: agent "poet": unknown model "unknown:model"; known: 
    warning: agent "poet" stays in effect as it was before
    "#);
    let agents = harness.agents();
    let is_good = |id: &str| {
        let entry = agents.catalog().get(id).unwrap();
        assert_eq!((&*entry.spec.description, &*entry.spec.prompt), ("Good", "You are good."), "{id}");
    };
    ["critic", "poet"].into_iter().for_each(is_good);
    assert_eq!(agents.skills().get("pdf").unwrap().body, "Good.");
    // It stays so as long as the errors do, whatever else changes.
    write(ws.path(), "subagents/other.md", &agent("Other", "You are another."));
    harness.call("two").await.unwrap();
    let agents = harness.agents();
    assert_eq!(agents.catalog().get("poet").unwrap().spec.description, "Good");
    assert_eq!(agents.catalog().get("critic").unwrap().spec.description, "Good");
    assert!(agents.catalog().get("other").is_some());
    // And until they are gone, with the file or without.
    write(ws.path(), "subagents/critic.md", &agent("Better", "You are better."));
    write(ws.path(), "skills/pdf/SKILL.md", "---\ndescription: Better\n---\nBetter.\n");
    fs::remove_file(ws.path().join("subagents/poet.md")).unwrap();
    harness.call("three").await.unwrap();
    let agents = harness.agents();
    assert_eq!(warnings(&harness, &ws), "");
    assert_eq!(agents.catalog().get("critic").unwrap().spec.description, "Better");
    assert_eq!(agents.skills().get("pdf").unwrap().body, "Better.");
    assert!(agents.catalog().get("poet").is_none());
}

#[tokio::test(start_paused = true)]
async fn the_root_is_read_again_too() {
    let file = |permissions: &str| {
        format!("---\ndescription: Root\npermissions:\n  {permissions}: deny\n---\nYou are the root.\n")
    };
    let ws = workspace(&[("subagents/main.md", &file("flaky"))]);
    let look = || [Turn::new().call("lookup", json!({ "word": "sense" })), Turn::new().text("ok")];
    let model = ScriptedModel::new().agent("main", [look(), look(), look()].into_iter().flatten());
    let harness = harness(model).with_workspace(ws.path()).build().unwrap();
    let session = harness.session("s");
    let run = |input: &str| answers(session.run(input).unwrap());
    assert_eq!(run("one").await, ["main lookup: sense found"]);
    write(ws.path(), "subagents/main.md", &file("lookup"));
    let denied = "main lookup: failed: lookup is denied by the rule \"lookup\" of agent \"main\"";
    assert_eq!(run("two").await, [denied]);
    write(ws.path(), "subagents/main.md", &file("\"look(up\""));
    assert_eq!(run("three").await, [denied]);
    insta::assert_snapshot!(warnings(&harness, &ws), @r#"error: agent "main": permissions: pattern "look(up", column 8: expected ")" for the "(" in column 5; all agents stay in effect as they were before"#);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_read_again_where_nothing_has_changed() {
    let ws = workspace(&[
        ("subagents/critic.md", &agent("Old", "")),
        ("skills/pdf/SKILL.md", "---\ndescription: d\n---\nx\n"),
    ]);
    let turns = [Turn::new().text("ok"), Turn::new().text("ok")];
    let harness =
        harness(ScriptedModel::new().agent("main", turns)).with_workspace(ws.path()).build().unwrap();
    let before = harness.agents();
    harness.call("one").await.unwrap();
    assert!(before.is_same(&harness.agents()));
    write(ws.path(), "skills/pdf/SKILL.md", "---\ndescription: other\n---\nx\n");
    harness.call("two").await.unwrap();
    assert!(!before.is_same(&harness.agents()));
}

#[tokio::test(start_paused = true)]
async fn a_prompt_that_a_directory_brings_is_read_again() {
    let ws = workspace(&[
        ("subagents/editor.md", "---\ndescription: Edits\nworkspace.path: team\n---\n"),
        ("team/AGENTS.md", "You edit."),
    ]);
    let turns = [Turn::new().text("ok")];
    let harness =
        harness(ScriptedModel::new().agent("main", turns)).with_workspace(ws.path()).build().unwrap();
    write(ws.path(), "team/AGENTS.md", "You edit with care.");
    harness.call("go").await.unwrap();
    assert_eq!(harness.agents().catalog().get("editor").unwrap().spec.prompt, "You edit with care.");
}

#[tokio::test(start_paused = true)]
async fn a_body_and_what_its_directory_says_are_one_prompt_once() {
    let ws = workspace(&[
        ("subagents/editor.md", "---\ndescription: Edits\nworkspace.path: team\n---\nYou are the editor.\n"),
        ("team/AGENTS.md", "Names are in English."),
    ]);
    let turns = || (0..3).map(|_| Turn::new().text("ok")).collect::<Vec<_>>();
    let harness =
        harness(ScriptedModel::new().agent("main", turns())).with_workspace(ws.path()).build().unwrap();
    let prompt = || harness.agents().catalog().get("editor").unwrap().spec.prompt.clone();
    assert_eq!(prompt(), "You are the editor.\n\nNames are in English.");
    assert_eq!(warnings(&harness, &ws), "");
    // What stays as it was is not added to again.
    write(ws.path(), "subagents/editor.md", "---\ndescription: Edits\nsteps: many\n---\n");
    harness.call("one").await.unwrap();
    write(ws.path(), "team/AGENTS.md", "Names are in French.");
    harness.call("two").await.unwrap();
    assert_eq!(prompt(), "You are the editor.\n\nNames are in French.");
}

/// "Everything and spawning" is what it says.
#[tokio::test(start_paused = true)]
async fn a_file_can_list_everything_and_spawning() {
    let ws = workspace(&[(
        "subagents/lead.md",
        "---\ndescription: Leads\ntools: ['*', agent_spawn]\n---\nLead.\n",
    )]);
    let harness = harness(ScriptedModel::new())
        .with_workspace(ws.path())
        .with_file_tools(true)
        .with_tool(edits(ws.path().to_owned()))
        .build()
        .unwrap();
    let agents = harness.agents();
    let tools: Vec<_> =
        agents.catalog().get("lead").unwrap().agent.local().unwrap().tools().names().collect();
    assert!(
        ["edits", "read_file", "agent_spawn"].iter().all(|name| tools.iter().any(|tool| tool == name)),
        "{tools:?}"
    );
    assert!(!tools.iter().any(|tool| tool == "agent_list"), "{tools:?}");
    assert_eq!(warnings(&harness, &ws), "");
}
