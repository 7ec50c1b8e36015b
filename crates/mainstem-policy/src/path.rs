//! Paths, compared segment by segment: `*` stays within one, `**` is any number of them.
//!
//! The base directory of a path is unknown, and links are not followed. So a path is allowed only
//! if it is plainly inside what the rule names, and a refused path is searched in every spelling.

use std::iter;

use crate::glob;

/// Returns `true` if the path is certainly one that the rule names.
pub(crate) fn covers(glob: &str, path: &str) -> bool {
    let wanted = segments(glob);
    let plain = segments(path);
    let leaves = plain.contains(&"..") || path.contains(|c: char| c == '\\' || c.is_control());
    let root_differs = path.starts_with('/') != glob.starts_with('/');
    let is_home = path.starts_with('~') && !glob.starts_with('~');
    let is_drive = plain.first().is_some_and(|first| first.contains(':'));
    !(path.is_empty() || leaves || root_differs || is_home || is_drive) && fits(&wanted, &plain)
}

/// Returns `true` if the path may be one that the rule names: relative to any directory, through
/// `..`, in any case.
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

/// Splits a path, without `.` and empty segments.
fn segments(path: &str) -> Vec<&str> {
    path.split('/').filter(|segment| !matches!(*segment, "" | ".")).collect()
}

/// Resolves every `..` that follows a segment.
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
