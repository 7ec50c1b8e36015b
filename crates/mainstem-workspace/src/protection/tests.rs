//! What is protected, in every spelling, and what exempts from it.

use std::{
    fs,
    os::unix::fs::symlink,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};

use mainstem_testing::context;
use mainstem_tool::ToolState;
use serde_json::{Value, json};

use super::*;
use crate::{
    Workspace,
    rig::{Rig, block_on, call},
    workspace::Target,
};

#[test]
fn names_decide() {
    for path in [
        "mainstem.toml",
        "MainStem.TOML",
        "sub/mainstem.toml",
        "subagents",
        "subagents/a.md",
        "Subagents/deep/a.md",
        "subagents./a.md",
        "skills/pdf/SKILL.md",
        "skills /pdf/forms.md",
        ".git",
        ".git/config",
        ".GIT/hooks/pre-commit",
        "vendor/lib/.git/config",
        "GIT~1/config",
        ".claude/agents/a.md",
        ".opencode/agent/a.md",
        ".opencode/agents/a.md",
        ".github/agents/a.agent.md",
        ".gemini/agents/a.md",
        ".cursor/agents/a.md",
        ".codex/agents/a.toml",
        ".goose/agents/a.md",
        ".agents/agents/a.md",
        "tenants/acme/subagents/a.md",
        "tenants/acme/skills/a/SKILL.md",
        "tenants/acme/agents/main/tasks/s.json",
        "agents/main/tasks/s.json",
        "agents/main/tasks/s.lock",
        "agents/.executors/e-1",
    ] {
        assert!(protected(Path::new(path)).is_some(), "{path}");
    }
    for path in [
        "a.txt",
        "src/skills/a.rs",
        "src/subagents/a.rs",
        "docs/mainstem.toml.md",
        ".gitignore",
        ".github/workflows/ci.yml",
        ".claude/settings.json",
        "agents/main/_/s/sub-1/notes.md",
        "agents/main/notes.md",
        "tenants/acme/notes.md",
        "tenants/skills",
        "artifacts/s/call.txt",
        "AGENTS.md",
    ] {
        assert_eq!(protected(Path::new(path)), None, "{path}");
    }
}

fn write(path: &str) -> Value {
    json!({ "path": path, "content": "evil" })
}

#[test]
fn no_spelling_and_no_link_leads_there() {
    let rig = Rig::with(&[
        ("src/a.txt", ""),
        ("skills/pdf/SKILL.md", "good"),
        (".git/config", "good"),
        ("elsewhere/b.md", "good"),
    ]);
    symlink("../skills/pdf", rig.at("src/pdf")).unwrap();
    symlink("skills/pdf/SKILL.md", rig.at("notes.md")).unwrap();
    symlink("elsewhere", rig.at("subagents")).unwrap();
    symlink("src/real.toml", rig.at("mainstem.toml")).unwrap();
    rig.write("src/real.toml", "good");
    let absolute = rig.at(".git/config");
    let paths = [
        ".git/config",
        "./.git/config",
        ".//.git/./config",
        "src/../.git/config",
        absolute.to_str().unwrap(),
        ".git/hooks/new/pre-commit",
        "src/pdf/SKILL.md",
        "src/pdf/new/forms.md",
        "notes.md",
        "subagents/b.md",
        "elsewhere/b.md",
        "elsewhere/new.md",
        "mainstem.toml",
        "src/real.toml",
        "skills/new/SKILL.md",
    ];
    for path in paths {
        let error = rig.err("write_file", write(path));
        assert!(error.contains("ask the user to allow \"write_file(path: "), "{path}: {error}");
        let edit = json!({ "path": path, "old": "good", "new": "evil" });
        assert!(rig.err("edit_file", edit).starts_with(&format!("{path:?} ")), "{path}");
    }
    for path in ["skills/pdf/SKILL.md", ".git/config", "elsewhere/b.md", "src/real.toml"] {
        assert_eq!(rig.read(path), b"good", "{path}");
    }
    for path in [".git/hooks", "skills/pdf/new", "skills/new", "elsewhere/new.md"] {
        assert!(!rig.at(path).exists(), "{path}: not even a directory is made");
    }
    rig.ok("write_file", write("src/a.txt"));
    assert_eq!(
        rig.ok("read_file", json!({ "path": "skills/pdf/SKILL.md" })),
        "1\tgood",
        "it is read as ever"
    );
}

#[test]
fn an_error_says_why_and_what_to_do() {
    let rig = Rig::new();
    #[track_caller]
    fn check(rig: &Rig, path: &str, expected: &str) {
        assert_eq!(rig.err("write_file", write(path)), format!("{path:?} {expected}"));
    }
    check(
        &rig,
        "subagents/a.md",
        "declares agents, which only the user changes; agent_generate, if you have it, drafts a new agent, or ask the user to allow \
         \"write_file(path: subagents/**)\"",
    );
    check(
        &rig,
        "mainstem.toml",
        "configures runs, which only the user does; tell the user what to change, or ask the user to allow \"write_file(path: mainstem.toml)\"",
    );
    check(
        &rig,
        "tenants/acme/skills/a/SKILL.md",
        "instructs agents, which only the user does; tell the user what to change, or ask the user to allow \
         \"write_file(path: tenants/acme/skills/**)\"",
    );
}

#[test]
fn a_workspace_inside_is_protected_by_its_place() {
    let rig = Rig::new();
    for dir in ["skills/pdf", ".git/hooks", "tenants/acme/subagents", "agents/main/tasks"] {
        let inner = rig.workspace.create_inside(dir).unwrap();
        let tool = inner.tools().into_iter().find(|tool| tool.spec().name == "write_file").unwrap();
        let (state, text) = block_on(call(&tool, &rig.cx, write("harmless.txt")));
        assert_eq!(state, ToolState::Error, "{dir}: {text}");
    }
    let own = rig.workspace.create_inside("agents/writer/_/s/sub-1").unwrap();
    let tool = own.tools().into_iter().find(|tool| tool.spec().name == "write_file").unwrap();
    for path in ["notes.md", "skills/notes.md", "subagents/draft.md"] {
        assert_eq!(
            block_on(call(&tool, &rig.cx, write(path))).0,
            ToolState::Success,
            "{path} is no agent's file"
        );
    }
}

#[test]
fn what_a_program_protects_and_lifts() {
    let rig = Rig::with(&[("private/key", "good"), ("own.toml", "good"), ("open/a.txt", "good")]);
    symlink("open", rig.at("way")).unwrap();
    let protection = Protection::new()
        .with_path(rig.at("private"))
        .with_path(rig.at("own.toml"))
        .with_path("/nowhere/at/all")
        .with_path(rig.at("way/not/yet"))
        .with_exemption(|tool, path| tool == "write_file" && path.starts_with("skills"));
    let workspace = Workspace::open(rig.at(".")).unwrap().with_protection(protection);
    let check = |tool: &str, path: &str, expected: ToolState| {
        let arguments = match tool {
            "write_file" => write(path),
            _ => json!({ "path": path, "old": "evil", "new": "good" }),
        };
        let found = workspace.tools().into_iter().find(|found| found.spec().name == tool).unwrap();
        let (state, text) = block_on(call(&found, &context("s").build(), arguments));
        assert_eq!(state, expected, "{tool} {path}: {text}");
    };
    check("write_file", "private/key", ToolState::Error);
    check("write_file", "open/not/yet/there", ToolState::Error);
    check("write_file", "way/a.txt", ToolState::Success);
    check("write_file", "own.toml", ToolState::Error);
    check("write_file", "own.toml.md", ToolState::Success);
    check("write_file", "skills/pdf/SKILL.md", ToolState::Success);
    check("edit_file", "skills/pdf/SKILL.md", ToolState::Error);
    check("write_file", "subagents/a.md", ToolState::Error);
}

/// A directory that is exchanged for a link to a protected one and back.
#[test]
fn a_swap_opens_no_way() {
    let rig = Rig::with(&[(".git/hooks/keep", ""), ("real/keep", "")]);
    symlink(".git/hooks", rig.at("link")).unwrap();
    let is_done = AtomicBool::new(false);
    let rounds = if std::env::var_os("RUN_SLOW_TESTS").is_some() { 200_000 } else { 10_000 };
    let written = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                for (from, to) in [("real", "way"), ("way", "real"), ("link", "way"), ("way", "link")] {
                    let _ = fs::rename(rig.at(from), rig.at(to));
                }
                // A write may have created it.
                let _ = fs::remove_dir_all(rig.at("way"));
            }
        });
        let path = rig.workspace.path("way/pre-commit").unwrap();
        let claim = || Target::claim("write_file", &rig.workspace, &path);
        let written =
            (0..rounds).filter(|_| claim().and_then(|target| target.replace(b"evil")).is_ok()).count();
        is_done.store(true, Ordering::Relaxed);
        written
    });
    assert!(written > 0, "nothing was tried");
    assert!(!rig.at(".git/hooks/pre-commit").exists());
}
