//! Checks of a spec that is built in code.

use super::AgentSpec;
use crate::{Key, SpecError, rules};

impl AgentSpec {
    /// Checks what the types can't: the id, a description, numbers in range, room for an answer
    /// beside thinking, and that at most one of prompt, workspace path and url is set.
    ///
    /// # Errors
    /// Everything that is wrong; each error names the agent and the key.
    pub fn validate(&self) -> Result<(), Vec<SpecError>> {
        let values = self.broken_rules().into_iter();
        let errors: Vec<_> = values.chain(self.conflicts()).map(|error| self.named(error)).collect();
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }

    fn broken_rules(&self) -> Vec<SpecError> {
        Key::all().flat_map(|key| key.check(self)).collect()
    }

    fn conflicts(&self) -> impl Iterator<Item = SpecError> {
        let url = self.url.is_some().then_some("url");
        let path = self.workspace.path.is_some().then_some("workspace.path");
        let prompt = (!self.prompt.is_empty()).then_some("prompt");
        let pairs = [(url, path), (url, prompt), (path, prompt)];
        let conflicts = pairs.into_iter().filter_map(|(one, other)| Some(SpecError::conflict(one?, other?)));
        let room = rules::thinking_budget(self).err();
        conflicts.chain(room.map(|why| SpecError::error(why).about("thinking_budget")))
    }

    fn named(&self, error: SpecError) -> SpecError {
        SpecError { message: format!("agent {:?}: {}", self.id, error.message), ..error }
    }
}
