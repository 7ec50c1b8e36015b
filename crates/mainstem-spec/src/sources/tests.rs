//! Who counts where several directories have one id.

use std::fs;

use insta::assert_snapshot;
use tempfile::TempDir;

use super::*;
use crate::{AgentSpec, Origin};

fn workspace(files: &[(&str, &str)]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (path, lines) in files {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("---\n{lines}\n---\nBe brief.\n")).unwrap();
    }
    dir
}

/// Each agent with its description, and what was said.
fn load(dir: &TempDir, sources: &Sources) -> (Vec<String>, String) {
    let (specs, errors) = sources.load();
    let specs = specs.iter().map(|spec| format!("{}: {}", spec.id, spec.description)).collect();
    let root = format!("{}/", dir.path().display());
    (specs, errors.iter().map(|error| format!("{error}\n").replace(&root, "")).collect())
}

#[test]
fn files_of_other_products_are_read_only_when_asked_for() {
    let dir = workspace(&[
        ("subagents/a.md", "description: ours"),
        (".claude/agents/b.md", "description: claude"),
        (".opencode/agent/c.md", "description: opencode"),
        (".opencode/agents/d.md", "description: opencode too"),
        (".github/agents/Big E.agent.md", "description: copilot"),
        (".gemini/agents/f.md", "description: gemini"),
        (".cursor/agents/g.md", "description: cursor"),
        (".goose/agents/h.md", "description: goose"),
        (".agents/agents/i.md", "description: goose too"),
        // Only Codex's are TOML.
        (".codex/agents/k.md", "description: not read"),
        (".claude/agents/l.toml", "description: not read"),
    ]);
    fs::write(dir.path().join(".codex/agents/j.toml"), "description = 'codex'").unwrap();
    let ours = Sources::of_workspace(dir.path());
    assert_eq!(load(&dir, &ours), (vec!["a: ours".to_owned()], String::new()));
    let (specs, said) = load(&dir, &ours.with_other_products_of(dir.path()));
    let expected = "a: ours, b: claude, big-e: copilot, c: opencode, d: opencode too, f: gemini, g: cursor, h: goose, i: goose too, j: codex";
    assert_eq!(specs.join(", "), expected);
    assert_snapshot!(said, @r#".github/agents/Big E.agent.md:1:1: warning: invalid agent id "Big E": use a-z, 0-9, _ and -, starting with a letter or digit; it is called "big-e" here"#);
}

#[test]
fn the_earlier_directory_counts_and_the_clash_is_said() {
    let dir = workspace(&[
        ("subagents/a.md", "description: ours"),
        (".claude/agents/a.md", "description: claude\ncolor: red"),
        (".opencode/agent/a.md", "description: opencode"),
        (".opencode/agent/b.md", "description: opencode"),
        (".github/agents/b.agent.md", "description: copilot"),
    ]);
    let sources = Sources::of_workspace(dir.path()).with_other_products_of(dir.path());
    let (specs, said) = load(&dir, &sources);
    assert_eq!(specs, ["a: ours", "b: opencode"]);
    assert_snapshot!(said, @r#"
    .claude/agents/a.md: warning: agent "a" is declared twice: the one in subagents/a.md replaces the one in .claude/agents/a.md
    .claude/agents/a.md:3:1: warning: "color" of Claude Code is ignored: nothing shows an agent's colour
    .opencode/agent/a.md: warning: agent "a" is declared twice: the one in .claude/agents/a.md replaces the one in .opencode/agent/a.md
    .github/agents/b.agent.md: warning: agent "b" is declared twice: the one in .opencode/agent/b.md replaces the one in .github/agents/b.agent.md
    "#);

    let (mut specs, _) = sources.load();
    let clash = specs.insert(AgentSpec::new("a", "in code")).unwrap();
    assert_eq!(specs.get("a").unwrap().origin, Origin::Program);
    assert!(clash.message.contains("the one built in code replaces the one in"), "{clash}");
}

#[test]
fn nothing_steps_into_the_place_of_a_file_that_is_broken_or_switched_off() {
    let dir = workspace(&[
        ("subagents/a.md", "description: ours\nsteps: many"),
        (".claude/agents/a.md", "description: claude"),
        ("subagents/b.md", "description: ours\ndisable: true"),
        (".opencode/agent/b.md", "description: opencode"),
        (".github/agents/C.agent.md", "steps: 1"),
        (".claude/agents/c.md", "description: claude"),
    ]);
    let (specs, said) = load(&dir, &Sources::of_workspace(dir.path()).with_other_products_of(dir.path()));
    assert_eq!(specs, ["c: claude"]);
    assert_snapshot!(said, @r#"
    subagents/a.md:3:8: error: expected a whole number, got "many"
    subagents/b.md:3:1: warning: the agent is switched off and left out
    subagents/a.md: warning: agent "a" is left out with the one in .claude/agents/a.md: this file comes first, and has errors or is switched off
    subagents/b.md: warning: agent "b" is left out with the one in .opencode/agent/b.md: this file comes first, and has errors or is switched off
    .github/agents/C.agent.md:1:1: warning: invalid agent id "C": use a-z, 0-9, _ and -, starting with a letter or digit; it is called "c" here
    .github/agents/C.agent.md:1:1: error: the description is missing: say what the agent is for, the model chooses by it
    "#);
}

#[test]
fn what_was_good_stays_where_a_file_has_errors_now() {
    let dir = workspace(&[
        ("subagents/a.md", "description: a"),
        ("subagents/b.md", "description: b"),
        ("subagents/c.md", "description: c"),
        ("subagents/d.md", "description: d"),
        (".claude/agents/a.md", "description: lesser"),
    ]);
    let sources = Sources::of_workspace(dir.path()).with_other_products_of(dir.path());
    let (last, _) = sources.load();
    let write = |name: &str, text: &str| fs::write(dir.path().join("subagents").join(name), text).unwrap();
    write("a.md", "---\ndescription: a\nsteps: many\n---\n");
    write("b.md", "---\ndescription: better\n---\n");
    write("c.md", "---\ndescription: c\ndisable: true\nmode: subagent\n---\n");
    fs::remove_file(dir.path().join("subagents/d.md")).unwrap();
    let listed = |(specs, errors): (SpecSet, Vec<SpecError>)| {
        let specs: Vec<_> = specs.iter().map(|spec| format!("{}: {}", spec.id, spec.description)).collect();
        let root = format!("{}/", dir.path().display());
        let said = errors.iter().map(|error| format!("{error}\n").replace(&root, ""));
        (specs.join(", "), said.collect::<String>())
    };
    let (specs, said) = listed(sources.reload(&last));
    assert_eq!(specs, "a: a, b: better");
    assert_snapshot!(said, @r#"
    subagents/a.md:3:8: error: expected a whole number, got "many"
    subagents/c.md:3:1: warning: the agent is switched off and left out
    subagents/a.md: warning: agent "a" stays in effect as it was before its file had errors
    .claude/agents/a.md: warning: agent "a" is declared twice: the one in subagents/a.md replaces the one in .claude/agents/a.md
    "#);
    let (kept, _) = sources.reload(&last);
    assert_eq!(listed(sources.reload(&kept)), (specs, said), "as long as the file has errors");
    assert_eq!(listed(sources.load()).0, "b: better", "nothing steps into its place");
}

#[test]
fn skills_are_loaded_again_like_agents() {
    let dir = workspace(&[
        ("skills/pdf/SKILL.md", "description: ours"),
        ("skills/csv/SKILL.md", "description: ours"),
        ("base/skills/pdf/SKILL.md", "description: lesser"),
        ("base/skills/xml/SKILL.md", "description: lesser"),
    ]);
    let sources = Sources::of_workspace(dir.path()).with_workspace(&dir.path().join("base"));
    let listed = |(skills, errors): (SkillSet, Vec<SpecError>)| {
        let skills: Vec<_> =
            skills.iter().map(|skill| format!("{}: {}", skill.name, skill.description)).collect();
        let root = format!("{}/", dir.path().display());
        let said = errors.iter().map(|error| format!("{error}\n").replace(&root, ""));
        (skills.join(", "), said.collect::<String>())
    };
    let (last, said) = sources.load_skills();
    assert_eq!(listed((last.clone(), said)).0, "csv: ours, pdf: ours, xml: lesser");
    fs::write(dir.path().join("skills/pdf/SKILL.md"), "no front matter").unwrap();
    fs::remove_dir_all(dir.path().join("skills/csv")).unwrap();
    let (skills, said) = listed(sources.reload_skills(&last));
    assert_eq!(skills, "pdf: ours, xml: lesser");
    assert_snapshot!(said, @r#"
    skills/pdf/SKILL.md:1:1: error: the front matter is missing: the file starts with a "---" line, keys, and a "---" line
    skills/pdf/SKILL.md: warning: skill "pdf" stays in effect as it was before its file had errors
    base/skills/pdf/SKILL.md: warning: skill "pdf" is declared twice: the one in skills/pdf/SKILL.md replaces the one in base/skills/pdf/SKILL.md
    "#);
    let (skills, said) = listed(sources.load_skills());
    assert_eq!(skills, "xml: lesser");
    assert_snapshot!(said, @r#"
    skills/pdf/SKILL.md:1:1: error: the front matter is missing: the file starts with a "---" line, keys, and a "---" line
    skills/pdf/SKILL.md: warning: skill "pdf" is left out with the one in base/skills/pdf/SKILL.md: this file comes first, and has errors or is switched off
    "#);
}

#[test]
fn a_prompt_is_looked_for_in_the_workspace_of_its_file() {
    let dir = workspace(&[
        ("subagents/a.md", "description: a\nworkspace.path: team"),
        ("base/subagents/b.md", "description: b\nworkspace.path: team"),
        ("team/AGENTS.md", "x: of a"),
        ("base/team/AGENTS.md", "x: of b"),
    ]);
    let sources = Sources::of_workspace(dir.path()).with_workspace(&dir.path().join("base"));
    let (mut specs, _) = sources.load();
    let mut ours = SpecSet::new();
    ours.insert(AgentSpec::new("c", "c").with_workspace_path("team"));
    specs.merge(ours);
    // Tenants lie below; what is theirs begins with their own directory.
    let workspaces = [dir.path().join("base"), dir.path().to_owned()];
    assert_eq!(crate::load_prompts(&mut specs, &workspaces), []);
    let prompt = |id: &str| specs.get(id).unwrap().prompt.contains("of b");
    assert_eq!([prompt("a"), prompt("b"), prompt("c")], [false, true, false]);
}
