//! How models' providers are reached: `[providers.NAME]`.

use std::{borrow::Borrow, collections::BTreeMap, fmt, num::NonZeroU32, time::Duration};

use mainstem::{
    model::RatePolicy,
    provider::{PROVIDERS, provider},
    subagent::trust::{shown_address, with_variables},
};
use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::{Value as Json, json};

use super::{
    Setting, entries,
    setting::{Value, value},
    table::{Layered, Location, Var},
    text::time,
};

/// Providers by name.
pub(crate) type Providers = BTreeMap<ProviderName, Access>;

/// How a provider, or a server that speaks its language, is reached.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Access {
    pub(crate) base_url: Option<Setting<String>>,
    /// The name of the variable that holds the key.
    pub(crate) api_key_env: Option<Setting<VariableName>>,
    /// Values may hold `${VARIABLE}`.
    #[serde(deserialize_with = "headers")]
    pub(crate) headers: BTreeMap<String, Setting<String>>,
    /// The maximum number of calls that begin in a minute.
    pub(crate) requests_per_minute: Option<Setting<NonZeroU32>>,
    /// The maximum number of tokens in a minute, of prompts and answers.
    pub(crate) tokens_per_minute: Option<Setting<NonZeroU32>>,
    /// The maximum number of calls at the same time.
    pub(crate) calls: Option<Setting<NonZeroU32>>,
    /// The longest time without a byte of an answer.
    #[serde(deserialize_with = "idle_timeout")]
    pub(crate) idle_timeout: Option<Setting<Duration>>,
    /// Never set: it is refused with the reason.
    pub(crate) api_key: Option<Refused>,
}

impl Layered for Access {
    fn or(self, below: Self) -> Self {
        Self {
            base_url: self.base_url.or(below.base_url),
            api_key_env: self.api_key_env.or(below.api_key_env),
            headers: self.headers.or(below.headers),
            requests_per_minute: self.requests_per_minute.or(below.requests_per_minute),
            tokens_per_minute: self.tokens_per_minute.or(below.tokens_per_minute),
            calls: self.calls.or(below.calls),
            idle_timeout: self.idle_timeout.or(below.idle_timeout),
            api_key: self.api_key.or(below.api_key),
        }
    }

    fn locate(&mut self, file: &Location<'_>) {
        self.base_url.locate(file);
        self.api_key_env.locate(file);
        self.headers.locate(file);
        for limit in [&mut self.requests_per_minute, &mut self.tokens_per_minute, &mut self.calls] {
            limit.locate(file);
        }
        self.idle_timeout.locate(file);
    }
}

impl Access {
    /// Returns the limits of the rate of calls.
    pub(crate) fn rates(&self) -> RatePolicy {
        let number = |limit: &Option<Setting<NonZeroU32>>| value(limit).map(NonZeroU32::get);
        let mut rates = RatePolicy::default();
        rates.requests_per_minute = number(&self.requests_per_minute).map(u64::from);
        rates.tokens_per_minute = number(&self.tokens_per_minute).map(u64::from);
        rates.calls = number(&self.calls);
        rates
    }
}

/// Reads the addresses of providers from the environment.
pub(super) fn base_urls(var: Var<'_>) -> Providers {
    let access =
        |name| Access { base_url: var(name).map(|value| Setting::new(value, name)), ..Access::default() };
    PROVIDERS.iter().map(|provider| (ProviderName(provider.name), access(provider.base_url))).collect()
}

/// Returns what a provider's table does: where prompts, the key and headers go.
pub(super) fn access_does(name: &str, access: &Access, _raw: &Json) -> Vec<String> {
    let default = provider(name).map_or("", |provider| provider.key);
    let key = access.api_key_env.as_ref().map(|name| &*name.value.0);
    let address = access.base_url.as_ref().map(|url| {
        let to = shown_address(&url.value);
        format!("sends what {name} is asked, and the key in {}, to {to}", key.unwrap_or(default))
    });
    let key = key.filter(|_| access.base_url.is_none());
    let key = key.map(|key| format!("sends {key} of the environment to {name}, as the key"));
    let headers = (!access.headers.is_empty()).then(|| {
        let names: Vec<_> = access.headers.keys().map(String::as_str).collect();
        let values = access.headers.values().map(|header| json!(header.value)).collect();
        with_variables(format!("sends headers to {name} ({})", names.join(", ")), &values)
    });
    address.into_iter().chain(key).chain(headers).collect()
}

/// The name of a provider of this build.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ProviderName(&'static str);

impl ProviderName {
    /// Returns the name if it is a provider's.
    pub(crate) fn of(name: &str) -> Option<Self> {
        provider(name).map(|provider| Self(provider.name))
    }
}

impl Borrow<str> for ProviderName {
    fn borrow(&self) -> &str {
        self.0
    }
}

impl fmt::Display for ProviderName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl<'de> Deserialize<'de> for ProviderName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let known =
            || PROVIDERS.iter().map(|provider| format!("`{}`", provider.name)).collect::<Vec<_>>().join(", ");
        let unknown = || D::Error::custom(format!("unknown field `{name}`, expected one of {}", known()));
        Self::of(&name).ok_or_else(unknown)
    }
}

/// The name of an environment variable. Other text may be a key, and is not repeated.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct VariableName(pub(crate) String);

impl Value for VariableName {}

impl<'de> Deserialize<'de> for VariableName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty() || !name.chars().all(is_name) {
            return Err(D::Error::custom("this is not the name of an environment variable, such as MY_KEY"));
        }
        Ok(Self(name))
    }
}

/// A key in the file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Refused {}

impl<'de> Deserialize<'de> for Refused {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        Err(D::Error::custom(
            "keys are not allowed in a file: put it into an environment variable, and the name of that into \
             `api_key_env`",
        ))
    }
}

/// Reads a time that is longer than none.
fn idle_timeout<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Setting<Duration>>, D::Error> {
    let setting = time(deserializer)?;
    if value(&setting) == Some(Duration::ZERO) {
        return Err(D::Error::custom("must be longer than 0s"));
    }
    Ok(setting)
}

/// Reads headers, of which none may hold a key in plain.
fn headers<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, Setting<String>>, D::Error> {
    entries::checked(deserializer, |name, header: &Setting<String>| {
        if holds_key(name, &header.value) {
            let message = "keys are not allowed in a file: write `${MY_KEY}` for the value of";
            return Err(format!("{message} {name}"));
        }
        Ok(())
    })
}

/// Returns `true` if a header carries a key, and carries it in plain.
fn holds_key(name: &str, value: &str) -> bool {
    let name = name.to_ascii_lowercase();
    (name.contains("authorization") || name.contains("api-key")) && !value.contains("${")
}
