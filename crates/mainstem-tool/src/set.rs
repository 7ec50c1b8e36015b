//! The tools of an agent.

use std::{fmt, sync::Arc};

use jsonschema::Validator;
use mainstem_message::ToolSpec;
use serde_json::Value;

use crate::{Tool, ToolError, arguments};

/// Tools by name, in the order in which they were added. Cheap to clone; checks arguments against schemas compiled once.
#[derive(Clone, Default)]
pub struct ToolSet {
    entries: Vec<Arc<Entry>>,
    specs: Arc<[ToolSpec]>,
}

struct Entry {
    spec: ToolSpec,
    schema: Validator,
    tool: Arc<dyn Tool>,
}

/// Why a tool can't join a set.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToolSetError {
    /// There is one of that name.
    #[error("two tools are named {0:?}; rename one")]
    Duplicate(String),
    /// Its schema is not a JSON Schema.
    #[error("the schema of tool {name:?} is not valid: {message}")]
    Schema {
        /// The tool.
        name: String,
        /// What is wrong with it.
        message: String,
    },
}

impl ToolSet {
    /// No tools.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tool.
    ///
    /// # Errors
    /// A name that is taken, or a schema that is none.
    pub fn insert(&mut self, tool: Arc<dyn Tool>) -> Result<(), ToolSetError> {
        let spec = tool.spec();
        if self.get(&spec.name).is_some() {
            return Err(ToolSetError::Duplicate(spec.name));
        }
        let schema = jsonschema::validator_for(&spec.parameters)
            .map_err(|error| ToolSetError::Schema { name: spec.name.clone(), message: error.to_string() })?;
        self.entries.push(Arc::new(Entry { spec, schema, tool }));
        self.renew_specs();
        Ok(())
    }

    /// The tools whose name passes, in the same order.
    #[must_use]
    pub fn filtered(&self, passes: impl Fn(&str) -> bool) -> Self {
        let entries = self.entries.iter().filter(|entry| passes(&entry.spec.name)).cloned().collect();
        let mut set = Self { entries, specs: Arc::default() };
        set.renew_specs();
        set
    }

    fn renew_specs(&mut self) {
        self.specs = self.entries.iter().map(|entry| entry.spec.clone()).collect();
    }

    /// The tool of that name.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.entry(name).map(|entry| &entry.tool)
    }

    fn entry(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.spec.name == name).map(|entry| &**entry)
    }

    /// The tool that a model called, if there is one and the arguments fit.
    ///
    /// # Errors
    /// A sentence for the model: which tools there are, or what is wrong with the arguments and where.
    pub fn resolve(&self, name: &str, arguments: &Value) -> Result<&Arc<dyn Tool>, ToolError> {
        let entry = self.entry(name).ok_or_else(|| {
            let known: Vec<_> = self.names().collect();
            ToolError::new(format!("unknown tool {name:?}; known: {}", known.join(", ")))
        })?;
        arguments::check(name, &entry.schema, arguments)?;
        Ok(&entry.tool)
    }

    /// What a model is told about them.
    pub fn specs(&self) -> &Arc<[ToolSpec]> {
        &self.specs
    }

    /// Their names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|entry| &*entry.spec.name)
    }
}

impl fmt::Debug for ToolSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}

#[cfg(test)]
mod tests;
