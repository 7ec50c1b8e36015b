//! Asks a service for its models.

use std::time::Duration;

use mainstem_model::{ErrorKind, ModelError};

use crate::{
    Api, Endpoint, ListedModel, ModelPage,
    model_list::page_url,
    response::{get, whole},
};

/// The most pages of a list that are read.
const MAX_PAGES: usize = 50;

/// The longest time for one page.
const TIME_LIMIT: Duration = Duration::from_secs(30);

impl<A: Api> Endpoint<A> {
    /// Returns the models that the service lists, in its order.
    ///
    /// Dropping the future closes the connection. A page takes 30 seconds at most.
    ///
    /// # Errors
    /// If the API has no list, the service can't be reached or refuses, or its list is malformed or
    /// has more than 50 pages.
    pub async fn models(&self) -> Result<Vec<ListedModel>, ModelError> {
        let list =
            A::models_url(&self.base).ok_or_else(|| self.server.unsupported("has no list of models"))?;
        let (mut models, mut next) = (Vec::new(), None);
        for _ in 0..MAX_PAGES {
            let mut server = (*self.server).clone();
            server.set_url(page_url(list.clone(), next.as_ref()));
            let response =
                get(&self.http, &server, TIME_LIMIT).await?.map_err(|no| no.into_error(&server))?;
            let body = whole(&server, response).await?;
            let page: ModelPage = serde_json::from_str(&body)
                .map_err(|error| error.to_string())
                .and_then(|page| A::models_page(&page).ok_or_else(|| "it has no models".to_owned()))
                .map_err(|error| server.malformed("list of models", &body, &error))?;
            models.extend(page.models);
            next = page.next;
            if next.is_none() {
                return Ok(models);
            }
        }
        let what = format!("has a list of models with more than {MAX_PAGES} pages");
        Err(self.server.error(ErrorKind::Protocol, &what))
    }
}
