//! Rows of the table, from the vendors' APIs and the services that offer them.

use std::sync::Arc;

use mainstem_http::{Api, Endpoint, Service};
use mainstem_model::{Model, ModelError};

use super::{Provider, Setup};

impl Provider {
    /// Creates the provider of an API at its vendor's own service, with this name.
    pub const fn of<A: Api>(name: &'static str) -> Self {
        Self { has_own_api: true, ..Self::at::<A>(name, &A::SERVICE) }
    }

    /// Creates the provider of a service that offers an API, with this name.
    pub const fn at<A: Api>(name: &'static str, service: &'static Service) -> Self {
        let (key, base_url) = (service.variables.key, service.variables.base_url);
        let is_known_by_key = |row: &Self| row.service.has_key_by_default();
        Self {
            name,
            key,
            base_url,
            default_model: None,
            families: &[],
            service,
            has_own_api: false,
            is_known_by_key,
            make: make::<A>,
        }
    }

    /// Returns the provider with this default model.
    #[must_use]
    pub const fn with_default(mut self, model: &'static str) -> Self {
        self.default_model = Some(model);
        self
    }

    /// Returns the provider with these families: texts with which its models' names begin.
    #[must_use]
    pub const fn with_families(mut self, families: &'static [&'static str]) -> Self {
        self.families = families;
        self
    }
}

fn make<A: Api>(row: &Provider, name: &str, setup: &Setup<'_>) -> Result<Arc<dyn Model>, ModelError> {
    let mut model = Endpoint::<A>::of_service(row.service, name, setup.var)?;
    for (name, value) in setup.headers {
        model = model.with_header(name, value)?;
    }
    Ok(Arc::new(model))
}
