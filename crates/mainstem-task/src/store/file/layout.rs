//! The paths of a workspace's task files.

use std::{
    fmt::Write,
    fs, io,
    path::{Path, PathBuf},
};

use mainstem_message::SessionId;

use super::executors::Files;
use crate::{ExecutorId, TaskError};

/// Longer names are shortened: file systems allow 255 bytes, suffixes included.
const LONGEST: usize = 120;

#[derive(Debug)]
pub(super) struct Layout {
    agents: PathBuf,
}

impl Layout {
    pub(super) fn new(workspace: PathBuf) -> Self {
        Self { agents: workspace.join("agents") }
    }

    /// Returns the file of one parent's session.
    pub(super) fn file(&self, parent_agent: &str, session: &SessionId) -> PathBuf {
        self.agents.join(name(parent_agent)).join("tasks").join(file_name(session))
    }

    pub(super) fn executor(&self, executor: &ExecutorId) -> Files {
        Files::of(&self.agents.join(".executors").join(name(executor.as_str())))
    }

    /// Returns all files of tasks, or those of one session, sorted.
    pub(super) fn files(&self, session: Option<&SessionId>) -> Result<Vec<PathBuf>, TaskError> {
        let mut files = Vec::new();
        for agent in entries(&self.agents)? {
            let tasks = agent.join("tasks");
            match session {
                Some(session) => {
                    files.extend(Some(tasks.join(file_name(session))).filter(|file| file.is_file()))
                }
                None => files.extend(entries(&tasks)?.into_iter().filter(|file| has_extension(file, "json"))),
            }
        }
        Ok(files)
    }
}

fn entries(directory: &Path) -> Result<Vec<PathBuf>, TaskError> {
    let list = match fs::read_dir(directory) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        list => list.and_then(|list| list.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()),
    };
    let mut list = list.map_err(TaskError::io("list", directory))?;
    list.sort();
    Ok(list)
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|found| found == extension)
}

fn file_name(session: &SessionId) -> String {
    format!("{}.json", name(session.as_str()))
}

/// Returns an id as one component of a path. Ids come from outside, and two of them must have
/// different names.
fn name(id: &str) -> String {
    let mut name = String::new();
    for byte in id.bytes() {
        let plain =
            byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_') || byte == b'.' && !name.is_empty();
        // Writing to a string does not fail.
        let _ = if plain { write!(name, "{}", char::from(byte)) } else { write!(name, "%{byte:02x}") };
    }
    if name.len() > LONGEST {
        // `+` is escaped in ids, so no other id has this name.
        name.truncate(LONGEST / 2);
        let _ = write!(name, "+{}", uuid::Uuid::new_v5(&uuid::Uuid::NAMESPACE_OID, id.as_bytes()).simple());
    }
    if name.is_empty() { "%".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_one_component_and_never_meet() {
        let long = "x".repeat(500);
        let ids = [
            "",
            "s-1",
            "a/b",
            "a%2fb",
            "..",
            ".",
            ".hidden",
            "a.b",
            "/etc/passwd",
            "a\\b",
            "ä",
            "A",
            "a",
            "nul\0",
            &long,
            &format!("{long}y"),
            "%",
        ];
        let mut names: Vec<_> = ids.iter().map(|id| name(id)).collect();
        for name in &names {
            assert_eq!(Path::new(name).components().count(), 1, "{name}");
            assert!(Path::new(name).file_name().is_some() && name.len() <= 130, "{name}");
        }
        names.sort();
        names.dedup();
        assert_eq!(names.len(), ids.len());
    }
}
