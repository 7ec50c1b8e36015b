//! A configuration file: TOML, where every key is known and none holds a secret.

use std::{
    collections::BTreeMap,
    num::NonZeroU32,
    path::{Path, PathBuf},
};

use anyhow::{Context, anyhow, bail};
use mainstem::{
    guard::Network,
    mcp::Server,
    message::Role,
    policy::{Budget, Prices, RuleSet},
    vendor::{VENDORS, vendor},
};
use serde::{Deserialize, Deserializer, de::Error as _};
use toml::Spanned;

use super::{Declared, ShellLimits, parts};
use crate::args::FleetLimits;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) model: Option<String>,
    pub(super) workspace: Option<PathBuf>,
    pub(super) max_turns: Option<NonZeroU32>,
    #[serde(default)]
    pub(super) limits: FleetLimits,
    pub(super) permissions: Option<RuleSet>,
    pub(super) files: Option<bool>,
    pub(super) shell: Option<bool>,
    pub(super) shell_network: Option<Network>,
    #[serde(default)]
    pub(super) shell_limits: ShellLimits,
    pub(super) agent_generate: Option<bool>,
    #[serde(default)]
    pub(super) budget: Budget,
    pub(super) prices: Option<Prices>,
    #[serde(default)]
    pub(super) mcp: BTreeMap<String, Spanned<Server>>,
    pub(super) agent_servers: Option<bool>,
    #[serde(default)]
    pub(super) providers: BTreeMap<Known, Provider>,
    #[serde(default)]
    pub(super) serve: Serve,
}

/// What `mainstem serve` lets its callers do.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Serve {
    pub(super) input_roles: Vec<InputRole>,
}

/// A role that an input over HTTP can have. Results of tools are no input.
#[derive(Clone, Copy, Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
pub(super) enum InputRole {
    User,
    System,
    Assistant,
}

impl From<InputRole> for Role {
    fn from(role: InputRole) -> Self {
        match role {
            InputRole::User => Self::User,
            InputRole::System => Self::System,
            InputRole::Assistant => Self::Assistant,
        }
    }
}

/// The name of a vendor of this build.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Known(pub(super) &'static str);

impl<'de> Deserialize<'de> for Known {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let known =
            || VENDORS.iter().map(|vendor| format!("`{}`", vendor.name)).collect::<Vec<_>>().join(", ");
        let unknown = || D::Error::custom(format!("unknown field `{name}`, expected one of {}", known()));
        vendor(&name).map(|vendor| Self(vendor.name)).ok_or_else(unknown)
    }
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Provider {
    pub(super) base_url: Option<String>,
    pub(super) api_key_env: Option<Variable>,
    #[serde(default)]
    pub(super) headers: BTreeMap<String, Spanned<String>>,
    /// Only there to be refused with the reason.
    #[serde(rename = "api_key")]
    _api_key: Option<Refused>,
}

/// What a file says. Errors name the place and never repeat the line, which may hold a secret.
pub(super) fn parse(text: &str, path: &Path) -> anyhow::Result<Declared> {
    let file: File = toml::from_str(text).map_err(|error| {
        let place = error.span().map(|span| place(text, span.start)).unwrap_or_default();
        anyhow!("{}:{place} {}", path.display(), meant(error.message()))
    })?;
    let origin = path.display().to_string();
    let headers = file.providers.values().flat_map(|provider| &provider.headers);
    for (name, value) in headers {
        if holds_key(name, value.get_ref()) {
            let place = place(text, value.span().start);
            bail!(
                "{origin}:{place} a key does not belong into a file: write `${{MY_KEY}}` for the value of {name}"
            );
        }
    }
    for (name, server) in &file.mcp {
        if let Some(secret) = server.get_ref().secret_in_plain() {
            let place = place(text, server.span().start);
            bail!(
                "{origin}:{place} a secret does not belong into a file: write `${{MY_KEY}}` for {secret} of MCP server {name:?}"
            );
        }
    }
    let raw = toml::from_str(text).with_context(|| origin.clone())?;
    Ok(parts::divide(file, &raw, path))
}

/// `line:column:` of an offset, both from 1, columns in characters.
fn place(text: &str, offset: usize) -> String {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    format!("{line}:{column}:")
}

/// A message about an unknown name, with the known one that is near it.
fn meant(message: &str) -> String {
    let message = message.trim_end();
    let quoted: Vec<_> = message.split('`').skip(1).step_by(2).collect();
    let is_unknown = message.starts_with("unknown field") || message.starts_with("unknown variant");
    let (Some(wrong), true) = (quoted.first(), is_unknown) else {
        return message.to_owned();
    };
    let near = quoted[1..].iter().map(|known| (strsim::jaro_winkler(wrong, known), known));
    match near.max_by(|a, b| a.0.total_cmp(&b.0)) {
        Some((likeness, known)) if likeness > 0.8 => format!("{message}; did you mean `{known}`?"),
        _ => message.to_owned(),
    }
}

/// Whether a header is one that carries a key, and carries it in plain.
fn holds_key(name: &str, value: &str) -> bool {
    let name = name.to_ascii_lowercase();
    (name.contains("authorization") || name.contains("api-key")) && !value.contains("${")
}

/// A key in the file.
pub(super) struct Refused;

impl<'de> Deserialize<'de> for Refused {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        Err(D::Error::custom(
            "a key does not belong into a file: put it into an environment variable, and the name of that into \
             `api_key_env`",
        ))
    }
}

/// The name of an environment variable. What is none may be a key, and is not repeated.
pub(super) struct Variable(pub(super) String);

impl<'de> Deserialize<'de> for Variable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty() || !name.chars().all(is_name) {
            return Err(D::Error::custom("this is not the name of an environment variable, such as MY_KEY"));
        }
        Ok(Self(name))
    }
}
