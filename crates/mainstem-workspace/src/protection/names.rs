//! Which paths of a workspace are protected by their names: pure text work.

use std::path::{Component, Path};

/// Why a path is protected, and what to do instead.
#[derive(Debug, PartialEq)]
pub(crate) struct Protected {
    pub(crate) what: &'static str,
    pub(crate) instead: &'static str,
    /// What a rule would name to allow it.
    pub(crate) glob: String,
}

/// The protected names of a workspace that may be links, in which case what they lead to is protected, too.
pub(super) const LINKED: [&str; 7] = [
    "mainstem.toml",
    "subagents",
    "skills",
    ".claude/agents",
    ".opencode/agent",
    ".opencode/agents",
    ".github/agents",
];

const TELL: &str = "tell the user what to change";

impl Protected {
    fn new(what: &'static str, instead: &'static str, glob: impl Into<String>) -> Option<Self> {
        Some(Self { what, instead, glob: glob.into() })
    }

    /// A path that the program protects.
    pub(super) fn of_the_user(path: &Path) -> Self {
        let glob = path.display().to_string();
        Self { what: "is the user's own and closed to agents", instead: TELL, glob }
    }
}

/// Whether a path, relative to the workspace and without links, is protected.
///
/// Case does not matter, nor do dots and blanks at the end of a name: where the file system ignores them, such a name leads to the same file.
pub(crate) fn protected(path: &Path) -> Option<Protected> {
    let names = names(path);
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    if names.iter().any(|name| matches!(*name, ".git" | "git~1")) {
        return Protected::new("belongs to git, which runs what is there", TELL, path.display().to_string());
    }
    if names.contains(&"mainstem.toml") {
        let what = "configures runs, which only the user does";
        return Protected::new(what, TELL, path.display().to_string());
    }
    let (tenant, names) = match &*names {
        ["tenants", tenant, rest @ ..] => (format!("tenants/{tenant}/"), rest),
        all => (String::new(), all),
    };
    let agents = |dir: &str| {
        let instead = "agent_generate, if you have it, drafts a new agent";
        Protected::new("declares agents, which only the user changes", instead, format!("{tenant}{dir}/**"))
    };
    match names {
        ["subagents", ..] => agents("subagents"),
        [product @ ".claude", dir @ "agents", ..]
        | [product @ ".opencode", dir @ ("agent" | "agents"), ..]
        | [product @ ".github", dir @ "agents", ..] => agents(&format!("{product}/{dir}")),
        ["skills", ..] => {
            Protected::new("instructs agents, which only the user does", TELL, format!("{tenant}skills/**"))
        }
        ["agents", ".executors", ..] | ["agents", _, "tasks", ..] => {
            let instead = "task_list and task_cancel are for tasks";
            Protected::new("is a record of background tasks", instead, format!("{tenant}agents/**"))
        }
        _ => None,
    }
}

/// The names of a path as a file system would compare them that ignores as much as any does.
pub(super) fn names(path: &Path) -> Vec<String> {
    let name = |component: Component<'_>| match component {
        Component::CurDir => None,
        Component::RootDir => Some("/".to_owned()),
        other => {
            let name = other.as_os_str().to_string_lossy().to_lowercase();
            let plain = name.trim_end_matches(['.', ' ']);
            Some(if plain.is_empty() { name } else { plain.to_owned() })
        }
    };
    path.components().filter_map(name).collect()
}
