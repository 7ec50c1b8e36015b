//! A model from the environment.

use std::sync::Arc;

use mainstem_model::{Model, ModelRegistry};

use crate::Error;

/// The providers of this build by name, each set up from its own variables: `openai` from `OPENAI_API_KEY` and `OPENAI_BASE_URL`. Their
/// models retry passing failures and give up on silence.
pub fn registry_from_env() -> ModelRegistry {
    let registry = ModelRegistry::new();
    #[cfg(feature = "openai")]
    let registry = registry.with_provider("openai", openai);
    registry
}

#[cfg(feature = "openai")]
fn openai(name: &str) -> Result<Arc<dyn Model>, mainstem_model::ModelError> {
    use mainstem_model::{Breaker, ErrorKind, IdleTimeout, ModelError, Retry};

    /// The longest silence of a model before its call fails.
    const IDLE: std::time::Duration = std::time::Duration::from_secs(120);

    let model = mainstem_openai::OpenAi::from_env(name);
    let model = model.map_err(|error| ModelError::new(ErrorKind::InvalidRequest, error.to_string()))?;
    Ok(Arc::new(Retry::new(Breaker::new(IdleTimeout::new(model, IDLE)))))
}

/// The model that `MAINSTEM_MODEL` names, else the default of the first provider that has a key or a server.
///
/// # Errors
/// Nothing is configured, or what is named can't be used.
pub fn model_from_env() -> Result<Arc<dyn Model>, Error> {
    let named = std::env::var("MAINSTEM_MODEL").ok().filter(|name| !name.is_empty());
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let default =
        (is_set("OPENAI_API_KEY") || is_set("OPENAI_BASE_URL")).then(|| "openai:gpt-4o-mini".to_owned());
    let name = named.or(default).ok_or(Error::NoModel)?;
    Ok(registry_from_env().resolve(&name)?)
}
