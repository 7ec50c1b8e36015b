//! What is set, for people: each key of a file with its value and where it was set.

use std::{
    collections::BTreeMap,
    num::{NonZeroU32, NonZeroUsize},
    path::PathBuf,
    time::Duration,
};

use mainstem::{
    guard::Network,
    mcp::Server,
    model::{OnCut, PromptCache},
    policy::{ContextWindows, Cost, Effect, Prices, Rule, RuleSet},
    remote::Host,
    spec::{Effort, ServerTool},
    subagent::trust::shown_address,
};

use super::{
    CompactAt, Setting, ShellLimits, VariableName,
    input_roles::InputRole,
    permissions::Permissions,
    providers::{Access, Providers},
    switch::Switch,
};

/// A setting, as text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Listed {
    /// The key in a file, with the tables before it.
    pub(crate) key: String,
    /// The value, as a file has it, or `set` for one that is long or may be secret.
    pub(crate) value: String,
    /// A flag, a variable, or a file; empty if that is not known.
    pub(crate) origin: String,
}

/// A value, or a table of values, that can be listed.
pub(super) trait List {
    /// Adds what is set to a list.
    fn list(&self, key: &str, all: &mut Vec<Listed>);
}

fn add(all: &mut Vec<Listed>, key: &str, value: String, origin: &str) {
    all.push(Listed { key: key.to_owned(), value, origin: origin.to_owned() });
}

/// A value as a file has it.
trait Literal {
    fn literal(&self) -> String;
}

fn quoted(text: &str) -> String {
    // A JSON string is a TOML string.
    serde_json::Value::from(text).to_string()
}

macro_rules! literals {
    ($($type:ty: $value:ident => $literal:expr;)*) => {$(
        impl Literal for $type {
            fn literal(&self) -> String {
                let $value = self;
                $literal
            }
        }
    )*};
}

literals! {
    bool: value => value.to_string();
    u16: value => value.to_string();
    u32: value => value.to_string();
    u64: value => value.to_string();
    usize: value => value.to_string();
    NonZeroU32: value => value.to_string();
    NonZeroUsize: value => value.to_string();
    String: value => quoted(value);
    VariableName: value => quoted(&value.0);
    PathBuf: value => quoted(&value.display().to_string());
    Duration: value => quoted(&humantime::format_duration(*value).to_string());
    CompactAt: value => value.0.to_string();
    Cost: value => value.micros().to_string();
    Effort: value => quoted(&value.to_string());
    OnCut: value => quoted(name_of(&OnCut::NAMES, *value));
    PromptCache: value => quoted(name_of(&PromptCache::NAMES, *value));
    Network: value => quoted(if *value == Network::On { "on" } else { "off" });
    Prices: _value => "set".to_owned();
    ContextWindows: _value => "set".to_owned();
    Server: _value => "set".to_owned();
}

fn name_of<T: Copy + PartialEq>(names: &[(&'static str, T)], value: T) -> &'static str {
    names.iter().find(|(_, named)| *named == value).map_or("", |(name, _)| name)
}

impl<T: Literal> List for Option<Setting<T>> {
    fn list(&self, key: &str, all: &mut Vec<Listed>) {
        if let Some(setting) = self {
            add(all, key, setting.value.literal(), &setting.origin);
        }
    }
}

impl<T: Literal> List for BTreeMap<String, Setting<T>> {
    fn list(&self, key: &str, all: &mut Vec<Listed>) {
        for (name, setting) in self {
            add(all, &format!("{key}.{name}"), setting.value.literal(), &setting.origin);
        }
    }
}

impl List for Switch {
    fn list(&self, key: &str, all: &mut Vec<Listed>) {
        self.setting().list(key, all);
    }
}

impl List for Vec<Host> {
    fn list(&self, key: &str, all: &mut Vec<Listed>) {
        if !self.is_empty() {
            let hosts: Vec<_> = self.iter().map(|host| quoted(&host.to_string())).collect();
            add(all, key, format!("[{}]", hosts.join(", ")), "");
        }
    }
}

impl List for Vec<ServerTool> {
    fn list(&self, key: &str, all: &mut Vec<Listed>) {
        if !self.is_empty() {
            let tools: Vec<_> = self.iter().map(|tool| quoted(&tool.to_string())).collect();
            add(all, key, format!("[{}]", tools.join(", ")), "");
        }
    }
}

impl List for Vec<InputRole> {
    fn list(&self, key: &str, all: &mut Vec<Listed>) {
        if !self.is_empty() {
            let roles: Vec<_> = self.iter().map(|role| quoted(&format!("{role:?}").to_lowercase())).collect();
            add(all, key, format!("[{}]", roles.join(", ")), "");
        }
    }
}

impl List for ShellLimits {
    fn list(&self, key: &str, all: &mut Vec<Listed>) {
        for (name, value) in self.named() {
            add(all, &format!("{key}.{name}"), quoted(value), "");
        }
    }
}

impl List for Providers {
    fn list(&self, key: &str, all: &mut Vec<Listed>) {
        self.iter().for_each(|(name, access)| access.list(&format!("{key}.{name}"), all));
    }
}

impl List for Access {
    fn list(&self, key: &str, all: &mut Vec<Listed>) {
        let at = |name: &str| format!("{key}.{name}");
        if let Some(url) = &self.base_url {
            add(all, &at("base_url"), quoted(&shown_address(&url.value)), &url.origin);
        }
        self.api_key_env.list(&at("api_key_env"), all);
        for (name, header) in &self.headers {
            add(all, &at(&format!("headers.{name}")), "set".to_owned(), &header.origin);
        }
        self.requests_per_minute.list(&at("requests_per_minute"), all);
        self.tokens_per_minute.list(&at("tokens_per_minute"), all);
        self.calls.list(&at("calls"), all);
        self.idle_timeout.list(&at("idle_timeout"), all);
    }
}

impl List for Permissions {
    fn list(&self, key: &str, all: &mut Vec<Listed>) {
        self.sets().for_each(|set| list_set(set, key, all));
    }
}

fn list_set(set: &RuleSet, key: &str, all: &mut Vec<Listed>) {
    if set.default_effect() != Effect::Allow {
        add(all, &format!("{key}.default"), quoted(&set.default_effect().to_string()), "");
    }
    if let Some(changes) = set.changes() {
        add(all, &format!("{key}.changes"), quoted(&changes.to_string()), "");
    }
    for Rule { pattern, effect, origin, .. } in set.rules() {
        let origin = origin.as_deref().unwrap_or_default();
        add(all, &format!("{key}.{effect}"), quoted(&pattern.to_string()), origin);
    }
}
