//! A configuration file: TOML, where every key is known and none holds a secret.

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use mainstem::{policy::Part, schema::misread};

use super::{
    Settings,
    guarded::Guarded,
    table::{At, Layered, Location, Table},
};

/// A parsed file.
#[derive(Debug, Default)]
pub(super) struct File {
    /// All that it sets.
    pub(super) settings: Settings,
    /// The same as values, for what is trusted.
    raw: serde_json::Value,
    folder: PathBuf,
}

/// A project's file: settings that apply at once, and parts that need trust, each with what it
/// sets.
#[derive(Debug, Default)]
pub(super) struct Divided {
    pub(super) plain: Settings,
    pub(super) parts: Vec<(Part, Settings)>,
}

/// Reads a file. Errors name the place and never repeat the line, which may hold a secret.
pub(super) fn parse(text: &str, path: &Path) -> anyhow::Result<File> {
    let name = path.display().to_string();
    let mut settings: Settings = toml::from_str(text).map_err(|error| {
        let start = error.span().map(|span| span.start);
        let place = start.map(|start| place(text, start)).unwrap_or_default();
        let rest = start.and_then(|start| text.get(start..)).unwrap_or_default();
        anyhow!("{name}:{place} {}", meant(error.message(), rest))
    })?;
    let raw = toml::from_str(text).with_context(|| name.clone())?;
    // A directory is relative to the file, wherever the command runs.
    let folder = path.parent().unwrap_or_else(|| Path::new("")).to_owned();
    settings.locate(&Location { name: &name, folder: &folder });
    Ok(File { settings, raw, folder })
}

impl File {
    /// Divides a project's file.
    pub(super) fn divide(self) -> Divided {
        let (plain, guarded) = self.settings.split(&At { raw: &self.raw, folder: &self.folder });
        Divided { plain, parts: guarded.into_iter().map(Guarded::into_part).collect() }
    }
}

impl Divided {
    /// Returns what applies: the plain settings, and those of trusted parts.
    pub(super) fn trusted(&self, is_trusted: impl Fn(&Part) -> bool) -> Settings {
        let trusted = self.parts.iter().filter(|(part, _)| is_trusted(part));
        trusted.fold(self.plain.clone(), |all, (_, settings)| all.or(settings.clone()))
    }
}

/// Returns the `line:column:` of an offset, both from 1, columns in characters.
fn place(text: &str, offset: usize) -> String {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    format!("{line}:{column}:")
}

/// Returns the message of an error at this place of the text in words of our own.
fn meant(message: &str, rest: &str) -> String {
    let message = message.trim_end();
    if rest.lines().next().unwrap_or_default().split('#').next().unwrap_or_default().trim().is_empty()
        && message.starts_with("string values must be quoted")
    {
        return "a value is missing".to_owned();
    }
    misread(message, "key").replace("an object", "a table")
}
