//! Where sessions are recorded, as `--journal` names it.

use std::{ffi::OsString, fmt, path::PathBuf};

/// A journal: a file, or a database that several nodes share.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum JournalAt {
    File(PathBuf),
    /// A URL, which may have a password.
    Database(String),
}

impl From<OsString> for JournalAt {
    fn from(value: OsString) -> Self {
        match value.to_str() {
            Some(url) if url.starts_with("postgres://") || url.starts_with("postgresql://") => {
                Self::Database(url.to_owned())
            }
            _ => Self::File(value.into()),
        }
    }
}

/// Without a password: it is shown in lines to copy.
impl fmt::Display for JournalAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Database(url) => {
                let url = without_password(url);
                match (url.split_once("://"), url.rsplit_once('@')) {
                    (Some((scheme, rest)), Some((_, place))) => {
                        let user = rest.split([':', '@']).next().unwrap_or_default();
                        write!(f, "{scheme}://{user}@{place}")
                    }
                    _ => f.write_str(&url),
                }
            }
        }
    }
}

/// Removes the parameter with a password.
fn without_password(url: &str) -> String {
    let Some((base, query)) = url.split_once('?') else { return url.to_owned() };
    let others: Vec<_> = query.split('&').filter(|one| !one.starts_with("password=")).collect();
    if others.is_empty() { base.to_owned() } else { format!("{base}?{}", others.join("&")) }
}

impl fmt::Debug for JournalAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests;
