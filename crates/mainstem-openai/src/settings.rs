//! The settings and paths of both APIs.

use std::sync::Arc;

use mainstem_http::{Api, ConfigError, Endpoint, Server, Url, extend};

use crate::{
    ChatCompletions, Responses,
    service::{OPENAI, ORGANIZATION, PROJECT},
};

/// The settings of a model that other vendors' APIs do not have.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    /// Why responses are requested in one piece.
    pub(crate) whole: Option<Arc<str>>,
    /// Overrides what is known of the server.
    pub(crate) can_enforce_schema: Option<bool>,
}

impl Settings {
    pub(crate) fn can_enforce_schema(&self, server: &Server) -> bool {
        self.can_enforce_schema.unwrap_or_else(|| OPENAI.is_key_required(server.host()))
    }
}

/// The settings of [`OpenAi`](crate::OpenAi) and [`OpenAiResponses`](crate::OpenAiResponses) that
/// other vendors' models do not have.
///
/// ```
/// use mainstem_openai::{OpenAi, OpenAiExt};
///
/// let model = OpenAi::new("gpt-4o-mini").with_organization("org-1")?.with_project("proj-1")?;
/// # let _ = model;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait OpenAiExt: Sized {
    /// Sets the organization that pays.
    ///
    /// # Errors
    /// If HTTP does not allow the value.
    fn with_organization(self, organization: &str) -> Result<Self, ConfigError>;

    /// Sets the project that pays.
    ///
    /// # Errors
    /// If HTTP does not allow the value.
    fn with_project(self, project: &str) -> Result<Self, ConfigError>;

    /// Sets whether the server enforces JSON schemas of answers beside tools. OpenAI does; of
    /// others it is not assumed, and an answer is requested as the arguments of a tool.
    #[must_use]
    fn with_json_schema(self, can_enforce_schema: bool) -> Self;

    /// Requests responses in one piece, for a server that cannot stream. Each reports this reason.
    #[must_use]
    fn without_streaming(self, reason: impl Into<Arc<str>>) -> Self;
}

impl<A: Api + AsMut<Settings>> OpenAiExt for Endpoint<A> {
    fn with_organization(self, organization: &str) -> Result<Self, ConfigError> {
        self.with_header(ORGANIZATION, organization)
    }

    fn with_project(self, project: &str) -> Result<Self, ConfigError> {
        self.with_header(PROJECT, project)
    }

    fn with_json_schema(self, can_enforce_schema: bool) -> Self {
        set(self, |settings| settings.can_enforce_schema = Some(can_enforce_schema))
    }

    fn without_streaming(self, reason: impl Into<Arc<str>>) -> Self {
        set(self, |settings| settings.whole = Some(reason.into()))
    }
}

fn set<A: Api + AsMut<Settings>>(model: Endpoint<A>, change: impl FnOnce(&mut Settings)) -> Endpoint<A> {
    let mut api = model.api().clone();
    change(api.as_mut());
    model.with_api(api)
}

impl AsMut<Settings> for ChatCompletions {
    fn as_mut(&mut self) -> &mut Settings {
        &mut self.0
    }
}

impl AsMut<Settings> for Responses {
    fn as_mut(&mut self) -> &mut Settings {
        &mut self.0
    }
}

/// Returns the endpoint below a base URL; the URL of the whole endpoint is accepted, too.
pub(crate) fn below(base: &Url, segments: &[&str]) -> Url {
    let mut url = base.clone();
    if !url.path().trim_end_matches('/').ends_with(&format!("/{}", segments.join("/"))) {
        extend(&mut url, segments);
    }
    url
}

#[cfg(test)]
mod tests;
