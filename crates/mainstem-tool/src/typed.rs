//! A function as a tool.

use std::{
    fmt,
    future::{Future, ready},
    marker::PhantomData,
};

use async_trait::async_trait;
use futures_util::{FutureExt, future::BoxFuture};
use mainstem_message::ToolSpec;
use mainstem_schema::misread;
use schemars::{JsonSchema, generate::SchemaSettings};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::{Tool, ToolContext, ToolError, ToolOutput};

/// Makes a tool of a function; the schema is that of its argument type, whose doc comments models
/// read.
///
/// The function gets the context and the arguments, and returns anything that converts to a
/// [`ToolOutput`] (text, [`Json`](crate::Json), blocks), or any error. See the [crate] for an
/// example. The argument type is a struct, or `()` for a tool without parameters.
///
/// ```
/// use mainstem_tool::{Tool, ToolError, tool_fn};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Search {
///     /// What to look for.
///     query: String,
/// }
///
/// let search = tool_fn("search", "Searches the corpus", |_cx, Search { query }| async move {
///     Ok::<_, ToolError>(format!("nothing about {query}"))
/// });
/// assert_eq!(search.spec().parameters["properties"]["query"]["description"], "What to look for.");
/// ```
pub fn tool_fn<A, F, Fut, O, E>(
    name: impl Into<String>,
    description: impl Into<String>,
    f: F,
) -> TypedTool<A, F>
where
    A: DeserializeOwned + JsonSchema + Send + 'static,
    F: Fn(ToolContext, A) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<O, E>> + Send + 'static,
    O: Into<ToolOutput>,
    E: Into<ToolError>,
{
    let schema = schema_of::<A>();
    let takes_nothing = schema["type"] == "null";
    let schema = if takes_nothing { json!({ "type": "object", "properties": {} }) } else { schema };
    TypedTool {
        spec: ToolSpec::new(name, description, schema),
        takes_nothing,
        read_only: false,
        exclusive: false,
        polled: false,
        lasting: false,
        f,
        arguments: PhantomData,
    }
}

/// Returns the schema of an argument type as models get it: in one piece, without references.
///
/// ```
/// use mainstem_tool::schema_of;
///
/// #[derive(schemars::JsonSchema)]
/// struct Search {
///     query: String,
/// }
/// assert_eq!(schema_of::<Search>()["required"][0], "query");
/// ```
pub fn schema_of<A: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<A>();
    schema.remove("title");
    schema.into()
}

/// The tool that [`tool_fn`] returns.
pub struct TypedTool<A, F> {
    spec: ToolSpec,
    /// Whether the argument type is `()`.
    takes_nothing: bool,
    read_only: bool,
    exclusive: bool,
    polled: bool,
    lasting: bool,
    f: F,
    arguments: PhantomData<fn(A)>,
}

impl<A, F> TypedTool<A, F> {
    /// Sets whether it is [read-only](Tool::is_read_only); not by default.
    #[must_use]
    pub fn with_read_only(mut self, is_read_only: bool) -> Self {
        self.read_only = is_read_only;
        self
    }

    /// Sets whether it is [polled](Tool::is_polled); not by default.
    #[must_use]
    pub fn with_polled(mut self, is_polled: bool) -> Self {
        self.polled = is_polled;
        self
    }

    /// Sets whether its results are [lasting](Tool::is_lasting); not by default.
    #[must_use]
    pub fn with_lasting(mut self, is_lasting: bool) -> Self {
        self.lasting = is_lasting;
        self
    }

    /// Sets whether it is [exclusive](Tool::is_exclusive); not by default.
    #[must_use]
    pub fn with_exclusive(mut self, is_exclusive: bool) -> Self {
        self.exclusive = is_exclusive;
        self
    }
}

#[async_trait]
impl<A, F, Fut, O, E> Tool for TypedTool<A, F>
where
    A: DeserializeOwned + JsonSchema + Send + 'static,
    F: Fn(ToolContext, A) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<O, E>> + Send + 'static,
    O: Into<ToolOutput>,
    E: Into<ToolError>,
{
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    fn is_read_only(&self) -> bool {
        self.read_only
    }

    fn is_exclusive(&self) -> bool {
        self.exclusive
    }

    fn is_polled(&self) -> bool {
        self.polled
    }

    fn is_lasting(&self) -> bool {
        self.lasting
    }

    // Spelled out, so that the box has only the function's own future.
    fn call<'life0, 'life1, 'async_trait>(
        &'life0 self,
        cx: &'life1 ToolContext,
        arguments: Value,
    ) -> BoxFuture<'async_trait, Result<ToolOutput, ToolError>>
    where
        'life0: 'async_trait,
        'life1: 'async_trait,
        Self: 'async_trait,
    {
        match self.read(arguments) {
            Ok(arguments) => {
                let call = (self.f)(cx.clone(), arguments);
                Box::pin(call.map(|result| result.map(Into::into).map_err(Into::into)))
            }
            Err(error) => Box::pin(ready(Err(error))),
        }
    }
}

impl<A: DeserializeOwned, F> TypedTool<A, F> {
    fn read(&self, arguments: Value) -> Result<A, ToolError> {
        // Models pass an object without members.
        let arguments = if self.takes_nothing { Value::Null } else { arguments };
        serde_path_to_error::deserialize(arguments).map_err(|error| {
            let pointer = pointer(error.path());
            let place = if pointer.is_empty() { "arguments".to_owned() } else { format!("at {pointer}") };
            ToolError::new(format!(
                "the arguments of {} can't be read: {place}: {}",
                self.spec.name,
                misread(&error.inner().to_string(), "key")
            ))
        })
    }
}

/// Returns a path as a JSON pointer (RFC 6901).
fn pointer(path: &serde_path_to_error::Path) -> String {
    use serde_path_to_error::Segment;
    path.iter()
        .map(|segment| match segment {
            Segment::Seq { index } => format!("/{index}"),
            Segment::Map { key } => format!("/{}", key.replace('~', "~0").replace('/', "~1")),
            Segment::Enum { variant } => format!("/{variant}"),
            Segment::Unknown => "/?".to_owned(),
        })
        .collect()
}

impl<A, F> fmt::Debug for TypedTool<A, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TypedTool").field(&self.spec.name).finish()
    }
}

#[cfg(test)]
mod tests;
