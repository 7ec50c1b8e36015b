//! The tools of an agent.

use std::{fmt, sync::Arc};

use futures_util::future::join_all;
use mainstem_message::ToolSpec;
use mainstem_schema::Schema;
use serde_json::Value;

use crate::{Tool, ToolError, ToolSource};

/// Tools by name, in the order in which they were added, and after them those of sources, as they
/// are at the moment. Cheap to clone; checks arguments against schemas compiled once.
#[derive(Clone, Default)]
pub struct ToolSet {
    entries: Vec<Arc<Entry>>,
    specs: Arc<[ToolSpec]>,
    sources: Vec<Part>,
}

struct Entry {
    spec: ToolSpec,
    schema: Schema,
    tool: Arc<dyn Tool>,
}

/// A source, or some of it.
#[derive(Clone)]
struct Part {
    source: Arc<dyn ToolSource>,
    passes: Arc<Passes>,
}

type Passes = dyn Fn(&str) -> bool + Send + Sync;

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
        self.push(tool)?;
        self.renew_specs();
        Ok(())
    }

    /// Adds all that can join, and says what is wrong with the others.
    pub fn insert_all(&mut self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Vec<ToolSetError> {
        let errors = tools.into_iter().filter_map(|tool| self.push(tool).err()).collect();
        self.renew_specs();
        errors
    }

    fn push(&mut self, tool: Arc<dyn Tool>) -> Result<(), ToolSetError> {
        let spec = tool.spec();
        if self.own(&spec.name).is_some() {
            return Err(ToolSetError::Duplicate(spec.name));
        }
        let schema = Schema::compile(spec.parameters.clone())
            .map_err(|error| ToolSetError::Schema { name: spec.name.clone(), message: error.to_string() })?;
        self.entries.push(Arc::new(Entry { spec, schema, tool }));
        Ok(())
    }

    /// Adds what comes from a source, now and later. A tool of the set, or of an earlier source,
    /// stands before one of the same name.
    pub fn insert_source(&mut self, source: Arc<dyn ToolSource>) {
        self.sources.push(Part { source, passes: Arc::new(|_| true) });
    }

    /// The tools whose name passes, in the same order; those of sources are asked about as they
    /// come.
    #[must_use]
    pub fn filtered(&self, passes: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        let passes: Arc<Passes> = Arc::new(passes);
        let entries = self.entries.iter().filter(|entry| passes(&entry.spec.name)).cloned().collect();
        let sources = self.sources.iter().map(|part| part.narrowed(&passes)).collect();
        let mut set = Self { entries, specs: Arc::default(), sources };
        set.renew_specs();
        set
    }

    fn renew_specs(&mut self) {
        self.specs = self.entries.iter().map(|entry| entry.spec.clone()).collect();
    }

    /// Waits for the sources: see [`ToolSource::ready`].
    pub async fn ready(&self) {
        if !self.sources.is_empty() {
            join_all(self.sources.iter().map(|part| part.source.ready())).await;
        }
    }

    /// The tool of that name.
    pub fn get(&self, name: &str) -> Option<Arc<dyn Tool>> {
        self.entry(name).map(|entry| entry.tool.clone())
    }

    fn entry(&self, name: &str) -> Option<Arc<Entry>> {
        let of_source = || self.sources.iter().find_map(|part| part.entry(name));
        self.own(name).cloned().or_else(of_source)
    }

    fn own(&self, name: &str) -> Option<&Arc<Entry>> {
        self.entries.iter().find(|entry| entry.spec.name == name)
    }

    /// The tool that a model called, if there is one and the arguments fit; and the arguments, in
    /// which numbers and booleans that were sent as text are what the tool asks for.
    ///
    /// # Errors
    /// A sentence for the model: which tools there are, or what is wrong with the arguments and
    /// where.
    pub fn resolve(&self, name: &str, arguments: Value) -> Result<(Arc<dyn Tool>, Value), ToolError> {
        let entry = self.entry(name).ok_or_else(|| {
            let known: Vec<_> = self.names().collect();
            ToolError::new(format!("unknown tool {name:?}; known: {}", known.join(", ")))
        })?;
        let misfit = |problems| ToolError::new(format!("the arguments of {name} don't fit:{problems}"));
        let arguments = entry.schema.fit(arguments, "arguments").map_err(misfit)?;
        Ok((entry.tool.clone(), arguments))
    }

    /// What a model is told about them.
    pub fn specs(&self) -> Arc<[ToolSpec]> {
        if self.sources.is_empty() {
            return self.specs.clone();
        }
        let mut specs = self.specs.to_vec();
        for part in &self.sources {
            for entry in part.entries() {
                if specs.iter().all(|spec| spec.name != entry.spec.name) {
                    specs.push(entry.spec.clone());
                }
            }
        }
        specs.into()
    }

    /// Their names.
    pub fn names(&self) -> impl Iterator<Item = String> {
        self.specs().iter().map(|spec| spec.name.clone()).collect::<Vec<_>>().into_iter()
    }

    /// Whether a tool of that name is there, or may be once its source has it.
    pub fn may_have(&self, name: &str) -> bool {
        self.own(name).is_some() || self.source_of(name).is_some()
    }

    /// The source that a tool of that name comes from, unless it is one of the set's own.
    pub fn source_of(&self, name: &str) -> Option<&Arc<dyn ToolSource>> {
        if self.own(name).is_some() {
            return None;
        }
        self.sources
            .iter()
            .find(|part| part.source.owns(name) && (part.passes)(name))
            .map(|part| &part.source)
    }

    /// Where the other tools come from.
    pub fn sources(&self) -> impl Iterator<Item = &Arc<dyn ToolSource>> {
        self.sources.iter().map(|part| &part.source)
    }
}

impl Part {
    fn narrowed(&self, passes: &Arc<Passes>) -> Self {
        let (first, second) = (self.passes.clone(), passes.clone());
        let source = self.source.clone();
        Self { source, passes: Arc::new(move |name| first(name) && second(name)) }
    }

    fn entry(&self, name: &str) -> Option<Arc<Entry>> {
        (self.passes)(name).then(|| self.source.tools().own(name).cloned())?
    }

    fn entries(&self) -> impl Iterator<Item = Arc<Entry>> {
        let entries = self.source.tools().entries.into_iter();
        entries.filter(|entry| (self.passes)(&entry.spec.name))
    }
}

impl fmt::Debug for ToolSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}

#[cfg(test)]
mod tests;
