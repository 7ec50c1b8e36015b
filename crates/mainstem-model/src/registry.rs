//! Resolves names such as `openai:gpt-4o-mini` or `gpt-4o-mini` to models.

use std::{collections::BTreeMap, fmt, sync::Arc};

use crate::{Model, ModelError};

type Provider = Arc<dyn Fn(&str) -> Result<Arc<dyn Model>, ModelError> + Send + Sync>;

/// Models by name, and providers that make one from `provider:model`. A name without a provider is
/// that of the provider whose family it begins with.
///
/// ```
/// use mainstem_model::{Model, ModelRegistry, ScriptedModel};
///
/// let registry = ModelRegistry::new().with_model("fast", ScriptedModel::new());
/// assert!(registry.resolve("fast").is_ok());
/// let error = registry.resolve("fsat").err().unwrap();
/// assert_eq!(error.to_string(), r#"unknown model "fsat"; known: fast"#);
///
/// let script = |_: &str| Ok(std::sync::Arc::new(ScriptedModel::new()) as _);
/// let registry = registry.with_provider("openai", script).with_families("openai", ["gpt-", "o3"]);
/// assert!(registry.resolve("openai:gpt-4o").is_ok());
/// assert!(registry.resolve("gpt-4o").is_ok());
/// ```
#[derive(Clone, Default)]
pub struct ModelRegistry {
    models: BTreeMap<String, Arc<dyn Model>>,
    providers: BTreeMap<String, Provider>,
    /// Beginnings of names with their provider, in the order in which they were added.
    families: Vec<(String, String)>,
}

/// A name that can't be resolved.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResolveError {
    /// Neither a registered name, nor `provider:model` of a known provider, nor of a known family.
    #[error("unknown model {name:?}; known: {}", known.join(", "))]
    Unknown {
        /// The name.
        name: String,
        /// The known names.
        known: Vec<String>,
        /// The known families: beginnings of names, such as `gpt-`.
        families: Vec<String>,
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

    /// Declares that names without a provider that begin with one of these texts are models of a
    /// provider. If several declarations fit a name, the longest text decides; of several providers
    /// with that text, the first that can make the model.
    #[must_use]
    pub fn with_families<F>(
        mut self,
        provider: impl Into<String>,
        families: impl IntoIterator<Item = F>,
    ) -> Self
    where
        F: Into<String>,
    {
        let provider = provider.into();
        self.families.extend(families.into_iter().map(|family| (family.into(), provider.clone())));
        self
    }

    /// Returns the model of that name; registered names go before providers, and these before
    /// families.
    ///
    /// # Errors
    /// [`ResolveError`] names what is known, or why the provider refused.
    pub fn resolve(&self, name: &str) -> Result<Arc<dyn Model>, ResolveError> {
        if let Some(model) = self.models.get(name) {
            return Ok(model.clone());
        }
        let mut refusal = None;
        for (provider, model) in self.candidates(name) {
            match provider(model) {
                Ok(model) => return Ok(model),
                Err(error) => refusal = refusal.or(Some(error)),
            }
        }
        let name = name.to_owned();
        Err(match refusal {
            Some(source) => ResolveError::Provider { name, source },
            None => {
                let families = self.families.iter().map(|(family, _)| family.clone()).collect();
                ResolveError::Unknown { name, known: self.known(), families }
            }
        })
    }

    /// Returns the providers to which a name can belong, the most likely first, each with the
    /// model's name there.
    fn candidates<'a>(&'a self, name: &'a str) -> Vec<(&'a Provider, &'a str)> {
        let named = name.split_once(':').and_then(|(p, model)| Some((self.providers.get(p)?, model)));
        if let Some(named) = named {
            return vec![named];
        }
        let fits = || self.families.iter().filter(|(family, _)| name.starts_with(&**family));
        let longest = fits().map(|(family, _)| family.len()).max();
        let of_longest = fits().filter(|(family, _)| Some(family.len()) == longest);
        of_longest.filter_map(|(_, provider)| Some((self.providers.get(provider)?, name))).collect()
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

#[cfg(test)]
mod tests {
    //! Names with and without a provider.

    use super::*;
    use crate::{ErrorKind, ScriptedModel};

    /// Returns a provider that shows the name in an error, unless it makes the model.
    fn provider(name: &'static str, is_set_up: bool) -> impl Fn(&str) -> Result<Arc<dyn Model>, ModelError> {
        move |model| match is_set_up && model != "gone" {
            true => Ok(Arc::new(ScriptedModel::new())),
            false => Err(ModelError::new(ErrorKind::Auth, format!("{name} can't make {model}"))),
        }
    }

    #[test]
    fn a_bare_name_finds_its_provider() {
        let registry = ModelRegistry::new()
            .with_model("gpt-own", ScriptedModel::new())
            .with_provider("one", provider("one", false))
            .with_provider("two", provider("two", false))
            .with_provider("ready", provider("ready", true))
            .with_families("two", ["gpt-", "both-"])
            .with_families("one", ["gpt-", "gpt-oss", "llama"])
            .with_families("ready", ["both-", "gone"])
            .with_families("absent", ["absent-"]);
        let check = |name: &str, expected: Option<&str>| {
            let error = registry.resolve(name).err().map(|error| error.to_string());
            let expected = expected.map(|why| format!("model {name:?} can't be used: {why}"));
            assert_eq!(error, expected, "{name}");
        };
        check("gpt-own", None);
        check("gpt-4o", Some("two can't make gpt-4o"));
        check("gpt-oss:20b", Some("one can't make gpt-oss:20b"));
        check("one:gpt-4o", Some("one can't make gpt-4o"));
        check("both-1", None);
        check("gone", Some("ready can't make gone"));
        let known = "known: gpt-own, one:…, ready:…, two:…";
        for name in ["gpt", "absent-1", "three:gpt-4o", ""] {
            let error = registry.resolve(name).err().unwrap();
            assert_eq!(error.to_string(), format!("unknown model {name:?}; {known}"));
        }
    }
}
