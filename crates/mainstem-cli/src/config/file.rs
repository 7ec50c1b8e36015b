//! A configuration file: TOML, where every key is known and none holds a secret.

use std::{
    collections::BTreeMap,
    num::NonZeroU32,
    path::{Path, PathBuf},
};

use anyhow::{anyhow, bail};
use mainstem::{
    mcp::Server,
    policy::{Limits, Prices, RuleSet},
    vendor::{VENDORS, vendor},
};
use serde::{Deserialize, Deserializer, de::Error as _};
use toml::Spanned;

use super::{Access, Setting, Settings};
use crate::args::FleetLimits;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    model: Option<String>,
    workspace: Option<PathBuf>,
    max_turns: Option<NonZeroU32>,
    #[serde(default)]
    limits: FleetLimits,
    permissions: Option<RuleSet>,
    files: Option<bool>,
    shell: Option<bool>,
    agent_generate: Option<bool>,
    #[serde(default)]
    budget: Limits,
    prices: Option<Prices>,
    #[serde(default)]
    mcp: BTreeMap<String, Spanned<Server>>,
    agent_servers: Option<bool>,
    #[serde(default)]
    providers: BTreeMap<Known, Provider>,
}

/// The name of a vendor of this build.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Known(&'static str);

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
struct Provider {
    base_url: Option<String>,
    api_key_env: Option<Variable>,
    #[serde(default)]
    headers: BTreeMap<String, Spanned<String>>,
    /// Only there to be refused with the reason.
    #[serde(rename = "api_key")]
    _api_key: Option<Refused>,
}

/// What a file says. Errors name the place and never repeat the line, which may hold a secret.
pub(super) fn parse(text: &str, path: &Path) -> anyhow::Result<Settings> {
    let file: File = toml::from_str(text).map_err(|error| {
        let place = error.span().map(|span| place(text, span.start)).unwrap_or_default();
        anyhow!("{}:{place} {}", path.display(), meant(error.message()))
    })?;
    let origin = path.display().to_string();
    let said = |value: String| Setting::new(value, &*origin);
    let switch = |value: bool| Setting::new(value, &*origin);
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
    let access = |provider: Provider| Access {
        base_url: provider.base_url.map(said),
        api_key_env: provider.api_key_env.map(|variable| said(variable.0)),
        headers: provider.headers.into_iter().map(|(name, value)| (name, said(value.into_inner()))).collect(),
    };
    // A directory is meant as seen from the file, wherever the command runs.
    let near = path.parent().unwrap_or_else(|| Path::new(""));
    Ok(Settings {
        model: file.model.map(said),
        workspace: file.workspace.map(|workspace| Setting::new(near.join(workspace), &*origin)),
        max_turns: file.max_turns,
        fleet: file.limits,
        permissions: file.permissions.map(|set| set.with_origin(&origin).into()).unwrap_or_default(),
        files: file.files.map(switch),
        shell: file.shell.map(switch),
        agent_generate: file.agent_generate.map(switch),
        budget: file.budget,
        prices: file.prices,
        mcp: file
            .mcp
            .into_iter()
            .map(|(name, server)| (name, Setting::new(beside(server.into_inner(), near), &*origin)))
            .collect(),
        agent_servers: file.agent_servers.map(switch),
        providers: file.providers.into_iter().map(|(vendor, said)| (vendor.0, access(said))).collect(),
    })
}

/// A directory is meant as seen from the file.
fn beside(mut server: Server, near: &Path) -> Server {
    if let Some(dir) = server.dir_mut() {
        *dir = near.join(&*dir);
    }
    server
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
    let (Some(wrong), true) = (quoted.first(), message.starts_with("unknown field")) else {
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
struct Refused;

impl<'de> Deserialize<'de> for Refused {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        Err(D::Error::custom(
            "a key does not belong into a file: put it into an environment variable, and the name of that into \
             `api_key_env`",
        ))
    }
}

/// The name of an environment variable. What is none may be a key, and is not repeated.
struct Variable(String);

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
