//! Rules for values: the same for a file and for code.

use std::path::{Component, Path};

use crate::AgentSpec;

pub(crate) type Verdict = Result<(), String>;

/// Returns `true` for a name of agents, skills and tenants: `[a-z0-9][a-z0-9_-]*`.
#[must_use]
pub fn is_name(name: &str) -> bool {
    named("name", name).is_ok()
}

/// `[a-z0-9][a-z0-9_-]*`: safe as a file name, a directory name and a word in a prompt.
pub(crate) fn id(id: &str) -> Verdict {
    named("agent id", id)
}

/// As an id.
pub(crate) fn skill_name(name: &str) -> Verdict {
    named("skill name", name)
}

fn named(what: &str, name: &str) -> Verdict {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let valid = name.starts_with(plain) && name.chars().all(|c| plain(c) || matches!(c, '_' | '-'));
    require(valid, || {
        format!("invalid {what} {name:?}: use a-z, 0-9, _ and -, starting with a letter or digit")
    })
}

/// Returns the id that is nearest to a name.
pub(crate) fn nearest_id(name: &str) -> Option<String> {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c.to_ascii_lowercase() } else { '-' };
    let near = name.trim().chars().map(plain).collect::<String>();
    let near = near.trim_matches(['-', '_']);
    id(near).is_ok().then(|| near.to_owned())
}

pub(crate) fn description(description: &str) -> Verdict {
    require(!description.trim().is_empty(), || {
        "the description is empty: say what the agent is for, the model chooses by it".to_owned()
    })
}

pub(crate) fn steps(steps: u32) -> Verdict {
    require(steps > 0, || "steps must be at least 1".to_owned())
}

pub(crate) fn max_tokens_total(tokens: u64) -> Verdict {
    require(tokens > 0, || "max_tokens_total must be at least 1".to_owned())
}

pub(crate) fn max_output_tokens(tokens: u32) -> Verdict {
    require(tokens > 0, || "max_output_tokens must be at least 1".to_owned())
}

/// Thinking counts towards the tokens of an answer, and must leave room for it.
pub(crate) fn thinking_budget(spec: &AgentSpec) -> Verdict {
    let (Some(budget), Some(most)) = (spec.thinking_budget, spec.max_output_tokens) else { return Ok(()) };
    require(budget == 0 || budget < most, || {
        format!(
            "thinking_budget must be below max_output_tokens, which counts thinking: {budget} is not below {most}"
        )
    })
}

pub(crate) fn temperature(temperature: f64) -> Verdict {
    require((0.0..=2.0).contains(&temperature), || {
        format!("temperature must be in 0 to 2, not {temperature}")
    })
}

pub(crate) fn top_p(top_p: f64) -> Verdict {
    require((0.0..=1.0).contains(&top_p), || format!("top_p must be in 0 to 1, not {top_p}"))
}

pub(crate) fn compact_at(percent: u8) -> Verdict {
    require(percent == 0 || (10..=100).contains(&percent), || {
        format!("compact_at must be in 10 to 100, or 0 for never, not {percent}")
    })
}

/// The message does not repeat the url, which may have a password. A session records the url, so it
/// can't have any.
pub(crate) fn url(url: &str) -> Verdict {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let valid = rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_alphanumeric() || c == '['));
    require(valid && !url.contains(|c: char| c.is_whitespace() || c.is_control()), || {
        "the url is not an address: it starts with https:// or http:// and a host".to_owned()
    })?;
    let host = rest.unwrap_or_default().split(['/', '?', '#']).next().unwrap_or_default();
    require(!host.contains('@') && !url.contains(['?', '#']), || {
        "the url has a user, a password, a query or a fragment; a secret belongs in `headers`, as \
         `${VARIABLE}`"
            .to_owned()
    })
}

/// For a path in a file, which may come from anywhere; code may name any directory.
pub(crate) fn workspace_path(path: &str) -> Verdict {
    let inside = |part| matches!(part, Component::Normal(_) | Component::CurDir);
    require(!path.is_empty() && Path::new(path).components().all(inside), || {
        format!("the path {path:?} leaves the workspace: write a relative path without \"..\"")
    })
}

/// The message does not repeat the value, which may be a secret.
pub(crate) fn header(name: &str, value: &str) -> Verdict {
    let token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    require(!name.is_empty() && name.chars().all(token), || format!("{name:?} is not a header name"))?;
    require(!value.contains(char::is_control), || {
        format!("the value of header {name:?} has a control character")
    })?;
    require(!PROTOCOL.contains(&name.to_ascii_lowercase().as_str()), || {
        format!("header {name:?} belongs to the protocol")
    })?;
    require(!is_secret(name) || value.contains("${"), || {
        format!("header {name:?} has its secret from the environment: write `${{VARIABLE}}`")
    })
}

/// Headers that requests have anyway, in lower case.
const PROTOCOL: [&str; 12] = [
    "accept",
    "connection",
    "content-length",
    "content-type",
    "expect",
    "host",
    "idempotency-key",
    "last-event-id",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Returns `true` if a header of this name has a secret.
fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["auth", "cookie", "credential", "jwt", "key", "password", "secret", "session", "signature", "token"]
        .iter()
        .any(|part| name.contains(part))
}

pub(crate) fn output_schema(schema: &serde_json::Value) -> Verdict {
    require(schema.is_object(), || "output_schema must be a mapping, such as `type: object`".to_owned())
}

fn require(holds: bool, otherwise: impl FnOnce() -> String) -> Verdict {
    if holds { Ok(()) } else { Err(otherwise()) }
}
