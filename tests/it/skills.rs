//! Skills: who is told of which, who reads them, and that lists only narrow.

use mainstem::{model::scripted::Turn, prelude::*};
use serde_json::json;

use crate::support::{Overheard, Spawns, Told, answers, harness, workspace};

trait Loads {
    fn load(self, skill: &str) -> Self;
}

impl Loads for Turn {
    fn load(self, skill: &str) -> Self {
        self.call("load_skill", json!({ "name": skill }))
    }
}

/// Returns the skills that an agent is told of.
fn listed(told: &Told, agent: &str) -> Vec<String> {
    let told = told.lock().unwrap();
    let (_, system) = told.iter().find(|(who, _)| who == agent).unwrap();
    let section = system.split("# Skills").nth(1).unwrap_or_default();
    let section = section.split("# ").next().unwrap_or_default();
    let lines = section.lines().filter_map(|line| line.strip_prefix("- `"));
    lines.filter_map(|line| line.split('`').next()).map(str::to_owned).collect()
}

const PDF: &str = "---\nname: pdf\ndescription: Fills in PDF forms\nlicense: MIT\n---\nUse pdftk.\n";

#[tokio::test(start_paused = true)]
async fn a_skill_is_listed_and_read_when_it_is_needed() {
    let ws = workspace(&[("skills/pdf/SKILL.md", PDF), ("skills/pdf/forms.md", "Field by field.")]);
    let read = json!({ "path": "skills/pdf/forms.md" });
    let (model, told) = Overheard::new(ScriptedModel::new().agent(
        "main",
        [Turn::new().load("pdf").load("pfd"), Turn::new().call("read_file", read), Turn::new().text("Done.")],
    ));
    let harness = harness(model).with_workspace(ws.path()).with_file_tools(true).build().unwrap();
    assert_eq!(harness.diagnostics(), []);
    // It changes nothing.
    let run = harness.stream_events(RunRequest::new("Fill it in").with_plan_mode(true));
    insta::assert_snapshot!(answers(run).await.join("\n"), @r#"
    main load_skill: failed: unknown skill "pfd"; known: pdf
    main load_skill: skill: pdf
    files: skills/pdf/forms.md

    Use pdftk.
    main read_file: 1	Field by field.
    "#);
    assert_eq!(listed(&told, "main"), ["pdf"]);
    assert!(told.lock().unwrap()[0].1.contains("- `pdf`: Fills in PDF forms"));
}

#[tokio::test(start_paused = true)]
async fn lists_of_skills_only_narrow_on_the_way_down() {
    let spawner = |id: &str| AgentSpec::new(id, "Spawns").with_tools(["agent_spawn", "load_skill"]);
    let loads = || Turn::new().load("csv").load("pdf").load("xml");
    let model = ScriptedModel::new()
        .agent(
            "main",
            [
                loads().spawn("heir", "x").spawn("two", "x").spawn("mute", "x").spawn("general-purpose", "x"),
                Turn::new().text("Done."),
            ],
        )
        .agent("heir", [loads(), Turn::new().text("ok")])
        .agent("general-purpose", [loads(), Turn::new().text("ok")])
        .agent("mute", [loads(), Turn::new().text("ok")])
        .agent("two", [loads().spawn("other", "x").spawn("below", "x"), Turn::new().text("ok")])
        .agent("other", [loads(), Turn::new().text("ok")])
        .agent("below", [loads(), Turn::new().text("ok")]);
    let (model, told) = Overheard::new(model);
    let skill = |name: &str| Skill::new(name, "Tells", "Read me.");
    let harness = harness(model)
        .with_subagent(AgentSpec::new("heir", "Has what its parent has"))
        .with_subagent(spawner("two").with_skills(["csv", "pdf"]))
        .with_subagent(
            AgentSpec::new("other", "Asks for more than its parent has").with_skills(["pdf", "xml"]),
        )
        .with_subagent(AgentSpec::new("below", "Has what its parent has"))
        .with_subagent(AgentSpec::new("mute", "Has no such tool").with_tools(["lookup"]))
        .with_skill(skill("csv"))
        .with_skill(skill("pdf"))
        .with_skill(skill("xml"))
        .build()
        .unwrap();
    let answers = answers(harness.stream_events("go")).await;
    let loaded = |agent: &str| {
        let mine =
            answers.iter().filter_map(|line| line.strip_prefix(&format!("{agent} load_skill: skill: ")));
        mine.map(|rest| rest.lines().next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let check = |agent: &str, expected: &[&str]| {
        assert_eq!(loaded(agent), expected, "{agent}");
        assert_eq!(listed(&told, agent), expected, "{agent}");
    };
    check("main", &["csv", "pdf", "xml"]);
    check("heir", &["csv", "pdf", "xml"]);
    check("general-purpose", &["csv", "pdf", "xml"]);
    check("two", &["csv", "pdf"]);
    check("below", &["csv", "pdf"]);
    check("other", &["pdf"]);
    check("mute", &[]);
    let refused: Vec<_> = answers.iter().filter(|line| line.contains("failed")).collect();
    insta::assert_debug_snapshot!(refused, @r#"
    [
        "below load_skill: failed: unknown skill \"xml\"; known: csv, pdf",
        "mute load_skill: failed: unknown tool \"load_skill\"; known: lookup",
        "mute load_skill: failed: unknown tool \"load_skill\"; known: lookup",
        "mute load_skill: failed: unknown tool \"load_skill\"; known: lookup",
        "other load_skill: failed: unknown skill \"csv\"; known: pdf",
        "other load_skill: failed: unknown skill \"xml\"; known: pdf",
        "two load_skill: failed: unknown skill \"xml\"; known: csv, pdf",
    ]
    "#);
}

#[test]
fn a_skill_of_the_program_wins_and_what_is_wrong_is_said() {
    let ws = workspace(&[
        ("skills/pdf/SKILL.md", PDF),
        ("skills/bad/SKILL.md", "---\nname: bad\n---\nUse pdftk.\n"),
        ("subagents/reader.md", "---\ndescription: Reads\nskills: [pdf, csv]\n---\n"),
    ]);
    let build =
        |harness: HarnessBuilder| harness.with_workspace(ws.path()).with_file_tools(true).build().unwrap();
    let bare = || Harness::builder("main", ScriptedModel::new());
    let harness = build(bare().with_skill(Skill::new("pdf", "Mine", "Mine.")));
    assert_eq!(harness.agents().skills().get("pdf").unwrap().description, "Mine");
    let root = format!("{}/", ws.path().display());
    let said: String =
        harness.diagnostics().iter().map(|line| format!("{line}\n").replace(&root, "")).collect();
    insta::assert_snapshot!(said, @r#"
    skills/bad/SKILL.md:1:1: error: the description is missing: say when to use the skill, the model chooses by it
    skills/pdf/SKILL.md: warning: skill "pdf" is declared twice: the one built in code replaces the one in skills/pdf/SKILL.md
    subagents/reader.md:3:15: warning: agent "reader" lists skill "csv", which does not exist; known: pdf
    "#);
    // Nor does the program's own tool of that name give way.
    let own = tool_fn("load_skill", "Mine", |_, (): ()| async { Ok::<_, ToolError>("mine") });
    let harness = build(bare().with_tool(own));
    assert_eq!(harness.agents().root().tools().get("load_skill").unwrap().spec().description, "Mine");
    let taken = "warning: the program has a tool \"load_skill\", so the workspace's is not used";
    assert!(harness.diagnostics().iter().any(|found| found.to_string() == taken));
    let error = bare().with_skill(Skill::new("a/b", "Mine", "")).build().unwrap_err().to_string();
    assert!(error.starts_with("skill \"a/b\": "), "{error}");
}

#[test]
fn without_skills_nobody_has_the_tool() {
    let harness = Harness::builder("main", ScriptedModel::new()).build().unwrap();
    assert!(harness.agents().root().tools().get("load_skill").is_none());
}
