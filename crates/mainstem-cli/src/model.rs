//! Which model answers, and how it is reached.

use std::{sync::Arc, time::Duration};

use anyhow::{Context, bail};
use mainstem::{
    model::{Breaker, ErrorKind, IdleTimeout, Model, ModelError, ModelRegistry, Retry},
    openai::OpenAi,
};

use crate::{
    config::{Setting, Settings},
    demo,
};

/// The longest silence of a model before its call fails.
const IDLE: Duration = Duration::from_secs(120);

/// The model of those who have a key or a server and name none.
const DEFAULT: &str = "openai:gpt-4o-mini";

const KEY: &str = "OPENAI_API_KEY";

/// What to say where no model is configured.
pub(crate) const HOW: &str = "set OPENAI_API_KEY, or OPENAI_BASE_URL for a local OpenAI-compatible server, and choose a model by -m, \
                              MAINSTEM_MODEL or `model` in ./mainstem.toml";

/// The model that is named, else the default of a provider that has a key or a server; `None` if nothing is configured.
pub(crate) fn choose(settings: &Settings, var: impl Fn(&str) -> Option<String>) -> Option<Setting<String>> {
    let openai = &settings.openai;
    let has_key = openai.api_key_env.is_some() || var(KEY).is_some();
    let server = openai.base_url.as_ref().map(|said| &*said.origin);
    let by_default = || Some(Setting::new(DEFAULT.to_owned(), has_key.then_some(KEY).or(server)?));
    settings.model.clone().or_else(by_default)
}

/// Every model there is by name: the demo, and those of OpenAI and its likes. They retry passing failures and give up on silence.
///
/// # Errors
/// Settings that can't be used, and where they were made.
pub(crate) fn registry(
    settings: &Settings,
    pace: f64,
    var: fn(&str) -> Option<String>,
) -> anyhow::Result<ModelRegistry> {
    let openai = &settings.openai;
    let base_url = openai.base_url.clone();
    if let Some(Setting { value, origin }) = &base_url {
        OpenAi::new(DEFAULT).with_base_url(value).with_context(|| origin.clone())?;
    }
    let key_var = match &openai.api_key_env {
        Some(Setting { value, origin }) if var(value).is_none() => {
            bail!("{origin}: the variable {value}, which shall hold the key, is not set")
        }
        named => named.as_ref().map_or_else(|| KEY.to_owned(), |said| said.value.clone()),
    };
    let mut headers = Vec::new();
    for (name, said) in &openai.headers {
        let value = expanded(&said.value, var)
            .and_then(|value| Ok(OpenAi::new(DEFAULT).with_header(name, &value).map(|_| value)?));
        headers.push((name.clone(), value.with_context(|| said.origin.clone())?));
    }
    let lookup = move |name: &str| match name {
        "OPENAI_BASE_URL" => base_url.as_ref().map(|said| said.value.clone()),
        KEY => var(&key_var),
        _ => var(name),
    };
    let provider = move |name: &str| -> Result<Arc<dyn Model>, ModelError> {
        if name.is_empty() {
            let message = format!("the name ends where the model should be; write it like {DEFAULT}");
            return Err(ModelError::new(ErrorKind::InvalidRequest, message));
        }
        let mut model = OpenAi::from_vars(name, &lookup)?;
        for (name, value) in &headers {
            model = model.with_header(name, value)?;
        }
        Ok(Arc::new(Retry::new(Breaker::new(IdleTimeout::new(model, IDLE)))))
    };
    Ok(ModelRegistry::new().with_model(demo::NAME, demo::model(pace)).with_provider("openai", provider))
}

/// A text with the values of its `${VARIABLE}`s.
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
