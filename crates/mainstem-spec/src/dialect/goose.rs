//! goose: <https://goose-docs.ai/docs/guides/context-engineering/custom-agents/>. Its keys are
//! `name`, `description` and `model`.

use super::{Model, claude_code};

/// It reads Claude Code's files, too, and so its names of models.
pub(super) fn model(name: &str) -> Model {
    match claude_code::model(name) {
        Model::Parents => Model::Parents,
        Model::AsWritten | Model::Ours(_) => Model::AsWritten,
    }
}
