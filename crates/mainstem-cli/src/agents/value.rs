//! The values of a spec, for people and for programs.

use mainstem::spec::{Key, Mode, Origin};

/// The keys of a spec, except for the name, which is the agent's id.
pub(super) fn keys() -> impl Iterator<Item = &'static Key> {
    Key::all().filter(|key| key.name != "name")
}

/// The value of a file without the key.
pub(super) fn absent(key: &Key) -> &'static str {
    if key.default.is_empty() { "-" } else { key.default }
}

pub(super) fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Primary => "primary",
        Mode::Subagent => "subagent",
        _ => "all",
    }
}

pub(super) fn origin(origin: &Origin) -> String {
    match origin {
        Origin::File(path) => path.display().to_string(),
        Origin::BuiltIn => "built-in".to_owned(),
        other => other.to_string(),
    }
}
