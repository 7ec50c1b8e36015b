//! The values of a spec by their keys, for people and for programs.

use mainstem::spec::{AgentSpec, Mode, Origin, Permission, WorkspaceMode};
use serde_json::{Value, json};

/// A key, and its value; `Null` stands for what is taken over from the parent, or for nothing.
pub(super) type Entry = (&'static str, Value);

/// Every key there is, in the order in which a file would have them. Headers are named without
/// their values.
pub(super) fn entries(spec: &AgentSpec) -> Vec<Entry> {
    vec![
        ("description", json!(spec.description)),
        ("model", json!(spec.model)),
        ("steps", json!(spec.steps)),
        ("temperature", json!(spec.temperature)),
        ("top_p", json!(spec.top_p)),
        ("tools", json!(spec.tools)),
        ("disallowed_tools", json!(spec.disallowed_tools)),
        ("skills", json!(spec.skills)),
        ("hidden", json!(spec.hidden)),
        ("mode", json!(mode(spec.mode))),
        ("workspace.mode", json!(workspace_mode(spec.workspace.mode))),
        ("workspace.path", json!(spec.workspace.path)),
        ("url", json!(spec.url.as_deref().map(without_password))),
        ("headers", json!(spec.headers.iter().map(|header| &header.name).collect::<Vec<_>>())),
        ("permissions", permissions(spec)),
        ("persist_session", json!(spec.persist_session)),
        ("timeout_seconds", json!(spec.timeout.map(|timeout| timeout.as_secs()))),
        ("max_tokens_total", json!(spec.max_tokens_total)),
        ("output_schema", json!(spec.output_schema)),
    ]
}

/// What it says if it is absent.
pub(super) fn absent(key: &str) -> &'static str {
    match key {
        "model" | "temperature" | "top_p" => "the parent's",
        "tools" | "skills" => "all of the parent's",
        _ => "-",
    }
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
        other => other.to_string(),
    }
}

/// What stands before the host may be a secret.
fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let host = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    match rest[..host].rfind('@') {
        Some(at) => format!("{scheme}://…{}", &rest[at..]),
        None => url.to_owned(),
    }
}

fn workspace_mode(mode: WorkspaceMode) -> &'static str {
    match mode {
        WorkspaceMode::Shared => "shared",
        _ => "isolated",
    }
}

fn permissions(spec: &AgentSpec) -> Value {
    let effect = |permission: Permission| match permission {
        Permission::Allow => "allow",
        Permission::Ask => "ask",
        Permission::Deny => "deny",
    };
    spec.permissions
        .iter()
        .map(|(pattern, permission)| json!({ "pattern": pattern, "effect": effect(*permission) }))
        .collect()
}
