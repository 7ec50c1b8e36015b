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
    ]);
    let ours = Sources::of_workspace(dir.path());
    assert_eq!(load(&dir, &ours), (vec!["a: ours".to_owned()], String::new()));
    let (specs, said) = load(&dir, &ours.with_other_products_of(dir.path()));
    assert_eq!(specs, ["a: ours", "b: claude", "big-e: copilot", "c: opencode", "d: opencode too"]);
    assert_snapshot!(said, @r#".github/agents/Big E.agent.md:1:1: warning: "Big E" is no agent id: use a-z, 0-9, _ and -, starting with a letter or digit; it is called "big-e" here"#);
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
    .github/agents/C.agent.md:1:1: warning: "C" is no agent id: use a-z, 0-9, _ and -, starting with a letter or digit; it is called "c" here
    .github/agents/C.agent.md:1:1: error: the description is missing: say what the agent is for, the model chooses by it
    "#);
}
