//! Models that environment variables configure.

use std::sync::Arc;

use mainstem_model::{ErrorKind, Model, ModelError, ModelRegistry};

use crate::{
    Error,
    provider::{PROVIDERS, Provider, Setup},
};

/// Returns a registry of the providers of this build ([`PROVIDERS`]), each configured by its own
/// variables, such as `openai` by `OPENAI_API_KEY` and `OPENAI_BASE_URL`. Models have retries, a
/// circuit breaker and an idle timeout.
///
/// ```no_run
/// use mainstem::prelude::*;
///
/// // Agents' files can then name `model: anthropic:claude-haiku-4-5`.
/// let harness = Harness::builder("main", mainstem::model_from_env()?)
///     .with_registry(mainstem::registry_from_env())
///     .build()?;
/// # let _ = harness;
/// # Ok::<(), mainstem::Error>(())
/// ```
pub fn registry_from_env() -> ModelRegistry {
    PROVIDERS.iter().fold(ModelRegistry::new(), |registry, provider| {
        registry
            .with_provider(provider.name, |name| from_env(provider, name))
            .with_families(provider.name, provider.families.iter().copied())
    })
}

fn from_env(provider: &Provider, name: &str) -> Result<Arc<dyn Model>, ModelError> {
    let model = provider.model(name, &Setup::new(&var));
    // Every error here is a configuration error.
    model.map_err(|error| ModelError::new(ErrorKind::InvalidRequest, error.to_string()))
}

fn var(name: &str) -> Option<String> {
    set(&std::env::var(name).ok()?)
}

/// Returns the value without surrounding blanks, such as the line feed of a file that it was read
/// from; `None` if it is empty.
fn set(value: &str) -> Option<String> {
    let value = value.trim();
    (!value.is_empty()).then(|| value.to_owned())
}

/// Returns the model that `MAINSTEM_MODEL` names, else the default model of the first provider that
/// has a key or a server.
///
/// ```no_run
/// use mainstem::prelude::*;
///
/// // MAINSTEM_MODEL=openai:gpt-4o-mini OPENAI_API_KEY=…
/// let harness = Harness::builder("main", mainstem::model_from_env()?).build()?;
/// # let _ = harness;
/// # Ok::<(), mainstem::Error>(())
/// ```
///
/// # Errors
/// No model is configured, or the named one can't be used.
pub fn model_from_env() -> Result<Arc<dyn Model>, Error> {
    let default = || {
        let mut set_up = PROVIDERS.iter().filter(|provider| provider.is_set_up(var).is_some());
        set_up.find_map(Provider::default_name)
    };
    let name = var("MAINSTEM_MODEL").or_else(default).ok_or(Error::NoModel)?;
    Ok(registry_from_env().resolve(&name)?)
}

#[cfg(test)]
mod tests {
    //! Values of variables.

    use super::*;

    #[test]
    fn a_value_has_no_blanks_around_it() {
        assert_eq!(set("sk-1\n").as_deref(), Some("sk-1"));
        assert_eq!(set(" sk-1 ").as_deref(), Some("sk-1"));
        assert_eq!(set(" \n"), None);
    }
}
