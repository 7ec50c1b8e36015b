//! Rows of the table, from the vendors' APIs and the services that offer them.

use std::{pin::Pin, sync::Arc};

use mainstem_http::{Api, Endpoint, ListedModel, Service};
use mainstem_model::{Account, Model, ModelError};

use super::{Provider, Setup};

/// The models of a service, once they have arrived.
pub(super) type ModelList = Pin<Box<dyn Future<Output = Result<Vec<ListedModel>, ModelError>> + Send>>;

impl Provider {
    /// Returns the models that the provider lists, in its order; see [`Endpoint::models`].
    ///
    /// # Errors
    /// If a setting is missing or invalid, or the list can't be had.
    pub async fn models(&self, setup: &Setup<'_>) -> Result<Vec<ListedModel>, ModelError> {
        (self.list)(self, setup)?.await
    }

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
            list: list::<A>,
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

fn make<A: Api>(
    row: &Provider,
    name: &str,
    setup: &Setup<'_>,
) -> Result<(Arc<dyn Model>, Account), ModelError> {
    let endpoint = endpoint::<A>(row, name, setup)?;
    let account = endpoint.server().account();
    Ok((Arc::new(endpoint), account))
}

fn list<A: Api>(row: &Provider, setup: &Setup<'_>) -> Result<ModelList, ModelError> {
    let endpoint = endpoint::<A>(row, "", setup)?;
    Ok(Box::pin(async move { endpoint.models().await }))
}

fn endpoint<A: Api>(row: &Provider, name: &str, setup: &Setup<'_>) -> Result<Endpoint<A>, ModelError> {
    let mut model = Endpoint::<A>::of_service(row.service, name, setup.var)?;
    for (name, value) in setup.headers {
        model = model.with_header(name, value)?;
    }
    Ok(model)
}
