//! Finds the paths that a command may not change in its working directory, and moves aside those
//! that it creates.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Component, Path, PathBuf},
};

use rustix::{
    fs::{CWD, Mode, OFlags, RenameFlags, openat2, renameat_with},
    io::Errno,
};

use crate::{Closed, namespace::BENEATH};

/// The maximum number of directories that are searched for protected names.
const MOST: usize = 100_000;

/// The closed paths that exist, and where each leads: relative to the working directory if it is
/// inside, `None` for a link to nowhere.
pub(crate) type Found = BTreeMap<PathBuf, Option<PathBuf>>;

/// A closed path at which something was created, and where that was moved.
pub(crate) type Moved = (PathBuf, PathBuf);

/// Finds the closed paths that exist.
///
/// # Errors
/// If there are too many directories to look into.
pub(crate) fn find(closed: &Closed) -> io::Result<Found> {
    let mut paths = reserved(closed)?;
    paths.extend(closed.existing.iter().flat_map(|pattern| expand(pattern)));
    Ok(identified(closed, paths))
}

/// Moves aside the closed paths that were created, or changed to lead elsewhere, since `before`.
///
/// # Errors
/// If something can't be moved, or a directory can't be read.
pub(crate) fn set_aside(closed: &Closed, before: &Found) -> io::Result<Vec<Moved>> {
    let now = identified(closed, reserved(closed)?);
    let new = now.into_iter().filter(|(path, leads_to)| before.get(path) != Some(leads_to));
    let mut moved: Vec<Moved> = Vec::new();
    for path in new.map(|(path, _)| first_link(&path)) {
        // The directory that it is in may have been moved already.
        if moved.iter().all(|(from, _)| !path.starts_with(from)) {
            let to = move_aside(&path).map_err(|error| {
                let why = format!("{} is protected and can't be moved aside: {error}", path.display());
                io::Error::new(error.kind(), why)
            })?;
            moved.push((path, to));
        }
    }
    Ok(moved)
}

/// Returns the existing paths that commands must not create.
fn reserved(closed: &Closed) -> io::Result<Vec<PathBuf>> {
    let mut paths: Vec<_> = closed.reserved.iter().flat_map(|pattern| expand(pattern)).collect();
    if !closed.names.is_empty() {
        named(closed, &mut paths)?;
    }
    Ok(paths)
}

fn identified(closed: &Closed, paths: Vec<PathBuf>) -> Found {
    let root = fs::canonicalize(".").ok();
    let inside = |real: PathBuf| match root.as_ref().and_then(|root| real.strip_prefix(root).ok()) {
        Some(inside) => inside.to_owned(),
        None => real,
    };
    let closed_ones = paths.into_iter().filter(|path| !closed.is_open(path));
    closed_ones.map(|path| (path.clone(), fs::canonicalize(&path).ok().map(inside))).collect()
}

/// Returns the existing paths of a pattern, in which `*` stands for any one component.
fn expand(pattern: &Path) -> Vec<PathBuf> {
    let mut paths = vec![PathBuf::new()];
    for component in pattern.components() {
        paths = match component {
            Component::Normal(name) if name == "*" => paths.iter().flat_map(|path| entries(path)).collect(),
            Component::Normal(name) => paths.iter().map(|path| path.join(name)).collect(),
            // Only the working directory is searched.
            _ => return Vec::new(),
        };
    }
    paths.retain(|path| path.symlink_metadata().is_ok());
    paths
}

fn entries(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(Path::new(".").join(path)).into_iter().flatten().flatten();
    entries.map(|entry| path.join(entry.file_name())).collect()
}

/// Adds every entry with one of the names, in any directory. Links are not followed, and matching
/// directories are not entered.
fn named(closed: &Closed, found: &mut Vec<PathBuf>) -> io::Result<()> {
    let mut waiting = vec![PathBuf::new()];
    let mut entered = 0;
    while let Some(dir) = waiting.pop() {
        entered += 1;
        if entered > MOST {
            return Err(io::Error::other(format!(
                "there are more than {MOST} directories, too many to protect {} in each: work in a smaller directory, or open large \
                 ones to commands by name",
                closed.names.join(" and ")
            )));
        }
        for entry in fs::read_dir(Path::new(".").join(&dir)).into_iter().flatten().flatten() {
            let (name, path) = (entry.file_name(), dir.join(entry.file_name()));
            if closed.is_open(&path) {
                continue;
            }
            if closed.names.iter().any(|closed| name.eq_ignore_ascii_case(closed)) {
                found.push(path);
            } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                waiting.push(path);
            }
        }
    }
    Ok(())
}

/// Returns the first link on the way to a path; the path itself if there is none.
fn first_link(path: &Path) -> PathBuf {
    let ways: Vec<_> = path.ancestors().filter(|way| *way != "").collect();
    let link = ways.into_iter().rev().find(|way| way.symlink_metadata().is_ok_and(|way| way.is_symlink()));
    link.unwrap_or(path).to_owned()
}

/// Renames it within its directory.
fn move_aside(path: &Path) -> io::Result<PathBuf> {
    let (dir, name) =
        (path.parent().filter(|dir| *dir != "").unwrap_or_else(|| Path::new(".")), path.file_name());
    let name = name.ok_or(io::ErrorKind::InvalidInput)?;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let handle = openat2(CWD, dir, flags, Mode::empty(), BENEATH)?;
    let mut number = 1;
    loop {
        let mut aside = name.to_owned();
        aside.push(if number == 1 { ".set-aside".to_owned() } else { format!(".set-aside.{number}") });
        match renameat_with(&handle, name, &handle, &aside, RenameFlags::NOREPLACE) {
            Ok(()) => return Ok(path.with_file_name(aside)),
            Err(Errno::EXIST) => number += 1,
            Err(error) => return Err(error.into()),
        }
    }
}
