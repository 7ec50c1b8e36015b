//! The tools of an agent.

use std::{fmt, sync::Arc};

use futures_util::future::join_all;
use mainstem_message::ToolSpec;
use mainstem_schema::Schema;
use serde_json::Value;

use crate::{Tool, ToolError, ToolSource};

/// The tools of an agent and the present tools of sources, in the order of their names, so that
/// every prompt begins alike and a vendor's cache holds it. Cheap to clone; checks arguments
/// against schemas that are compiled once.
///
/// ```
/// use std::sync::Arc;
///
/// use mainstem_tool::{ToolError, ToolSet, tool_fn};
/// use serde_json::json;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Double {
///     n: i64,
/// }
///
/// let double = tool_fn("double", "Doubles", |_cx, Double { n }| async move {
///     Ok::<_, ToolError>((2 * n).to_string())
/// });
/// let mut tools = ToolSet::new();
/// tools.insert(Arc::new(double))?;
/// assert!(tools.resolve("double", json!({ "n": "two" })).is_err());
/// # Ok::<(), mainstem_tool::ToolSetError>(())
/// ```
#[derive(Clone, Default)]
pub struct ToolSet {
    /// In the order of their names.
    entries: Vec<Arc<Entry>>,
    specs: Arc<[ToolSpec]>,
    sources: Vec<Part>,
}

struct Entry {
    spec: ToolSpec,
    schema: Schema,
    tool: Arc<dyn Tool>,
}

/// A source, or a filtered part of one.
#[derive(Clone)]
struct Part {
    source: Arc<dyn ToolSource>,
    passes: Arc<Passes>,
}

type Passes = dyn Fn(&str) -> bool + Send + Sync;

/// Why a tool can't be added to a set.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToolSetError {
    /// The set has a tool of that name.
    #[error("two tools are named {0:?}; rename one")]
    Duplicate(String),
    /// Vendors refuse its name: they take 1 to 64 letters of a-z and A-Z, digits, `_` and `-`.
    #[error("a tool can't be named {0:?}; use 1 to 64 letters of a-z and A-Z, digits, _ and -")]
    Name(String),
    /// Its parameters are not an object, which vendors refuse.
    #[error(
        "the parameters of tool {0:?} are not an object, as vendors require; a function takes a struct, or () for none"
    )]
    NotAnObject(String),
    /// Its schema is not a JSON Schema.
    #[error("the schema of tool {name:?} is not valid: {message}")]
    #[non_exhaustive]
    Schema {
        /// The tool.
        name: String,
        /// What is wrong with the schema.
        message: String,
    },
}

/// Returns `true` for a name that all vendors take.
fn is_name(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (1..=64).contains(&name.len()) && name.bytes().all(is_allowed)
}

impl ToolSet {
    /// Creates an empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tool.
    ///
    /// # Errors
    /// If the name is taken or not valid, or the schema is not valid, or not that of an object.
    pub fn insert(&mut self, tool: Arc<dyn Tool>) -> Result<(), ToolSetError> {
        self.push(tool)?;
        self.renew_specs();
        Ok(())
    }

    /// Adds the tools that are valid, and returns the errors of the others.
    pub fn insert_all(&mut self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Vec<ToolSetError> {
        let errors = tools.into_iter().filter_map(|tool| self.push(tool).err()).collect();
        self.renew_specs();
        errors
    }

    fn push(&mut self, tool: Arc<dyn Tool>) -> Result<(), ToolSetError> {
        let spec = tool.spec();
        if !is_name(&spec.name) {
            return Err(ToolSetError::Name(spec.name));
        }
        let Err(place) = self.place(&spec.name) else { return Err(ToolSetError::Duplicate(spec.name)) };
        let schema = Schema::compile(spec.parameters.clone())
            .map_err(|error| ToolSetError::Schema { name: spec.name.clone(), message: error.to_string() })?;
        if spec.parameters.get("type").is_some_and(|kind| kind != "object") {
            return Err(ToolSetError::NotAnObject(spec.name));
        }
        self.entries.insert(place, Arc::new(Entry { spec, schema, tool }));
        Ok(())
    }

    /// Adds the present and later tools of a source. A tool of the set, or of an earlier source,
    /// hides one of the same name.
    pub fn insert_source(&mut self, source: Arc<dyn ToolSource>) {
        self.sources.push(Part { source, passes: Arc::new(|_| true) });
    }

    /// Returns the tools whose name passes; the filter applies to later tools of sources, too.
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

    /// Returns the tool of that name.
    pub fn get(&self, name: &str) -> Option<Arc<dyn Tool>> {
        self.entry(name).map(|entry| entry.tool.clone())
    }

    fn entry(&self, name: &str) -> Option<Arc<Entry>> {
        let of_source = || self.sources.iter().find_map(|part| part.entry(name));
        self.own(name).cloned().or_else(of_source)
    }

    fn own(&self, name: &str) -> Option<&Arc<Entry>> {
        self.place(name).ok().map(|place| &self.entries[place])
    }

    /// Returns the place of a tool of the set's own, or where it would be inserted.
    fn place(&self, name: &str) -> Result<usize, usize> {
        self.entries.binary_search_by(|entry| entry.spec.name.as_str().cmp(name))
    }

    /// Returns the tool that a model called, and the arguments, in which numbers and booleans that
    /// were sent as text are converted to the types of the schema.
    ///
    /// # Errors
    /// A sentence for the model: the known tools, or the problems of the arguments with their
    /// places.
    pub fn resolve(&self, name: &str, arguments: Value) -> Result<(Arc<dyn Tool>, Value), ToolError> {
        let entry = self.entry(name).ok_or_else(|| {
            let known: Vec<_> = self.names().collect();
            ToolError::new(format!("unknown tool {name:?}; known: {}", known.join(", ")))
        })?;
        let misfit = |problems| ToolError::new(format!("the arguments of {name} don't fit:{problems}"));
        let arguments = entry.schema.fit(arguments, "arguments").map_err(misfit)?;
        Ok((entry.tool.clone(), arguments))
    }

    /// Returns the specs of the tools in the order of their names, for a model.
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
        specs.sort_by(|one, other| one.name.cmp(&other.name));
        specs.into()
    }

    /// Returns the names of the tools, in order.
    pub fn names(&self) -> impl Iterator<Item = String> {
        self.specs().iter().map(|spec| spec.name.clone()).collect::<Vec<_>>().into_iter()
    }

    /// Returns `true` if the set has a tool of that name, or may have it once its source has it.
    pub fn may_have(&self, name: &str) -> bool {
        self.own(name).is_some() || self.source_of(name).is_some()
    }

    /// Returns the source of a tool; `None` for the set's own.
    pub fn source_of(&self, name: &str) -> Option<&Arc<dyn ToolSource>> {
        if self.own(name).is_some() {
            return None;
        }
        self.sources
            .iter()
            .find(|part| part.source.owns(name) && (part.passes)(name))
            .map(|part| &part.source)
    }

    /// Returns the sources.
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
