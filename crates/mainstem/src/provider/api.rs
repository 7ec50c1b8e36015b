//! Rows of the table, from the vendors' APIs.

use std::sync::Arc;

use mainstem_http::{Api, Endpoint, Variables};
use mainstem_model::{Model, ModelError};

use super::{Provider, Setup};

impl Provider {
    /// Creates the provider of an API, with this name.
    pub const fn of<A: Api>(name: &'static str, default_model: &'static str) -> Self {
        let Variables { key, base_url, .. } = A::VARIABLES;
        Self { name, key, base_url, default_model, is_known_by_key: is_known_by_key::<A>, make: make::<A> }
    }
}

/// Returns `true` if the vendor's own server requires a key.
fn is_known_by_key<A: Api>() -> bool {
    A::is_key_required(Endpoint::<A>::new("any").server().host())
}

fn make<A: Api>(name: &str, setup: &Setup<'_>) -> Result<Arc<dyn Model>, ModelError> {
    let mut model = Endpoint::<A>::from_vars(name, setup.var)?;
    for (name, value) in setup.headers {
        model = model.with_header(name, value)?;
    }
    Ok(Arc::new(model))
}
