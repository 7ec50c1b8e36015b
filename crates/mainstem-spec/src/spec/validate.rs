//! Whether a spec built in code makes sense.

use super::AgentSpec;
use crate::{SpecError, rules};

impl AgentSpec {
    /// Checks what the types can't: the id, a description, numbers in range, and that at most one
    /// of prompt, workspace path and url says what the agent does.
    ///
    /// # Errors
    /// Everything that is wrong; each names the agent and the key.
    pub fn validate(&self) -> Result<(), Vec<SpecError>> {
        let values = self.broken_rules().into_iter();
        let errors: Vec<_> = values.chain(self.conflicts()).map(|error| self.named(error)).collect();
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }

    fn broken_rules(&self) -> Vec<SpecError> {
        let mut errors = Vec::new();
        let mut check = |key: &str, verdict: rules::Verdict| {
            errors.extend(verdict.err().map(|message| SpecError::error(message).about(key)));
        };
        check("name", rules::id(&self.id));
        check("description", rules::description(&self.description));
        check("steps", rules::steps(self.steps));
        check("temperature", self.temperature.map_or(Ok(()), rules::temperature));
        check("top_p", self.top_p.map_or(Ok(()), rules::top_p));
        check("max_tokens_total", self.max_tokens_total.map_or(Ok(()), rules::max_tokens_total));
        check("output_schema", self.output_schema.as_ref().map_or(Ok(()), rules::output_schema));
        check("url", self.url.as_deref().map_or(Ok(()), rules::url));
        for header in &self.headers {
            check("headers", rules::header(&header.name, &header.value));
        }
        errors
    }

    fn conflicts(&self) -> impl Iterator<Item = SpecError> {
        let url = self.url.is_some().then_some("url");
        let path = self.workspace.path.is_some().then_some("workspace.path");
        let prompt = (!self.prompt.is_empty()).then_some("prompt");
        let pairs = [(url, path), (url, prompt), (path, prompt)];
        pairs.into_iter().filter_map(|(one, other)| Some(SpecError::conflict(one?, other?)))
    }

    fn named(&self, error: SpecError) -> SpecError {
        SpecError { message: format!("agent {:?}: {}", self.id, error.message), ..error }
    }
}
