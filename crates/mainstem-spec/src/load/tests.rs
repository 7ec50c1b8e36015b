//! A directory with everything that can be wrong in it.

use std::path::PathBuf;

use insta::assert_snapshot;
use tempfile::TempDir;

use super::*;

/// A directory `subagents` beside which other files may lie.
struct Workspace(TempDir);

impl Workspace {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("subagents")).unwrap();
        Self(dir)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn with(self, name: &str, content: impl AsRef<[u8]>) -> Self {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    /// The ids that load, and what was said about the rest.
    fn load(&self) -> (Vec<String>, String) {
        let (specs, errors) = load_dir(self.path("subagents"));
        let root = format!("{}/", self.0.path().display());
        let report = errors.iter().map(|error| format!("{error}\n").replace(&root, "")).collect();
        (specs.iter().map(|spec| spec.id.clone()).collect(), report)
    }
}

fn agent(description: &str) -> String {
    format!("---\ndescription: {description}\n---\nBe brief.\n")
}

#[test]
fn loads_what_it_can_and_reports_the_rest_in_order() {
    let workspace = Workspace::new()
        .with("subagents/b.md", "---\ndescription: b\ntemperature: hot\nstep: 5\n---\n")
        .with("subagents/c.md", "---\ndescription: c\nstep: 5\n---\n")
        .with("subagents/a.md", agent("a"))
        .with("subagents/README.md", agent("read me"))
        .with("subagents/d.md", "no front matter")
        .with("subagents/e.md", agent("e"));
    let (ids, report) = workspace.load();
    assert_eq!(ids, ["a", "c", "e"]);
    assert_snapshot!(report, @r#"
    subagents/README.md: error: invalid agent id "README": use a-z, 0-9, _ and -, starting with a letter or digit; did you mean "readme"?
    subagents/b.md:3:14: error: expected a number, got "hot"
    subagents/b.md:4:1: warning: unknown key "step"; did you mean "steps"?
    subagents/c.md:3:1: warning: unknown key "step"; did you mean "steps"?
    subagents/d.md:1:1: error: the front matter is missing: the file starts with a "---" line, keys, and a "---" line
    "#);
}

#[test]
fn a_spec_knows_its_file() {
    let workspace = Workspace::new().with("subagents/a.md", agent("a"));
    let (specs, errors) = load_dir(workspace.path("subagents"));
    assert_eq!(errors, []);
    let spec = specs.get("a").unwrap();
    assert_eq!(spec.origin, Origin::File(workspace.path("subagents/a.md")));
    assert_eq!((spec.description.as_str(), spec.prompt.as_str()), ("a", "Be brief."));
}

#[test]
fn only_markdown_files_of_the_directory_itself_are_read() {
    let workspace = Workspace::new()
        .with("subagents/a.md", agent("a"))
        .with("subagents/deep/b.md", agent("b"))
        .with("subagents/dir.md/c.md", agent("c"))
        .with("subagents/.hidden.md", "broken")
        .with("subagents/notes.txt", "broken")
        .with("subagents/notes.MD", "broken")
        .with("subagents/md", "broken");
    assert_eq!(workspace.load(), (vec!["a".to_owned()], String::new()));
}

#[test]
fn a_missing_directory_is_an_empty_set() {
    let workspace = Workspace::new();
    assert_eq!(load_dir(workspace.path("nowhere")), (SpecSet::new(), vec![]));
    assert_eq!(workspace.load(), (vec![], String::new()));
}

#[test]
fn a_file_instead_of_a_directory_is_an_error() {
    let workspace = Workspace::new().with("file", "");
    let (specs, errors) = load_dir(workspace.path("file"));
    assert!(specs.is_empty());
    assert!(errors[0].to_string().contains("file: error: can't be read: "), "{}", errors[0]);
}

#[test]
fn hostile_files_are_errors() {
    let largest = agent("a") + &"x".repeat(MAX_FILE_BYTES as usize - agent("a").len());
    let workspace = Workspace::new()
        .with("subagents/binary.md", [&b"---\nabc\xc3\xa9\xff\xfe"[..], &[0; 100]].concat())
        .with("subagents/empty.md", "")
        .with("subagents/large.md", vec![b'x'; MAX_FILE_BYTES as usize + 1])
        .with("subagents/largest.md", largest)
        .with("subagents/utf16.md", [0xff, 0xfe, b'-', 0, b'-', 0, b'-', 0])
        .with("subagents/zeros.md", [0; 100]);
    let (ids, report) = workspace.load();
    assert_eq!(ids, ["largest"]);
    assert_snapshot!(report, @r#"
    subagents/binary.md:2:5: error: the file isn't UTF-8 text
    subagents/empty.md:1:1: error: the front matter is missing: the file starts with a "---" line, keys, and a "---" line
    subagents/large.md: error: the file is larger than 1048576 bytes
    subagents/utf16.md:1:1: error: the file isn't UTF-8 text
    subagents/zeros.md:1:1: error: the front matter is missing: the file starts with a "---" line, keys, and a "---" line
    "#);
}

#[cfg(target_os = "linux")]
#[test]
fn a_link_is_followed_inside_the_directory_only() {
    use std::os::unix::fs::symlink;

    let workspace = Workspace::new()
        .with("outside.md", agent("secret"))
        .with("subagents/a.md", agent("a"))
        .with("subagents/lib/shared.md", agent("shared"));
    let link = |target: &str, name: &str| symlink(target, workspace.path("subagents").join(name)).unwrap();
    link("lib/shared.md", "inside.md");
    link("../outside.md", "outside.md");
    link(workspace.path("outside.md").to_str().unwrap(), "absolute.md");
    link("/dev/zero", "endless.md");
    link("nowhere", "dangling.md");
    link("..", "parent.md");
    link("loop.md", "loop.md");
    let (ids, report) = workspace.load();
    assert_eq!(ids, ["a", "inside"]);
    assert_snapshot!(report, @r#"
    subagents/absolute.md: error: the link leads out of the directory and isn't followed: copy the file
    subagents/dangling.md: error: can't be read: No such file or directory (os error 2)
    subagents/endless.md: error: the link leads out of the directory and isn't followed: copy the file
    subagents/loop.md: error: can't be read: Too many levels of symbolic links (os error 40)
    subagents/outside.md: error: the link leads out of the directory and isn't followed: copy the file
    "#);
}

#[cfg(unix)]
#[test]
fn what_would_block_is_not_opened() {
    let workspace = Workspace::new();
    let socket = workspace.path("subagents/socket.md");
    let _listener = std::os::unix::net::UnixListener::bind(socket).unwrap();
    assert_snapshot!(workspace.load().1, @"subagents/socket.md: error: this is no regular file");
}

#[cfg(target_os = "linux")]
#[test]
fn a_name_that_is_no_text_is_an_error() {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt};

    let workspace = Workspace::new();
    fs::write(workspace.path("subagents").join(OsStr::from_bytes(b"a\xff.md")), agent("a")).unwrap();
    assert_snapshot!(workspace.load().1, @r#"subagents/a�.md: error: invalid agent id "a�": use a-z, 0-9, _ and -, starting with a letter or digit; did you mean "a"?"#);
}

#[test]
fn a_directory_brings_the_prompt_of_its_agent() {
    let named = |path: &str| format!("---\ndescription: A\nworkspace.path: {path}\n---\n");
    let workspace = Workspace::new()
        .with("subagents/good.md", named("team/good"))
        .with("team/good/AGENTS.md", "\nBe kind.\n")
        .with("subagents/mute.md", named("team/mute"))
        .with("team/odd/AGENTS.md", b"\xff")
        .with("subagents/odd.md", named("team/odd"))
        .with("subagents/both.md", named("team/good") + "Be brief.\n")
        .with("subagents/alone.md", named("team/mute") + "Be brief.\n")
        .with("subagents/half.md", named("team/odd") + "Be brief.\n")
        .with("subagents/plain.md", agent("P"));
    let code = tempfile::tempdir().unwrap();
    fs::write(code.path().join("AGENTS.md"), "From elsewhere.").unwrap();
    let (mut specs, _) = load_dir(workspace.path("subagents"));
    // Code may name any directory.
    specs.insert(AgentSpec::new("code", "C").with_workspace_path(code.path()));
    let said = load_prompts(&mut specs, &[workspace.0.path().to_owned()]);
    let prompts: Vec<_> = specs.iter().map(|spec| format!("{}: {}", spec.id, spec.prompt)).collect();
    assert_eq!(
        prompts,
        [
            "alone: Be brief.",
            "both: Be brief.\n\nBe kind.",
            "code: From elsewhere.",
            "good: Be kind.",
            "half: Be brief.",
            "mute: ",
            "odd: ",
            "plain: Be brief.",
        ]
    );
    let root = format!("{}/", workspace.0.path().display());
    let said: String = said.iter().map(|error| format!("{error}\n").replace(&root, "")).collect();
    assert_snapshot!(said, @r#"
    team/odd/AGENTS.md:1:1: warning: agent "half" lacks a part of its prompt: the file isn't UTF-8 text
    team/mute/AGENTS.md: warning: agent "mute" has no prompt: can't be read: No such file or directory (os error 2)
    team/odd/AGENTS.md:1:1: warning: agent "odd" has no prompt: the file isn't UTF-8 text
    "#);
}

#[cfg(unix)]
#[test]
fn a_prompt_is_not_brought_from_outside() {
    let workspace = Workspace::new()
        .with("ws/subagents/a.md", "---\ndescription: A\nworkspace.path: team\n---\n")
        .with("outside/AGENTS.md", "Stolen.");
    std::os::unix::fs::symlink(workspace.path("outside"), workspace.path("ws/team")).unwrap();
    let (mut specs, _) = load_dir(workspace.path("ws/subagents"));
    let said = load_prompts(&mut specs, &[workspace.path("ws")]);
    assert_eq!((specs.get("a").unwrap().prompt.as_str(), said.len()), ("", 1));
    assert!(said[0].message.contains("leads out"), "{}", said[0]);
}

#[test]
fn a_finding_of_another_is_at_the_place_of_its_name() {
    let workspace = Workspace::new().with("subagents/a.md", "---\ndescription: A\ntools: [read, fly]\n---\n");
    let (specs, _) = load_dir(workspace.path("subagents"));
    let finding = SpecError::warning("unknown tool").about("tools");
    let located = locate(finding.clone(), specs.get("a").unwrap(), Some("fly"));
    let root = format!("{}/", workspace.0.path().display());
    assert_eq!(located.to_string().replace(&root, ""), "subagents/a.md:3:15: warning: unknown tool");
    assert_eq!(locate(finding.clone(), &AgentSpec::new("a", "A"), Some("fly")), finding);
}
