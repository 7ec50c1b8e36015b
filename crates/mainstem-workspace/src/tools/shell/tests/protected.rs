//! The paths that a command can't change, and those that it creates.

use std::os::unix::fs::symlink;

use mainstem_tool::ToolState;
use serde_json::json;

use crate::{
    Protection, Workspace,
    rig::{Rig, block_on, call, shell, shell_options},
};

/// A file at each place that the next run, git or the task store uses.
fn rig() -> Rig {
    Rig::with(&[
        ("mainstem.toml", "good"),
        ("subagents/a.md", "good"),
        ("skills/a/SKILL.md", "good"),
        (".claude/agents/a.md", "good"),
        (".opencode/agent/a.md", "good"),
        (".github/agents/a.md", "good"),
        (".git/config", "good"),
        (".git/hooks/sample", "good"),
        (".git/info/exclude", "good"),
        (".git/modules/m/config", "good"),
        (".git/worktrees/w/gitdir", "good"),
        ("vendor/sub/.git/config", "good"),
        ("vendor/sub/mainstem.toml", "good"),
        ("vendor/tree/.git", "good"),
        ("agents/a/tasks/s.json", "good"),
        ("agents/b/tasks/s.json", "good"),
        ("agents/b/_/s/c/f", "free"),
        ("agents/.executors/e", "good"),
        ("tenants/t/skills/a/SKILL.md", "good"),
        ("tenants/t/agents/a/tasks/s.json", "good"),
    ])
}

/// Returns `true` if the machine can confine a command; in CI it must.
fn has_namespaces() -> bool {
    let is_protecting = shell_options().probe().unwrap().is_protecting;
    is_protecting || crate::rig::not_applicable("this machine gives no namespaces")
}

#[track_caller]
fn run(rig: &Rig, command: &str) -> (ToolState, String) {
    block_on(rig.call("shell", json!({ "command": command })))
}

#[test]
fn protected_paths_are_read_only() {
    let rig = rig();
    if !has_namespaces() {
        return;
    }
    let before = files(&rig);
    for command in [
        "echo x > mainstem.toml",
        "rm mainstem.toml",
        "mv mainstem.toml other",
        "mv other mainstem.toml",
        "ln -sf other mainstem.toml",
        "echo x > subagents/b.md",
        "rm -r subagents",
        "mv subagents other",
        "echo x > skills/a/SKILL.md",
        "echo x > .claude/agents/b.md",
        "mv .claude other",
        "echo x > .opencode/agent/b.md",
        "echo x > .github/agents/b.md",
        "echo x > .git/hooks/pre-commit",
        "mv .git other",
        "mv .git/hooks other",
        "echo x > .git/config",
        "echo x > new && mv new .git/config",
        "echo ../c > .git/commondir",
        "echo x > .git/config.worktree",
        "echo x > .git/info/attributes",
        "mkdir .git/modules/m/hooks",
        "mkdir -p .git/modules/n/hooks",
        "echo x > .git/worktrees/w/commondir",
        "mkdir -p vendor/sub/.git/hooks",
        "echo x > vendor/sub/.git/config",
        "mv vendor/sub other",
        "mv vendor other",
        "echo x > vendor/sub/mainstem.toml",
        "echo x > vendor/tree/.git",
        "echo x > agents/a/tasks/s.json",
        "echo x > agents/.executors/f",
        "rm agents/.executors/e",
        "mv agents/b other",
        "mv agents other",
        "echo x > tenants/t/skills/a/SKILL.md",
        "echo x > tenants/t/agents/a/tasks/s.json",
        "umount .git && echo x > .git/hooks/pre-commit",
    ] {
        rig.write("other", "x");
        let (state, text) = run(&rig, command);
        assert_eq!(state, ToolState::Error, "{command}: {text}");
    }
    std::fs::remove_file(rig.at("other")).unwrap();
    let _ = std::fs::remove_file(rig.at("new"));
    assert_eq!(files(&rig), before);
    let (state, text) = run(&rig, "cat .git/config subagents/a.md; echo x > agents/b/_/s/c/f");
    assert_eq!((state, &*text), (ToolState::Success, "goodgood\n[exit status 0]"), "the rest is free");
    // Other processes do not see the mounts.
    rig.write("mainstem.toml", "shell = false");
}

/// Returns all files of the workspace with their contents.
fn files(rig: &Rig) -> Vec<(String, String)> {
    let mut waiting = vec![rig.at("")];
    let mut files = Vec::new();
    while let Some(dir) = waiting.pop() {
        for entry in std::fs::read_dir(&dir).unwrap().map(Result::unwrap) {
            match entry.file_type().unwrap() {
                kind if kind.is_dir() => waiting.push(entry.path()),
                kind if kind.is_file() => {
                    let name = entry.path().strip_prefix(rig.workspace.root()).unwrap().display().to_string();
                    files.push((name, std::fs::read_to_string(entry.path()).unwrap()));
                }
                _ => {}
            }
        }
    }
    files.sort();
    files
}

#[test]
fn protection_has_no_last_entry() {
    let rig = Rig::new();
    if !has_namespaces() {
        return;
    }
    (0..300).for_each(|number| rig.write(&format!("agents/a{number}/tasks/s.json"), "good"));
    let (_, text) = run(
        &rig,
        "for dir in agents/*; do echo x > $dir/tasks/s.json && echo changed; done 2>&1 | grep -c changed",
    );
    assert!(text.starts_with("0\n"), "{text}");
}

#[test]
fn what_a_command_makes_under_a_protected_name_is_moved_aside() {
    #[track_caller]
    fn check(command: &str, path: &str, aside: &str) {
        for has_namespaces in [true, false] {
            let rig = Rig::new();
            let tool = shell(&rig.workspace, shell_options().with_namespaces(has_namespaces));
            let (state, text) = block_on(call(&tool, &rig.cx, json!({ "command": command })));
            assert_eq!(state, ToolState::Success, "{text}");
            assert!(std::fs::symlink_metadata(rig.at(path)).is_err(), "{path} is in effect");
            assert!(std::fs::symlink_metadata(rig.at(aside)).is_ok(), "{path} is lost");
            assert!(text.contains(&format!("moved to {aside:?}")), "{text}");
        }
    }
    check("echo x > mainstem.toml", "mainstem.toml", "mainstem.toml.set-aside");
    check("mkdir -p skills/a && echo x > skills/a/SKILL.md", "skills", "skills.set-aside");
    check("mkdir subagents", "subagents", "subagents.set-aside");
    check("mkdir -p .claude/agents", ".claude/agents", ".claude/agents.set-aside");
    check("mkdir -p .github/agents", ".github/agents", ".github/agents.set-aside");
    check("mkdir -p .opencode/agents", ".opencode/agents", ".opencode/agents.set-aside");
    check("mkdir -p .git/hooks", ".git", ".git.set-aside");
    check("mkdir -p vendor/x/.git", "vendor/x/.git", "vendor/x/.git.set-aside");
    check("mkdir -p a/b && echo x > a/b/mainstem.toml", "a/b/mainstem.toml", "a/b/mainstem.toml.set-aside");
    check("mkdir -p tenants/t/skills", "tenants/t/skills", "tenants/t/skills.set-aside");
    check("mkdir x && ln -s x skills", "skills", "skills.set-aside");
    check("ln -s nowhere skills", "skills", "skills.set-aside");
    check("mkdir -p x/agents && ln -s x .claude", ".claude", ".claude.set-aside");
    check("mkdir skills.set-aside && echo x > skills", "skills", "skills.set-aside.2");
    check(
        "(setsid sh -c 'mkdir skills; sleep 60' &) ; until [ -e skills ]; do :; done",
        "skills",
        "skills.set-aside",
    );
}

#[test]
fn a_command_that_is_cut_leaves_nothing_under_a_protected_name() {
    let rig = Rig::new();
    let (state, text) =
        block_on(rig.call("shell", json!({ "command": "mkdir skills; sleep 60", "timeout_seconds": 1 })));
    assert_eq!(state, ToolState::Error);
    assert!(text.contains("moved to \"skills.set-aside\"") && !rig.at("skills").exists(), "{text}");
    block_on(async {
        let mut running = Box::pin(rig.call("shell", json!({ "command": "mkdir subagents; sleep 60" })));
        tokio::select! {
            (_, text) = &mut running => panic!("it ended: {text}"),
            () = super::until(|| rig.at("subagents").exists()) => {}
        }
        drop(running);
        super::until(|| rig.at("subagents.set-aside").exists() && !rig.at("subagents").exists()).await;
    });
}

#[test]
fn what_was_there_before_stays() {
    let rig = rig();
    let text = run(&rig, "echo x > note.txt").1;
    assert!(!text.contains("moved to"), "{text}");
    assert_eq!(rig.read("skills/a/SKILL.md"), b"good");
    // A task store writes its records at any time.
    let rig = Rig::new();
    let text = run(&rig, "mkdir -p agents/main/tasks agents/.executors").1;
    assert!(rig.at("agents/main/tasks").exists() && !text.contains("moved to"), "{text}");
}

#[test]
fn a_link_is_protected_with_what_it_leads_to() {
    let rig = Rig::with(&[("config/f", "good"), ("dotfiles/agents/a.md", "good"), ("free/f", "free")]);
    symlink("config", rig.at("subagents")).unwrap();
    symlink("dotfiles", rig.at(".claude")).unwrap();
    // Links that lead outside or to a missing file do not stop the command.
    symlink("/tmp", rig.at("skills")).unwrap();
    symlink("nowhere", rig.at(".github")).unwrap();
    if !has_namespaces() {
        return;
    }
    for command in ["echo x > config/f", "echo x > subagents/f", "echo x > dotfiles/agents/b.md"] {
        let (state, text) = run(&rig, command);
        assert_eq!(state, ToolState::Error, "{command}: {text}");
    }
    let (state, text) = run(&rig, "t=$(mktemp) && rm $t");
    assert_eq!((state, text.contains("moved to")), (ToolState::Success, false), "{text}");
    let (_, text) = run(&rig, "rm subagents && ln -s free subagents");
    assert!(text.contains("moved to \"subagents.set-aside\"") && !rig.at("subagents").exists(), "{text}");
}

#[test]
fn what_a_program_protects_is_read_only_and_what_it_opens_is_not() {
    let rig =
        Rig::with(&[("private/key", "good"), (".git/config", "good"), ("vendor/x/.git/config", "good")]);
    if !has_namespaces() {
        return;
    }
    let protection = Protection::new().with_path(rig.at("private")).with_open(".git").with_open("vendor/new");
    let workspace = Workspace::open(rig.at(".")).unwrap().with_protection(protection);
    let tool = shell(&workspace, shell_options());
    let run = |command: &str| block_on(call(&tool, &rig.cx, json!({ "command": command })));
    for command in ["echo x > private/key", "mv private other", "echo x > vendor/x/.git/config"] {
        let (state, text) = run(command);
        assert_eq!(state, ToolState::Error, "{command}: {text}");
    }
    let (state, text) = run("echo x > .git/config && mkdir -p vendor/new/.git");
    assert_eq!((state, &*text), (ToolState::Success, "[exit status 0]"));
    assert_eq!(rig.read(".git/config"), b"x\n");
}

#[test]
fn a_place_inside_is_protected_as_its_workspace_is() {
    let rig = rig();
    if !has_namespaces() {
        return;
    }
    let run = |place: &str, command: &str| {
        let inside = rig.workspace.create_inside(place).unwrap();
        block_on(call(&shell(&inside, shell_options()), &rig.cx, json!({ "command": command })))
    };
    assert_eq!(run("agents/a", "echo x > tasks/s.json").0, ToolState::Error);
    assert_eq!(run("tenants/t", "echo x > skills/a/SKILL.md").0, ToolState::Error);
    assert_eq!(
        run("agents/b/_/s/c", "mkdir skills && echo x > skills/a").1,
        "[exit status 0]",
        "no agent's file"
    );
    let told = run("agents/b/_/s/c", "mkdir .git").1;
    assert!(
        told.contains("moved to \".git.set-aside\"") && told.contains("shell(path: agents/b/_/s/c/.git/**)"),
        "{told}"
    );
    // Not in /tmp, where commands may write.
    let home = tempfile::TempDir::with_prefix_in("mainstem-ws-", "/var/tmp").unwrap();
    let workspace = Workspace::create(home.path()).unwrap().create_inside("skills/pdf").unwrap();
    let tool = shell(&workspace, shell_options());
    let (state, text) = block_on(call(&tool, &rig.cx, json!({ "command": "echo x > a" })));
    assert_eq!(state, ToolState::Error, "{text}");
    assert!(!workspace.root().join("a").exists());
}
