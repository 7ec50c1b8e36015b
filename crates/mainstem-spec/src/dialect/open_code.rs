//! OpenCode: <https://opencode.ai/docs/agents>

use super::{Foreign, Meaning, Model};

pub(super) const KEYS: [(&str, Meaning); 12] = [
    ("maxSteps", Meaning::Same("steps")),
    ("permission", Meaning::Read(Foreign::Permission)),
    // Its second version's name, and a frequent slip in the first.
    ("permissions", Meaning::Read(Foreign::Permission)),
    ("prompt", Meaning::Read(Foreign::Prompt)),
    ("disable", Meaning::Read(Foreign::Disabled)),
    ("disabled", Meaning::Read(Foreign::Disabled)),
    ("color", Meaning::Ignored(super::NO_COLOR)),
    ("variant", Meaning::Ignored(super::NO_OPTIONS)),
    ("options", Meaning::Ignored(super::NO_OPTIONS)),
    ("request", Meaning::Ignored(super::NO_OPTIONS)),
    ("reasoningEffort", Meaning::Same("effort")),
    ("textVerbosity", Meaning::Ignored(super::NO_OPTIONS)),
];

/// `provider/model`, where the model may have slashes and colons of its own.
pub(super) fn model(name: &str) -> Model {
    match name.split_once('/') {
        Some((provider, model)) if !provider.contains(':') => Model::Ours(format!("{provider}:{model}")),
        _ => Model::AsWritten,
    }
}

pub(super) const TOOLS: [(&str, &[&str]); 19] = [
    ("read", &["read_file"]),
    ("write", &["write_file"]),
    ("edit", &["edit_file"]),
    ("multiedit", &["edit_file"]),
    ("patch", &["edit_file"]),
    ("apply_patch", &["edit_file"]),
    ("bash", &["shell"]),
    ("shell", &["shell"]),
    ("grep", &["grep_files"]),
    ("glob", &["glob_files"]),
    ("list", &["list_files"]),
    ("task", &["agent_spawn", "agent_fanout"]),
    ("subagent", &["agent_spawn", "agent_fanout"]),
    ("skill", &["load_skill"]),
    ("webfetch", &[]),
    ("websearch", &[]),
    ("todowrite", &[]),
    ("todoread", &[]),
    ("question", &[]),
];
