//! The versions of declarations: what a session records of the specs that its children were spawned
//! as, and restores them from.

use std::sync::Arc;

use dashmap::DashMap;
use mainstem_react::Declaration;
use mainstem_spec::AgentSpec;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::catalog::{CatalogAgent, CatalogEntry};

/// The declarations that children of this process were spawned as.
#[derive(Debug, Default)]
pub(crate) struct Versions {
    by_version: DashMap<String, Arc<Declaration>>,
    /// The same by spec, because a spec is written and hashed once, not for each of a thousand
    /// children.
    by_spec: DashMap<SpecKey, (Arc<AgentSpec>, Arc<Declaration>)>,
}

/// The address of a spec, which its entry keeps, and whether the agent is one of code.
type SpecKey = (usize, bool);

/// The most specs by address; reloaded and generated ones come anew.
const MOST: usize = 1_024;

impl Versions {
    /// Returns the declaration that a child records when it starts; `None` if it can't be written
    /// as JSON, because its directory's name is not Unicode.
    pub(crate) fn declaration(&self, entry: &CatalogEntry) -> Option<Arc<Declaration>> {
        let is_code = matches!(entry.agent, CatalogAgent::Code(_));
        let key = (Arc::as_ptr(&entry.spec).addr(), is_code);
        if let Some(known) = self.by_spec.get(&key) {
            return Some(known.1.clone());
        }
        let (version, json) = version(&entry.spec)?;
        let new = || match is_code {
            true => Arc::new(Declaration::of_code(version.as_str())),
            false => Arc::new(Declaration::new(version.as_str(), json)),
        };
        let declaration = self.by_version.entry(version.clone()).or_insert_with(new).clone();
        if self.by_spec.len() >= MOST {
            self.by_spec.clear();
        }
        self.by_spec.insert(key, (entry.spec.clone(), declaration.clone()));
        Some(declaration)
    }
}

/// Returns the version of a declaration, the first half of the SHA-256 of its JSON in hex, and the
/// declaration as it is recorded.
pub(crate) fn version(spec: &AgentSpec) -> Option<(String, Value)> {
    let json = serde_json::to_value(spec).ok()?;
    let hash = Sha256::digest(json.to_string());
    let version = hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    Some((version, json))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_of_all_that_is_recorded() {
        let spec = || AgentSpec::new("a", "Does things").with_prompt("Do.");
        let of = |spec: AgentSpec| version(&spec).unwrap().0;
        assert_eq!(of(spec()), of(spec()));
        assert_eq!(of(spec()).len(), 16);
        for other in [spec().with_prompt("Do it."), spec().with_steps(3), spec().with_tools(["x"])] {
            assert_ne!(of(other), of(spec()));
        }
    }
}
