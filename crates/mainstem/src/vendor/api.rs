//! From what a provider says about an API to a vendor of the table.

use std::sync::Arc;

use mainstem_http::{Api, Endpoint, Variables};
use mainstem_model::{Model, ModelError};

use super::{Setup, Vendor};

impl Vendor {
    /// The vendor behind an API, under a name of one's own.
    pub const fn of<A: Api>(name: &'static str, default_model: &'static str) -> Self {
        let Variables { key, base_url, .. } = A::VARIABLES;
        Self { name, key, base_url, default_model, is_known_by_key: is_known_by_key::<A>, make: make::<A> }
    }
}

/// A key says which vendor is meant if the API's own server requires one.
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
