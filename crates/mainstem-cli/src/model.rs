//! The choice of the model, and how it is configured.

use std::{fmt, sync::Arc, time::Duration};

use anyhow::{Context, anyhow, bail};
use mainstem::{
    http::ListedModel,
    model::{ErrorKind, Model, ModelError, ModelRegistry, RatePolicy},
    provider::{PROVIDERS, Provider, Setup, variables},
    subagent::closest_model,
};

use crate::{
    config::{Access, Setting, Settings, VariableName, keys::ways, value, var},
    demo,
};

/// Advice if no model is configured.
pub(crate) const ADVICE: Advice = Advice;

/// See [`ADVICE`].
pub(crate) struct Advice;

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Local servers implement the API of the first provider.
        let server = PROVIDERS.first().map_or("", |provider| provider.base_url);
        let (variables, ways) = (variables(), ways("model"));
        writeln!(f, "set {variables}: each chooses its provider and a default model")?;
        writeln!(f, "(`mainstem models` lists more);")?;
        write!(f, "for a local server, set {server} and choose a model by {ways}")
    }
}

/// Says that no model is configured, or that none is chosen of a provider without a default, and
/// what to do.
pub(crate) fn none_configured(settings: &Settings) -> String {
    match unchosen(settings) {
        Some(why) => format!("no model is chosen: {why}"),
        None => format!("no model is configured\n{ADVICE}"),
    }
}

/// Says that the demo plays because no model is configured.
pub(crate) fn demo_instead(settings: &Settings) -> String {
    match unchosen(settings) {
        Some(why) => format!("no model is chosen, so this is the demo; {why}"),
        None => format!("no model is configured, so this is the demo; set {}, or see --help", variables()),
    }
}

/// Says how to choose a model of the first provider that is set up; `None` if none is.
pub(crate) fn unchosen(settings: &Settings) -> Option<String> {
    PROVIDERS.iter().find_map(|provider| {
        let (name, origin) = (provider.name, set_up_by(provider, settings, var)?);
        Some(format!(
            "{origin} sets up {name}, which has no default model; choose one with `-m {name}:MODEL` \
             (`mainstem models --online {name}` lists them)"
        ))
    })
}

/// Returns the configured model, or the default of the first provider that has a key or a server;
/// `None` if nothing is configured.
pub(crate) fn choose(settings: &Settings, var: impl Fn(&str) -> Option<String>) -> Option<Setting<String>> {
    let by_default = || PROVIDERS.iter().find_map(|provider| default_of(provider, settings, &var));
    settings.model.clone().or_else(by_default)
}

fn default_of(
    provider: &Provider,
    settings: &Settings,
    var: impl Fn(&str) -> Option<String>,
) -> Option<Setting<String>> {
    let name = provider.default_name()?;
    Some(Setting::new(name, set_up_by(provider, settings, var)?))
}

/// Returns the variable or file that sets a provider up; `None` if it is not set up.
pub(crate) fn set_up_by(
    provider: &Provider,
    settings: &Settings,
    var: impl Fn(&str) -> Option<String>,
) -> Option<String> {
    let access = settings.access(provider.name);
    let key = access.api_key_env.map(|name| name.origin);
    let in_file = key.or_else(|| access.base_url.map(|url| url.origin));
    provider.is_set_up(var).map(str::to_owned).or(in_file)
}

/// Returns all models by name: the demo, and those of the providers. They retry transient failures,
/// pause a service that keeps failing, and have an idle timeout.
///
/// # Errors
/// A setting is invalid; the error has its origin.
pub(crate) fn registry(
    settings: &Settings,
    pace: f64,
    var: fn(&str) -> Option<String>,
) -> anyhow::Result<ModelRegistry> {
    let mut registry = ModelRegistry::new().with_model(demo::NAME, demo::model(pace));
    for provider in PROVIDERS {
        let configured = configured(provider, settings, var)?;
        registry = registry
            .with_provider(provider.name, move |name| configured.model(name))
            .with_families(provider.name, provider.families.iter().copied());
    }
    Ok(registry)
}

/// Returns the model of this name.
///
/// # Errors
/// The name is unknown, or the provider is not set up; the error suggests what was probably meant.
pub(crate) fn resolve(registry: &ModelRegistry, name: &str) -> anyhow::Result<Arc<dyn Model>> {
    registry.resolve(name).map_err(|error| match closest_model(&error) {
        Some(near) => anyhow!("{error}; did you mean {near:?}?"),
        None => error.into(),
    })
}

/// Returns a provider with its settings.
///
/// # Errors
/// A setting is invalid; the error has its origin.
pub(crate) fn configured(
    provider: &'static Provider,
    settings: &Settings,
    var: fn(&str) -> Option<String>,
) -> anyhow::Result<Configured> {
    Configured::new(provider, settings.access(provider.name), var)
}

/// A provider with its settings.
pub(crate) struct Configured {
    provider: &'static Provider,
    base_url: Option<String>,
    /// The variable that holds the key.
    key: String,
    headers: Vec<(String, String)>,
    /// Limits of the rate of calls.
    rates: RatePolicy,
    /// The longest time without a byte of an answer.
    idle_timeout: Option<Duration>,
    var: fn(&str) -> Option<String>,
}

impl Configured {
    fn new(
        provider: &'static Provider,
        access: Access,
        var: fn(&str) -> Option<String>,
    ) -> anyhow::Result<Self> {
        let (rates, idle_timeout) = (access.rates(), value(&access.idle_timeout));
        let Access { base_url, api_key_env, headers, .. } = access;
        let key = match api_key_env {
            Some(Setting { value: VariableName(value), origin }) if var(&value).is_none() => {
                bail!("{origin}: the variable {value} for the key is not set")
            }
            named => named.map_or_else(|| provider.key.to_owned(), |name| name.value.0),
        };
        let mut configured =
            Self { provider, base_url: None, key, headers: Vec::new(), rates, idle_timeout, var };
        if let Some(Setting { value, origin }) = base_url {
            configured.base_url = Some(value);
            configured.check().context(origin)?;
        }
        for (name, header) in headers {
            let value = expanded(&header.value, var).with_context(|| header.origin.clone())?;
            configured.headers.push((name, value));
            configured.check().context(header.origin)?;
        }
        Ok(configured)
    }

    /// Checks that a model can be set up, given a key.
    fn check(&self) -> Result<(), ModelError> {
        self.set_up("any", &|name| {
            if name == self.provider.key { Some("any".to_owned()) } else { self.lookup(name) }
        })
        .map(drop)
    }

    fn model(&self, name: &str) -> Result<Arc<dyn Model>, ModelError> {
        if name.is_empty() {
            let example = self.provider.example();
            let message = format!("the name has no model; write it like {example}");
            return Err(ModelError::new(ErrorKind::InvalidRequest, message));
        }
        self.set_up(name, &|name| self.lookup(name))
    }

    /// Returns the models that the provider lists.
    ///
    /// # Errors
    /// A setting is missing, or the list can't be had.
    pub(crate) async fn models(&self) -> Result<Vec<ListedModel>, ModelError> {
        let var = |name: &str| self.lookup(name);
        self.provider.models(&self.setup(&var)).await
    }

    fn set_up(&self, name: &str, var: &dyn Fn(&str) -> Option<String>) -> Result<Arc<dyn Model>, ModelError> {
        self.provider.model(name, &self.setup(var))
    }

    fn setup<'a>(&'a self, var: &'a dyn Fn(&str) -> Option<String>) -> Setup<'a> {
        let default = Setup::new(var);
        let idle_timeout = self.idle_timeout.unwrap_or(default.idle_timeout);
        Setup { headers: &self.headers, rates: self.rates, idle_timeout, ..default }
    }

    fn lookup(&self, name: &str) -> Option<String> {
        match name {
            name if name == self.provider.base_url => self.base_url.clone(),
            name if name == self.provider.key => (self.var)(&self.key),
            name => (self.var)(name),
        }
    }
}
/// Returns a text with the values of its `${VARIABLE}`s.
fn expanded(text: &str, var: impl Fn(&str) -> Option<String>) -> anyhow::Result<String> {
    let mut pieces = text.split("${");
    let mut out = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (name, rest) = piece.split_once('}').context("a `${` without its `}`")?;
        let value = var(name).with_context(|| format!("the variable {name} is not set"))?;
        out.push_str(&value);
        out.push_str(rest);
    }
    Ok(out)
}

#[cfg(test)]
mod tests;
