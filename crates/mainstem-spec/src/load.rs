//! Reads directories of agents' files; no other module reads files.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, ErrorKind, Read},
    path::{Path, PathBuf},
};

use crate::{
    AgentSpec, Dialect, FindingKind, Origin, Parsed, Position, Severity, SpecError, SpecSet, parse, rules,
};

/// The largest file in bytes that is read: 1 MiB.
pub const MAX_FILE_BYTES: u64 = 1 << 20;

/// Reads every `*.md` file of a directory, in the order of their names; in `.codex/agents`, every
/// `*.toml` file.
///
/// It never fails as a whole and never drops an error: files that can be read are in the set, and
/// each other one has an error. A directory that doesn't exist is an empty set. Directories in
/// it aren't entered, other files and those whose name starts with a dot are skipped. A
/// symbolic link may only lead to a file inside the directory.
///
/// Blocks on the file system.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let dir = dir.path();
/// std::fs::write(dir.join("reviewer.md"), "---\ndescription: Reviews code\n---\nBe brief.\n")?;
/// std::fs::write(dir.join("tester.md"), "---\ndescription: Tests code\nsteps: many\n---\n")?;
///
/// let (specs, errors) = mainstem_spec::load_dir(dir);
/// assert_eq!(specs.get("reviewer").unwrap().prompt, "Be brief.");
/// assert_eq!(errors[0].message, "expected a whole number, got \"many\"");
/// # Ok::<(), std::io::Error>(())
/// ```
#[must_use]
pub fn load_dir(dir: impl AsRef<Path>) -> (SpecSet, Vec<SpecError>) {
    let Directory { specs, errors, .. } = directory(dir.as_ref());
    (specs, errors)
}

/// Reads one file, wherever it is. Blocks on the file system.
///
/// # Errors
/// As [`parse`](crate::parse); or the file can't be read, is no regular file, no text, or larger
/// than [`MAX_FILE_BYTES`].
pub fn load_file(path: impl AsRef<Path>) -> Result<Parsed, Vec<SpecError>> {
    load(path.as_ref(), None)
}

/// The contents of a directory.
#[derive(Debug, Default)]
pub(crate) struct Directory {
    pub(crate) specs: SpecSet,
    pub(crate) errors: Vec<SpecError>,
    /// Ids of files that disable their agent.
    pub(crate) disabled: BTreeMap<String, PathBuf>,
    /// Ids of files that have errors.
    pub(crate) broken: BTreeMap<String, PathBuf>,
    /// `true` if the directory can't be listed.
    pub(crate) is_unreadable: bool,
}

pub(crate) fn directory(dir: &Path) -> Directory {
    let mut found = Directory::default();
    let (root, entries) = match dir.canonicalize().and_then(|root| Ok((root, fs::read_dir(dir)?))) {
        Ok(opened) => opened,
        Err(error) if error.kind() == ErrorKind::NotFound => return found,
        Err(error) => {
            return Directory { errors: vec![unreadable(&error).in_file(dir)], is_unreadable: true, ..found };
        }
    };
    let mut files = Vec::new();
    for entry in entries {
        match entry {
            Ok(entry) => files.push(entry.path()),
            Err(error) => found.errors.push(unreadable(&error).in_file(dir)),
        }
    }
    files.retain(|path| is_agent(path) && !path.is_dir());
    files.sort();
    for path in files {
        found.add(&path, &root);
    }
    found
}

impl Directory {
    fn add(&mut self, path: &Path, root: &Path) {
        match load(path, Some(root)) {
            Ok(parsed) => {
                self.errors.extend(parsed.warnings);
                if parsed.disabled {
                    self.disabled.insert(parsed.spec.id, path.to_owned());
                } else {
                    self.errors.extend(self.specs.insert(parsed.spec));
                }
            }
            Err(errors) => {
                self.errors.extend(errors);
                self.broken.extend(rules::nearest_id(&id(path)).map(|id| (id, path.to_owned())));
            }
        }
    }

    /// Restores the specs of the last reading whose files can't be read now.
    pub(crate) fn keep(&mut self, dir: &Path, last: &SpecSet) {
        for spec in last.iter() {
            let Origin::File(path) = &spec.origin else { continue };
            let was_here = self.is_unreadable && path.parent() == Some(dir);
            if was_here || self.broken.get(&spec.id) == Some(path) {
                self.broken.remove(&spec.id);
                self.specs.insert(spec.clone());
                self.errors.push(kept(&format!("agent {:?}", spec.id)).in_file(path));
            }
        }
    }
}

/// Returns the warning about a declaration that stays because its file can't be read now.
pub(crate) fn kept(what: &str) -> SpecError {
    let message = format!("{what} stays in effect as it was before its file had errors");
    SpecError::warning(message).of_kind(FindingKind::Reverted)
}

/// Appends the `AGENTS.md` of the directory that a spec names to the spec's own prompt. A directory
/// that a file names is relative to the first of these workspaces that contains the file, and
/// doesn't lead out of it. One that the program names is relative to the last workspace.
///
/// Returns a warning for each `AGENTS.md` that can't be read, or that is missing where the spec has
/// no prompt of its own either.
///
/// Call it once for a set: another call adds the text again. Blocks on the file system.
#[must_use]
pub fn load_prompts(specs: &mut SpecSet, workspaces: &[PathBuf]) -> Vec<SpecError> {
    specs.iter_mut().filter_map(|spec| load_prompt(spec, workspaces).err()).collect()
}

/// Adds to a finding about a spec the spec's file, and the place of `item` under the finding's key.
/// A finding about a spec that was built in code stays as it is.
///
/// Reads the file again; blocks on the file system.
#[must_use]
pub fn locate(finding: SpecError, spec: &AgentSpec, item: Option<&str>) -> SpecError {
    let Origin::File(path) = &spec.origin else { return finding };
    let parsed = load(path, None).ok();
    let place = parsed.and_then(|parsed| parsed.place_of(finding.key.as_deref()?, item));
    SpecError { position: place, ..finding.in_file(path) }
}

/// Returns the files that [`load_prompts`] reads for these specs.
pub(crate) fn prompt_files<'a>(
    specs: &'a SpecSet,
    workspaces: &'a [PathBuf],
) -> impl Iterator<Item = PathBuf> + 'a {
    let file = |spec: &AgentSpec| {
        let directory = spec.workspace.path.as_ref()?;
        Some(workspace_of(spec, workspaces)?.join(directory).join("AGENTS.md"))
    };
    specs.iter().filter_map(file)
}

fn workspace_of<'a>(spec: &AgentSpec, workspaces: &'a [PathBuf]) -> Option<&'a Path> {
    let home = match &spec.origin {
        Origin::File(path) => workspaces.iter().find(|workspace| path.starts_with(workspace)),
        Origin::BuiltIn | Origin::Program => None,
    };
    home.or_else(|| workspaces.last()).map(PathBuf::as_path)
}

fn load_prompt(spec: &mut AgentSpec, workspaces: &[PathBuf]) -> Result<(), SpecError> {
    let Some(workspace) = workspace_of(spec, workspaces) else { return Ok(()) };
    let Some(directory) = &spec.workspace.path else { return Ok(()) };
    let directory = workspace.join(directory);
    let path = directory.join("AGENTS.md");
    let root = if spec.origin == Origin::Program { &*directory } else { workspace };
    if !spec.prompt.is_empty() && !path.exists() {
        return Ok(());
    }
    let text =
        root.canonicalize().map_err(|error| unreadable(&error)).and_then(|root| read(&path, Some(&root)));
    let text = text.map_err(|error| {
        let lacks = if spec.prompt.is_empty() { "has no prompt" } else { "lacks a part of its prompt" };
        let message = format!("agent {:?} {lacks}: {}", spec.id, error.message);
        let kind = FindingKind::MissingPrompt;
        SpecError { severity: Severity::Warning, kind, message, ..error }.in_file(&path)
    })?;
    let parts = [spec.prompt.trim(), text.trim()];
    spec.prompt = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n");
    Ok(())
}

/// Returns `true` if a file of this name declares an agent.
pub(crate) fn is_agent(path: &Path) -> bool {
    let dotted = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
    let is_of_codex = || Dialect::of_path(path) == Some(Dialect::Codex);
    let is_named = path.extension().is_some_and(|extension| match extension.as_encoded_bytes() {
        b"md" => !is_of_codex(),
        b"toml" => is_of_codex(),
        _ => false,
    });
    is_named && !dotted
}

fn load(path: &Path, root: Option<&Path>) -> Result<Parsed, Vec<SpecError>> {
    let text = read(path, root).map_err(|error| vec![error.in_file(path)])?;
    parse(&id(path), &text, path)
}

/// Returns the name of the file without `.md` and without Copilot's `.agent.md`.
fn id(path: &Path) -> String {
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    name.strip_suffix(".agent").unwrap_or(&name).to_owned()
}

/// Returns the text of a regular file, below `root` if there is one; other kinds of files, which
/// may block or be endless, are not opened.
pub(crate) fn read(path: &Path, root: Option<&Path>) -> Result<String, SpecError> {
    let real = path.canonicalize().map_err(|error| unreadable(&error))?;
    if root.is_some_and(|root| !real.starts_with(root)) {
        let message = "the link leads out of the directory and isn't followed: copy the file";
        return Err(SpecError::error(message).of_kind(FindingKind::Unreadable));
    }
    if !real.is_file() {
        return Err(SpecError::error("this is no regular file").of_kind(FindingKind::Unreadable));
    }
    let mut bytes = Vec::new();
    let file = File::open(&real).map_err(|error| unreadable(&error))?;
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(|error| unreadable(&error))?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        let message = format!("the file is larger than {MAX_FILE_BYTES} bytes");
        return Err(SpecError::error(message).of_kind(FindingKind::Unreadable));
    }
    String::from_utf8(bytes).map_err(|error| not_text(error.as_bytes(), error.utf8_error().valid_up_to()))
}

pub(crate) fn unreadable(error: &io::Error) -> SpecError {
    SpecError::error(format!("can't be read: {error}")).of_kind(FindingKind::Unreadable)
}

fn not_text(bytes: &[u8], valid: usize) -> SpecError {
    let text = String::from_utf8_lossy(&bytes[..valid]);
    let error = SpecError::error("the file isn't UTF-8 text").of_kind(FindingKind::Unreadable);
    error.at(Position::after(&text))
}

#[cfg(test)]
mod tests;
