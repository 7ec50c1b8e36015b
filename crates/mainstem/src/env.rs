//! A model from the environment.

use std::sync::Arc;

use mainstem_model::{ErrorKind, Model, ModelError, ModelRegistry};

use crate::{
    Error,
    vendor::{Setup, VENDORS, Vendor},
};

/// The vendors of this build by name, each set up from its own variables, such as `openai` from
/// `OPENAI_API_KEY` and `OPENAI_BASE_URL`: see [`VENDORS`]. Their models retry passing failures,
/// leave a service alone that fails again and again, and give up on silence.
pub fn registry_from_env() -> ModelRegistry {
    VENDORS.iter().fold(ModelRegistry::new(), |registry, vendor| {
        registry.with_provider(vendor.name, |name| from_env(vendor, name))
    })
}

fn from_env(vendor: &Vendor, name: &str) -> Result<Arc<dyn Model>, ModelError> {
    let model = vendor.model(name, &Setup { var: &var, headers: &[] });
    // Whatever is wrong is wrong with what the program was given.
    model.map_err(|error| ModelError::new(ErrorKind::InvalidRequest, error.to_string()))
}

fn var(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.trim().is_empty())
}

/// The model that `MAINSTEM_MODEL` names, else the default of the first vendor that has a key or a
/// server.
///
/// # Errors
/// Nothing is configured, or what is named can't be used.
pub fn model_from_env() -> Result<Arc<dyn Model>, Error> {
    let default = || {
        let vendor = VENDORS.iter().find(|vendor| vendor.is_set_up(var).is_some())?;
        Some(vendor.example())
    };
    let name = var("MAINSTEM_MODEL").or_else(default).ok_or(Error::NoModel)?;
    Ok(registry_from_env().resolve(&name)?)
}
