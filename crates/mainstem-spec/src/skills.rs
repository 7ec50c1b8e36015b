//! Folders of skills to a set of them.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
};

use crate::{
    Origin, Skill, SpecError,
    load::{self, unreadable},
    parse_skill, set,
};

/// The file that makes a folder a skill.
pub(crate) const SKILL_FILE: &str = "SKILL.md";

/// The most other files of a skill that are named, and the deepest folder of one.
const MAX_FILES: usize = 100;
const MAX_DEPTH: usize = 4;

/// Skills ordered by name, one a name. Of two with one name the same wins as in a
/// [`SpecSet`](crate::SpecSet).
///
/// ```
/// use mainstem_spec::{Skill, SkillSet};
///
/// let mut skills = SkillSet::new();
/// assert!(skills.insert(Skill::new("pdf", "Fills in forms", "…")).is_none());
/// let warning = skills.insert(Skill::new("pdf", "Fills in PDF forms", "…")).unwrap();
/// assert_eq!(skills.get("pdf").unwrap().description, "Fills in PDF forms");
/// assert_eq!(
///     warning.to_string(),
///     "warning: skill \"pdf\" is declared twice: \
///      the later one replaces the earlier one",
/// );
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SkillSet {
    skills: BTreeMap<String, Skill>,
}

impl SkillSet {
    /// A set without skills.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the skill of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Skill> {
        self.skills.get(name)
    }

    /// Returns the skills, ordered by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Skill> {
        self.skills.values()
    }

    /// Returns `true` if there are no skills.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.skills.is_empty()
    }

    /// Adds a skill, unless one that wins over it has the same name. The skill isn't validated.
    ///
    /// Returns a warning that names both origins if the name was taken.
    pub fn insert(&mut self, skill: Skill) -> Option<SpecError> {
        let mut present = match self.skills.entry(skill.name.clone()) {
            Entry::Vacant(free) => {
                free.insert(skill);
                return None;
            }
            Entry::Occupied(present) => present,
        };
        let replaces = skill.origin.precedence() >= present.get().origin.precedence();
        let loser = if replaces { present.insert(skill) } else { skill };
        Some(set::clash(&format!("skill {:?}", loser.name), &present.get().origin, &loser.origin))
    }

    /// Removes the names of their files from all skills.
    pub(crate) fn forget_files(&mut self) {
        self.skills.values_mut().for_each(|skill| skill.files.clear());
    }

    /// Removes a skill.
    pub(crate) fn remove(&mut self, name: &str) -> Option<Skill> {
        self.skills.remove(name)
    }

    /// Retains the skills for which this is `true`.
    pub fn retain(&mut self, mut keep: impl FnMut(&Skill) -> bool) {
        self.skills.retain(|_, skill| keep(skill));
    }

    /// Adds every skill of another set, as [`insert`](Self::insert) does; returns the warnings.
    pub fn merge(&mut self, other: Self) -> Vec<SpecError> {
        other.skills.into_values().filter_map(|skill| self.insert(skill)).collect()
    }
}

/// Reads the `SKILL.md` of every folder in a directory such as `<workspace>/skills`, in the order
/// of their names.
///
/// It never fails as a whole and never drops an error. A directory that does not exist is an empty
/// set; a folder whose name starts with a dot is skipped, one without `SKILL.md` with a
/// warning. A symbolic link may only lead to somewhere inside the directory.
///
/// Blocks on the file system.
#[must_use]
pub fn load_skills(dir: &Path) -> (SkillSet, Vec<SpecError>) {
    let Folders { skills, errors, .. } = folders(dir);
    (skills, errors)
}

/// What a directory of skills holds.
#[derive(Debug, Default)]
pub(crate) struct Folders {
    pub(crate) skills: SkillSet,
    pub(crate) errors: Vec<SpecError>,
    /// Names of skills whose file has errors.
    pub(crate) broken: BTreeMap<String, PathBuf>,
    /// `true` if the directory can't be listed.
    is_unreadable: bool,
}

pub(crate) fn folders(dir: &Path) -> Folders {
    let mut found = Folders::default();
    let (root, mut folders) = match dir.canonicalize().and_then(|root| Ok((root, below(dir)?))) {
        Ok(opened) => opened,
        Err(error) if error.kind() == ErrorKind::NotFound => return found,
        Err(error) => {
            return Folders { errors: vec![unreadable(&error).in_file(dir)], is_unreadable: true, ..found };
        }
    };
    folders.retain(|path| path.is_dir());
    for folder in folders {
        found.add(&folder, &root);
    }
    found
}

impl Folders {
    fn add(&mut self, folder: &Path, root: &Path) {
        let path = folder.join(SKILL_FILE);
        if !path.is_file() {
            let message = format!("there is no {SKILL_FILE} in this folder, so it is no skill");
            self.errors.push(SpecError::warning(message).in_file(folder));
            return;
        }
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let parsed = load::read(&path, Some(root)).map_err(|error| vec![error.in_file(&path)]);
        match parsed.and_then(|text| parse_skill(&name, &text, &path)) {
            Ok((mut skill, warnings)) => {
                skill.files = files(folder, &format!("skills/{name}"));
                self.errors.extend(warnings);
                self.errors.extend(self.skills.insert(skill));
            }
            Err(errors) => {
                self.errors.extend(errors);
                self.broken.insert(name, path);
            }
        }
    }

    /// Restores the skills of the last reading whose files can't be read now.
    pub(crate) fn keep(&mut self, dir: &Path, last: &SkillSet) {
        for skill in last.iter() {
            let Origin::File(path) = &skill.origin else { continue };
            let was_here = self.is_unreadable && path.starts_with(dir);
            if was_here || self.broken.get(&skill.name) == Some(path) {
                self.broken.remove(&skill.name);
                self.skills.insert(skill.clone());
                self.errors.push(load::kept(&format!("skill {:?}", skill.name)).in_file(path));
            }
        }
    }
}

/// Returns the entries of a directory, sorted, except those whose names start with a dot.
pub(crate) fn below(dir: &Path) -> std::io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(dir)?.collect::<Result<Vec<_>, _>>()?;
    let is_shown = |entry: &fs::DirEntry| !entry.file_name().as_encoded_bytes().starts_with(b".");
    let mut paths: Vec<_> = entries.iter().filter(|entry| is_shown(entry)).map(fs::DirEntry::path).collect();
    paths.sort();
    Ok(paths)
}

/// Returns the files of a skill's folder except the first, by their names below `prefix`. Links and
/// files that can't be read are skipped.
fn files(folder: &Path, prefix: &str) -> Vec<String> {
    let mut names = Vec::new();
    gather(folder, prefix, MAX_DEPTH, &mut names);
    names.retain(|name| *name != format!("{prefix}/{SKILL_FILE}"));
    names
}

fn gather(folder: &Path, prefix: &str, depth: usize, names: &mut Vec<String>) {
    for path in below(folder).unwrap_or_default() {
        let Ok(kind) = path.symlink_metadata().map(|metadata| metadata.file_type()) else { continue };
        let name = format!("{prefix}/{}", path.file_name().unwrap_or_default().to_string_lossy());
        if names.len() > MAX_FILES {
            return;
        }
        if kind.is_file() {
            names.push(name);
        } else if kind.is_dir() && depth > 1 {
            gather(&path, &name, depth - 1, names);
        }
    }
}

#[cfg(test)]
mod tests;
