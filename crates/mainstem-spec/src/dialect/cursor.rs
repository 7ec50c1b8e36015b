//! Cursor: <https://cursor.com/docs/subagents>

use super::{Foreign, Meaning, Model};

pub(super) const KEYS: [(&str, Meaning); 2] =
    [("readonly", Meaning::Read(Foreign::ReadOnly)), ("is_background", Meaning::Read(Foreign::Background))];

/// Names are those of a menu, such as `claude-4.5-sonnet-thinking`, or `fast`.
pub(super) fn model(name: &str) -> Model {
    if name.contains(':') { Model::AsWritten } else { Model::Parents }
}
