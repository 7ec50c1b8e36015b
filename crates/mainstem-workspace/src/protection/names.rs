//! The paths of a workspace that are protected by their names: one table, for file tools and
//! commands.

use std::path::{Component, Path, PathBuf};

/// Why a path is protected, and what to do instead.
#[derive(Debug, PartialEq)]
pub(crate) struct Protected {
    pub(crate) what: &'static str,
    pub(crate) instead: &'static str,
    /// The pattern of a rule that allows it.
    pub(crate) glob: String,
}

/// A row of the table.
struct Row {
    /// A name, or a path from the workspace or from that of a tenant, in which `*` is any one
    /// component.
    path: &'static str,
    reach: Reach,
    what: &'static str,
    instead: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Reach {
    /// In any directory.
    Anywhere,
    /// Only there; commands can't create it either.
    Reserved,
    /// Only there, where the task store creates it.
    Record,
}

const TELL: &str = "tell the user what to change";

const fn agents(path: &'static str) -> Row {
    let instead = "agent_generate, if you have it, drafts a new agent";
    Row { path, reach: Reach::Reserved, what: "declares agents, which only the user changes", instead }
}

const fn record(path: &'static str) -> Row {
    let (what, instead) = ("is a record of background tasks", "task_list and task_cancel are for tasks");
    Row { path, reach: Reach::Record, what, instead }
}

static TABLE: [Row; 15] = [
    Row {
        path: ".git",
        reach: Reach::Anywhere,
        what: "belongs to git, which runs what is there",
        instead: TELL,
    },
    Row {
        path: "mainstem.toml",
        reach: Reach::Anywhere,
        what: "configures runs, which only the user does",
        instead: TELL,
    },
    agents("subagents"),
    agents(".claude/agents"),
    agents(".opencode/agent"),
    agents(".opencode/agents"),
    agents(".github/agents"),
    agents(".gemini/agents"),
    agents(".cursor/agents"),
    agents(".codex/agents"),
    agents(".goose/agents"),
    agents(".agents/agents"),
    Row {
        path: "skills",
        reach: Reach::Reserved,
        what: "instructs agents, which only the user does",
        instead: TELL,
    },
    record("agents/.executors"),
    record("agents/*/tasks"),
];

impl Row {
    /// Returns `true` if the names of a path begin with those of this row.
    fn begins(&self, names: &[&str]) -> bool {
        let row: Vec<_> = self.path.split('/').collect();
        row.len() <= names.len() && row.iter().zip(names).all(|(row, name)| *row == "*" || row == name)
    }

    fn is_named(&self, name: &str) -> bool {
        // The short name of FAT.
        name == self.path || (self.path == ".git" && name == "git~1")
    }
}

impl Protected {
    fn new(row: &Row, glob: String) -> Self {
        Self { what: row.what, instead: row.instead, glob }
    }

    /// Creates the protection of a path that the program protects.
    pub(super) fn of_the_user(path: &Path) -> Self {
        let glob = path.display().to_string();
        Self { what: "is the user's own and closed to agents", instead: TELL, glob }
    }
}

/// Returns why a path, relative to the workspace and without links, is protected; `None` if it is
/// not.
///
/// Case is ignored, and so are dots and blanks at the end of a name: on some file systems such a
/// name is the same file.
pub(crate) fn protected(path: &Path) -> Option<Protected> {
    let names = names(path);
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let of = |reach: fn(Reach) -> bool| TABLE.iter().filter(move |row| reach(row.reach));
    let mut anywhere = of(|reach| reach == Reach::Anywhere);
    if let Some(row) = anywhere.find(|row| names.iter().any(|name| row.is_named(name))) {
        return Some(Protected::new(row, path.display().to_string()));
    }
    let (tenant, names) = match &*names {
        ["tenants", tenant, rest @ ..] => (format!("tenants/{tenant}/"), rest),
        all => (String::new(), all),
    };
    let row = of(|reach| reach != Reach::Anywhere).find(|row| row.begins(names))?;
    let below = if row.reach == Reach::Record { "agents" } else { row.path };
    Some(Protected::new(row, format!("{tenant}{below}/**")))
}

/// Returns the protected paths of a workspace that may be links, whose targets are protected, too.
pub(super) fn linked() -> impl Iterator<Item = &'static str> {
    TABLE.iter().filter(|row| row.reach != Reach::Record && row.path != ".git").map(|row| row.path)
}

/// Returns the names that are protected in any directory.
#[cfg(unix)]
pub(super) fn anywhere() -> impl Iterator<Item = &'static str> {
    TABLE.iter().filter(|row| row.reach == Reach::Anywhere).map(|row| row.path)
}

/// Returns the other protected paths below a directory of the workspace, as patterns from there:
/// those that commands can't create either, and those of the task store.
#[cfg(unix)]
pub(super) fn below(directory: &Path) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let of = |wanted: Reach| {
        let rows = TABLE.iter().filter(move |row| row.reach == wanted);
        let patterns = rows.flat_map(|row| [PathBuf::from(row.path), Path::new("tenants/*").join(row.path)]);
        patterns.filter_map(|pattern| from(&pattern, directory)).collect()
    };
    (of(Reach::Reserved), of(Reach::Record))
}

/// Returns a pattern relative to a directory, if it continues below it.
#[cfg(unix)]
fn from(pattern: &Path, directory: &Path) -> Option<PathBuf> {
    let mut rest = pattern.components();
    for name in names(directory) {
        let wanted = rest.next()?.as_os_str().to_str()?;
        if wanted != "*" && wanted != name {
            return None;
        }
    }
    Some(rest.as_path().to_owned()).filter(|rest| *rest != Path::new(""))
}

/// Returns the names of a path, normalized as the most tolerant file system compares them.
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
