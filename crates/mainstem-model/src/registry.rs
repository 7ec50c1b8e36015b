//! Resolves names such as `openai:gpt-4o-mini` to models.

use std::{collections::BTreeMap, fmt, sync::Arc};

use crate::{Model, ModelError};

type Provider = Arc<dyn Fn(&str) -> Result<Arc<dyn Model>, ModelError> + Send + Sync>;

/// Models by name, and providers that make one from `provider:model`.
///
/// ```
/// use mainstem_model::{Model, ModelRegistry, ScriptedModel};
///
/// let registry = ModelRegistry::new().with_model("fast", ScriptedModel::new());
/// assert!(registry.resolve("fast").is_ok());
/// let error = registry.resolve("fsat").err().unwrap();
/// assert_eq!(error.to_string(), r#"unknown model "fsat"; known: fast"#);
/// ```
#[derive(Clone, Default)]
pub struct ModelRegistry {
    models: BTreeMap<String, Arc<dyn Model>>,
    providers: BTreeMap<String, Provider>,
}

/// A name that can't be resolved.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResolveError {
    /// Neither a registered name nor `provider:model` of a known provider.
    #[error("unknown model {name:?}; known: {}", known.join(", "))]
    Unknown {
        /// The name.
        name: String,
        /// The known names.
        known: Vec<String>,
    },
    /// The provider is known, but cannot make the model.
    #[error("model {name:?} can't be used: {source}")]
    Provider {
        /// The name.
        name: String,
        /// The reason.
        source: ModelError,
    },
}

impl ModelRegistry {
    /// Creates an empty registry.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a model under a name of its own.
    #[must_use]
    pub fn with_model(mut self, name: impl Into<String>, model: impl Model) -> Self {
        self.models.insert(name.into(), Arc::new(model));
        self
    }

    /// Adds a provider, which makes models from the part after `name:`.
    #[must_use]
    pub fn with_provider<F>(mut self, name: impl Into<String>, provider: F) -> Self
    where
        F: Fn(&str) -> Result<Arc<dyn Model>, ModelError> + Send + Sync + 'static,
    {
        self.providers.insert(name.into(), Arc::new(provider));
        self
    }

    /// Returns the model of that name; registered names go before providers.
    ///
    /// # Errors
    /// [`ResolveError`] names what is known, or why the provider refused.
    pub fn resolve(&self, name: &str) -> Result<Arc<dyn Model>, ResolveError> {
        if let Some(model) = self.models.get(name) {
            return Ok(model.clone());
        }
        let provider = name.split_once(':').and_then(|(p, model)| Some((self.providers.get(p)?, model)));
        let Some((provider, model)) = provider else {
            return Err(ResolveError::Unknown { name: name.to_owned(), known: self.known() });
        };
        provider(model).map_err(|source| ResolveError::Provider { name: name.to_owned(), source })
    }

    /// Returns the names, and providers as `provider:…`.
    pub fn known(&self) -> Vec<String> {
        self.models.keys().cloned().chain(self.providers.keys().map(|p| format!("{p}:…"))).collect()
    }
}

impl fmt::Debug for ModelRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ModelRegistry").field(&self.known()).finish()
    }
}
