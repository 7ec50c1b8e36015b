//! Several tenants on one harness: each has what is for all and what is its own, and no tenant sees
//! another's.

use mainstem::{
    BuildError,
    event::Ids,
    journal::MemoryJournal,
    model::scripted::Turn,
    prelude::*,
    task::{MemoryTaskStore, TaskFilter},
};
use mainstem_testing::CountedIds;
use serde_json::json;

use crate::support::{OpenNow, Overheard, Spawns, Told, answers, harness, ms, spawn_args, workspace, write};

/// Returns what an agent is told, at all of its model calls.
fn told_to(told: &Told, agent: &str) -> String {
    told.lock().unwrap().iter().filter(|(who, _)| who == agent).map(|(_, system)| system.as_str()).collect()
}

/// Returns all results of the root's calls.
async fn results(run: Run) -> String {
    let results = run.at_depth(0).kinds(["TOOL_RESULT_TEXT_DELTA"]);
    let texts = results.filter_map(async |event| match &event.kind {
        EventKind::ToolResultTextDelta { delta, .. } => Some(delta.clone()),
        _ => None,
    });
    texts.collect::<Vec<_>>().await.join("\n")
}

const AGENT: &str = "---\ndescription: Works\n---\n";

#[tokio::test(start_paused = true)]
async fn two_tenants_have_different_agents_and_neither_hears_of_the_others() {
    let ws = workspace(&[
        ("subagents/common.md", AGENT),
        ("tenants/acme/subagents/alpha.md", AGENT),
        ("tenants/globex/subagents/omega.md", AGENT),
        ("tenants/acme/skills/alchemy/SKILL.md", AGENT),
    ]);
    let ask =
        || Turn::new().spawn("alpha", "x").spawn("omega", "x").spawn("common", "x").spawn("insider", "x");
    let look = || Turn::new().call("agent_list", json!({})).call("load_skill", json!({ "name": "alchemy" }));
    let turns = [ask(), look(), Turn::new().text("Done.")];
    let ok = || [Turn::new().text("ok")];
    let model = ScriptedModel::new().agent("main", turns);
    let model =
        ["alpha", "omega", "common", "insider"].into_iter().fold(model, |model, id| model.agent(id, ok()));
    let (model, told) = Overheard::new(model);
    let harness = harness(model)
        .with_workspace(ws.path())
        .with_tenant_subagent("globex", AgentSpec::new("insider", "Declared for globex in code"))
        .build()
        .unwrap();

    // Under one session id, too: it is not the same session.
    let acme = results(harness.tenant("acme").unwrap().session("s").run("go").unwrap()).await;
    let acme_told = told_to(&told, "main");
    told.lock().unwrap().clear();
    let globex = results(harness.tenant("globex").unwrap().session("s").run("go").unwrap()).await;
    let globex_told = told_to(&told, "main");

    assert!(
        acme_told.contains("- `alpha`") && acme_told.contains("- `common`") && acme_told.contains("alchemy")
    );
    assert!(globex_told.contains("- `omega`") && globex_told.contains("- `insider`"));
    let check = |text: &str, others: &[&str]| {
        others.iter().for_each(|word| assert!(!text.contains(word), "{word}: {text}"));
    };
    check(&acme_told, &["omega", "insider", "globex"]);
    check(&globex_told, &["alpha", "alchemy", "acme"]);
    assert!(acme.contains("unknown agent_id \"omega\"; known: alpha, common, general-purpose"), "{acme}");
    assert!(acme.contains("unknown agent_id \"insider\"; known: alpha, common, general-purpose"), "{acme}");
    assert!(
        globex.contains("unknown agent_id \"alpha\"; known: common, general-purpose, insider, omega"),
        "{globex}"
    );
    // What the lists of children say.
    check(&acme, &["agent_id\":\"omega", "agent_id\":\"insider"]);
    check(&globex, &["agent_id\":\"alpha"]);
    assert!(acme.contains("skill: alchemy") && !globex.contains("skill: alchemy"));
    // Nor does the harness itself have what is a tenant's.
    assert!(["alpha", "omega", "insider"].iter().all(|id| harness.agents().catalog().get(id).is_none()));
}

#[tokio::test(start_paused = true)]
async fn a_tenant_works_in_its_own_directory_and_hears_of_its_own_tasks() {
    let ws = workspace(&[
        ("tenants/acme/secret.txt", "of acme"),
        ("skills/pdf/SKILL.md", AGENT),
        ("skills/pdf/x.md", ""),
    ]);
    let read = |path: &str| Turn::new().call("read_file", json!({ "path": path }));
    let mut task = spawn_args("general-purpose", "dig");
    task["timeout_seconds"] = json!(0);
    let model = ScriptedModel::new()
        .agent_on(
            "main",
            "dig",
            [
                read("secret.txt").call("load_skill", json!({ "name": "pdf" })).call("agent_spawn", task),
                Turn::new().text("Begun."),
                Turn::new().text("Dug."),
            ],
        )
        .agent_on(
            "main",
            "look",
            [
                read("../acme/secret.txt")
                    .call("read_file", json!({ "path": "secret.txt" }))
                    .call("load_skill", json!({ "name": "pdf" }))
                    .call("task_list", json!({})),
                Turn::new().text("Done."),
            ],
        )
        .agent("general-purpose", [Turn::new().wait(ms(5)).text("dug")]);
    let harness = harness(model).with_workspace(ws.path()).with_file_tools(true).build().unwrap();
    let (acme, globex) = (harness.tenant("acme").unwrap(), harness.tenant("globex").unwrap());
    let (acme, globex) = (acme.session("s"), globex.session("s"));
    let mut all = answers(acme.run(RunRequest::new("dig").with_background(Background::Wait)).unwrap()).await;
    all.extend(answers(globex.run("look").unwrap()).await);
    insta::assert_snapshot!(all.join("\n"), @r#"
    main load_skill: skill: pdf
    main read_file: 1	of acme
    main load_skill: skill: pdf
    main read_file: failed: "../acme/secret.txt" leads out of the workspace, which is all that can be used; give a path inside it, such as "src/main.rs"
    main read_file: failed: "secret.txt" does not exist; list_files shows what does
    main task_list: You have no background tasks.
    "#);
    assert_eq!((acme.tasks().await.unwrap().len(), globex.tasks().await.unwrap().len()), (1, 0));
    harness.shutdown(ms(10)).await;
}

#[tokio::test(start_paused = true)]
async fn tools_know_for_which_tenant_they_work() {
    let whose = tool_fn(
        "whose",
        "Tells",
        |cx: ToolContext, _: serde_json::Map<String, serde_json::Value>| async move {
            Ok::<_, ToolError>(
                cx.attributes().get("tenant").map_or_else(|| "no tenant's".to_owned(), ToString::to_string),
            )
        },
    );
    let model = || {
        let ask = || [Turn::new().call("whose", json!({})), Turn::new().text("ok")];
        ScriptedModel::new().agent("main", ask().into_iter().chain(ask()))
    };
    let harness = harness(model()).with_tool(whose).build().unwrap();
    let forged = || RunOptions::new().with_attribute("tenant", "globex");
    let acme = harness.tenant("acme").unwrap();
    assert_eq!(
        answers(acme.stream_events(RunRequest::new("go").with_options(forged()))).await,
        ["main whose: \"acme\""]
    );
    assert_eq!(answers(harness.stream_events("go")).await, ["main whose: no tenant's"]);
}

#[tokio::test(start_paused = true)]
async fn a_tenants_files_are_read_again_and_win_over_those_for_all() {
    let agent = |description: &str| format!("---\ndescription: {description}\n---\n");
    let ws = workspace(&[("subagents/critic.md", &agent("Common"))]);
    let model = ScriptedModel::new().agent("main", [Turn::new().text("ok"), Turn::new().text("ok")]);
    let harness = harness(model).with_workspace(ws.path()).build().unwrap();
    let acme = harness.tenant("acme").unwrap();
    let critic =
        |harness: &Harness| harness.agents().catalog().get("critic").unwrap().spec.description.clone();
    assert_eq!(critic(&acme), "Common");
    write(ws.path(), "tenants/acme/subagents/critic.md", &agent("Own"));
    acme.call("go").await.unwrap();
    harness.call("go").await.unwrap();
    assert_eq!((critic(&acme), critic(&harness)), ("Own".to_owned(), "Common".to_owned()));
    let root = format!("{}/", ws.path().display());
    let said: Vec<_> = acme.diagnostics().iter().map(|line| line.to_string().replace(&root, "")).collect();
    insta::assert_snapshot!(said.join("\n"), @r#"subagents/critic.md: warning: agent "critic" is declared twice: the one in tenants/acme/subagents/critic.md replaces the one in subagents/critic.md"#);
    assert_eq!(harness.diagnostics(), []);
}

#[test]
fn a_tenants_name_stays_in_its_directory() {
    let ws = workspace(&[]);
    let bare = || Harness::builder("main", ScriptedModel::new());
    let refusal = |harness: &Harness, name: &str| match harness.tenant(name) {
        Err(error @ BuildError::Tenant { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    };
    let harness = bare().with_workspace(ws.path()).build().unwrap();
    for name in ["", "..", "a/b", "/etc", "Acme", "a b", "-a", "é", "a\0"] {
        let expected = format!("tenant {name:?}: use a-z, 0-9, _ and -, starting with a letter or digit");
        assert_eq!(refusal(&harness, name), expected);
    }
    let acme = harness.tenant("acme").unwrap();
    assert_eq!(refusal(&acme, "globex"), "tenant \"globex\": a tenant has no tenants");
}

/// The same id for every task: what two processes with ids of their own might come to.
struct SameTasks(CountedIds);

impl Ids for SameTasks {
    fn next(&self, prefix: &str) -> String {
        if prefix == "task-" { "task-1".to_owned() } else { self.0.next(prefix) }
    }
}

#[tokio::test(start_paused = true)]
async fn tenants_share_a_task_store_of_the_program_and_see_only_their_own_tasks() {
    let begin = |task: &str| {
        Turn::new()
            .call("agent_spawn", json!({ "agent_id": "general-purpose", "task": task, "timeout_seconds": 0 }))
    };
    let look = Turn::new().call("task_list", json!({})).call("task_output", json!({ "task_id": "task-1" }));
    let cancel = Turn::new().call("task_cancel", json!({ "task_id": "acme/task-1" }));
    let model = ScriptedModel::new()
        .agent_on("main", "dig", [begin("dig"), Turn::new().text("Begun."), Turn::new().text("Dug.")])
        // What comes after "Done." is for the second run.
        .agent_on(
            "main",
            "look",
            [
                look,
                cancel,
                Turn::new().text("Done."),
                begin("burrow"),
                Turn::new().text("Begun."),
                Turn::new().text("Dug."),
            ],
        )
        .agent_on("general-purpose", "dig", [Turn::new().wait(ms(5)).text("dug")])
        .agent_on("general-purpose", "burrow", [Turn::new().wait(ms(5)).text("dug, too")]);
    let ids = SameTasks(CountedIds::default());
    let harness = harness(model).with_ids(ids).with_task_store(MemoryTaskStore::new()).build().unwrap();
    let (acme, globex) = (harness.tenant("acme").unwrap(), harness.tenant("globex").unwrap());
    let wait = || RunOptions::new().with_background(Background::Wait);
    answers(acme.session("s").run(RunRequest::new("dig").with_options(wait())).unwrap()).await;
    // The same session and task ids as the other tenant's.
    let session = globex.session("s");
    let seen = answers(session.run("look").unwrap()).await.join("\n");
    assert!(seen.contains("You have no background tasks."), "{seen}");
    assert!(
        seen.contains("unknown task_id \"task-1\"") && seen.contains("unknown task_id \"acme/task-1\""),
        "{seen}"
    );
    answers(session.run(RunRequest::new("go on").with_options(wait())).unwrap()).await;
    let listed = async |harness: &Harness| {
        let tasks = harness.tasks().list(&TaskFilter::all()).await.unwrap();
        tasks
            .iter()
            .map(|task| format!("{} {}", task.id, task.result.as_deref().unwrap_or("-")))
            .collect::<Vec<_>>()
    };
    assert_eq!(listed(&acme).await, ["task-1 dug"]);
    assert_eq!(listed(&globex).await, ["task-1 dug, too"]);
    assert_eq!(listed(&harness).await, ["acme/task-1 dug", "globex/task-1 dug, too"]);
    harness.shutdown(ms(10)).await;
}

#[tokio::test(start_paused = true)]
async fn an_id_of_a_caller_does_not_reach_a_tenants_session() {
    let model = ScriptedModel::new().agent("main", [Turn::new().text("The code is 4711.")]);
    let harness = harness(model).with_journal(MemoryJournal::new()).build().unwrap();
    let acme = harness.tenant("acme").unwrap();
    let secret = acme.session("secret");
    secret.run("What is the code?").unwrap().reply().await.unwrap();
    assert!(acme.close_session(secret.id()));
    drop(secret);
    let opened = harness.open_session("acme/secret").await;
    let refusal = opened.map(|session| session.history()).unwrap_err().to_string();
    assert!(refusal.starts_with("invalid session id \"acme/secret\": '/' at character 5"), "{refusal}");
    // The same id is a session of the harness's own.
    assert!(harness.session("secret").history().is_empty());
}
