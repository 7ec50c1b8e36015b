//! Paths, compared segment by segment: `*` stays within one, `**` is any number of them.
//!
//! Which directory a path is relative to is not known here, and links are not followed. So what is
//! to be allowed must be plainly inside what its rule names, and what is to be refused is looked
//! for however it may be spelled.

use std::iter;

use crate::glob;

/// Whether the path is certain to be one that the rule names.
pub(crate) fn covers(glob: &str, path: &str) -> bool {
    let wanted = segments(glob);
    let plain = segments(path);
    let leaves = plain.contains(&"..") || path.contains(|c: char| c == '\\' || c.is_control());
    let root_differs = path.starts_with('/') != glob.starts_with('/');
    let is_home = path.starts_with('~') && !glob.starts_with('~');
    let is_drive = plain.first().is_some_and(|first| first.contains(':'));
    !(path.is_empty() || leaves || root_differs || is_home || is_drive) && fits(&wanted, &plain)
}

/// Whether the path may be one that the rule names: relative to anywhere, through `..`, in any
/// case.
pub(crate) fn touches(glob: &str, path: &str) -> bool {
    let glob = glob.replace('\\', "/").to_lowercase();
    let path = path.replace('\\', "/").to_lowercase();
    let wanted = segments(&glob);
    let anywhere: Vec<_> = iter::once("**").chain(wanted.iter().copied()).collect();
    let resolved = resolved(&path);
    let climbs = resolved.first() == Some(&"..");
    let inside: Vec<_> = resolved.iter().copied().filter(|segment| *segment != "..").collect();
    let is_from_anywhere = path.starts_with('/') || climbs;
    if glob.starts_with('/') {
        is_from_anywhere && fits(&wanted, &inside)
    } else {
        fits(&wanted, &resolved) || is_from_anywhere && fits(&anywhere, &inside)
    }
}

fn fits(wanted: &[&str], path: &[&str]) -> bool {
    glob::wild(wanted, path, |wanted| *wanted == "**", |wanted, segment| glob::matches(wanted, segment))
}

/// Without `.` and empty segments, which mean nothing.
fn segments(path: &str) -> Vec<&str> {
    path.split('/').filter(|segment| !matches!(*segment, "" | ".")).collect()
}

/// With every `..` that has something to take back taken back.
pub(crate) fn resolved(path: &str) -> Vec<&str> {
    let mut resolved = Vec::new();
    for segment in segments(path) {
        match (segment, resolved.last()) {
            ("..", Some(last)) if *last != ".." => drop(resolved.pop()),
            _ => resolved.push(segment),
        }
    }
    resolved
}

#[cfg(test)]
mod tests;
