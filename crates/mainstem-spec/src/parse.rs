//! Reads one file's text to a spec, or to all its errors.

use std::{collections::HashMap, path::Path};

use crate::{
    AgentSpec, Dialect, FindingKind, Origin, Position, SpecError,
    front_matter::{self, FrontMatter},
    node::{Entry, Node, Value},
    repair, rules, toml,
};

mod foreign;
mod key;

pub(crate) use key::{Read, obey};

/// A file without errors.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Parsed {
    /// The declared agent.
    pub spec: AgentSpec,
    /// The warnings, in the order of the file.
    pub warnings: Vec<SpecError>,
    /// The product that the file is for, by its path or its keys.
    pub dialect: Dialect,
    /// Whether the file disables its agent; loaders leave it out.
    pub disabled: bool,
    places: Vec<(&'static str, Position)>,
    items: Vec<Item>,
}

/// A key, a name that its value lists, and where.
type Item = (&'static str, String, Position);

impl Parsed {
    /// Returns the place of a key's value in the file, under our name of the key, such as `steps`;
    /// `None` if the file does not set it.
    #[must_use]
    pub fn place(&self, key: &str) -> Option<Position> {
        self.places.iter().find(|(name, _)| *name == key).map(|(_, at)| *at)
    }

    /// Returns the place of a name listed under a key, such as `read_file` under `tools`, or of the
    /// key.
    #[must_use]
    pub fn place_of(&self, key: &str, name: Option<&str>) -> Option<Position> {
        let is_meant = |(of, item, _): &&Item| *of == key && Some(item.as_str()) == name;
        self.items.iter().find(is_meant).map(|(_, _, at)| *at).or_else(|| self.place(key))
    }
}

/// Reads the text of one file. Pure: `path` is only named in findings and as the spec's origin.
///
/// `id` is the file's name without `.md`, `.agent.md` or `.toml`. Line breaks in the
/// prompt become `\n`. A file of another product is translated, with a warning for each key and
/// name that has another meaning here, or none.
///
/// ```
/// use std::path::Path;
///
/// let text = "---\ndescription: Reviews code\ntools: read_file, grep\n---\nBe brief.\n";
/// let parsed = mainstem_spec::parse("reviewer", text, Path::new("reviewer.md")).unwrap();
/// assert_eq!(parsed.spec.tools.unwrap(), ["read_file", "grep"]);
/// assert_eq!(parsed.spec.prompt, "Be brief.");
/// ```
///
/// # Errors
/// Everything found, errors and warnings, in the order of the file. YAML that can't be read at
/// all is one error; past that, each wrong value is one.
pub fn parse(id: &str, text: &str, path: &Path) -> Result<Parsed, Vec<SpecError>> {
    let mut reader = Reader::new(id, path);
    if let Err(error) = reader.file(text, path) {
        reader.found.push(error);
    }
    let mut found: Vec<_> = reader.found.into_iter().map(|error| error.in_file(path)).collect();
    found.sort_by_key(|error| error.position);
    if found.iter().any(SpecError::is_error) {
        return Err(found);
    }
    let Reader { spec, dialect, disabled, places, items, .. } = reader;
    Ok(Parsed { spec, warnings: found, dialect, disabled, places, items })
}

/// A key with its section, such as `workspace.mode`.
pub(crate) type Keyed<'a> = (String, &'a Entry);

/// The spec that is being read, and the findings so far.
pub(crate) struct Reader {
    pub(crate) spec: AgentSpec,
    found: Vec<SpecError>,
    dialect: Dialect,
    disabled: bool,
    places: Vec<(&'static str, Position)>,
    items: Vec<Item>,
    /// The value of `prompt`; the text below the front matter wins over it.
    prompt: Option<(Position, String)>,
    invocation: foreign::Invocation,
}

impl Reader {
    fn new(id: &str, path: &Path) -> Self {
        Self {
            spec: AgentSpec::new(id, "").with_origin(Origin::File(path.to_owned())),
            found: Vec::new(),
            dialect: Dialect::of_path(path).unwrap_or_default(),
            disabled: false,
            places: Vec::new(),
            items: Vec::new(),
            prompt: None,
            invocation: foreign::Invocation::default(),
        }
    }

    fn file(&mut self, text: &str, path: &Path) -> Result<(), SpecError> {
        self.id()?;
        let root = if path.extension().is_some_and(|extension| extension == "toml") {
            toml::read(text)?
        } else {
            let FrontMatter { yaml, body } = front_matter::split(text)?;
            self.spec.prompt = body.replace("\r\n", "\n").trim_start_matches('\n').trim_end().to_owned();
            let (root, repairs) = repair::read(yaml)?;
            self.found.extend(repairs);
            root
        };
        let keys = match &root.value {
            Value::Null => Vec::new(),
            _ => flatten(root.entries()?),
        };
        self.dialect = Dialect::of(path, &keys);
        self.repeated(keys.iter().map(|(key, entry)| (key.as_str(), entry.at)));
        self.keys(&keys);
        self.invoked();
        self.prompted();
        self.together(&keys);
        Ok(())
    }

    /// Checks the id; other products allow any file name.
    fn id(&mut self) -> Result<(), SpecError> {
        let Err(message) = rules::id(&self.spec.id) else { return Ok(()) };
        let nearest = rules::nearest_id(&self.spec.id);
        match nearest {
            Some(id) if self.dialect != Dialect::Mainstem => {
                self.warn("name", Position::START, format!("{message}; it is called {id:?} here"));
                self.spec.id = id;
                Ok(())
            }
            nearest => Err(SpecError::error(message).with_suggestion(nearest.as_deref())),
        }
    }

    /// Checks that need all keys.
    fn together(&mut self, keys: &[Keyed<'_>]) {
        let place = |key: &str| keys.iter().find(|(name, _)| name == key).map(|(_, entry)| entry.at);
        if place("description").is_none() {
            let message = "the description is missing: say what the agent is for, the model chooses by it";
            self.found.push(SpecError::error(message).about("description").at(Position::START));
        }
        let url = place("url").filter(|_| self.spec.url.is_some());
        let path = place("workspace.path").filter(|_| self.spec.workspace.path.is_some());
        if let (Some(at), Some(_)) = (url, path) {
            self.found.push(SpecError::conflict("url", "workspace.path").at(at));
        }
        if let Some(at) = url.filter(|_| !self.spec.prompt.is_empty()) {
            self.spec.prompt.clear();
            self.warn("url", at, "the prompt below is ignored, because url brings its own");
        }
        if let (Some(at), Err(message)) = (place("thinking_budget"), rules::thinking_budget(&self.spec)) {
            self.found.push(SpecError::error(message).about("thinking_budget").at(at));
        }
        for (key, ignored) in [("protocol", "a protocol is"), ("headers", "headers are")] {
            if let Some(at) = place(key).filter(|_| place("url").is_none()) {
                self.warn(key, at, format!("{ignored} ignored without a url"));
            }
        }
    }

    /// Reports keys that are given twice in one mapping.
    fn repeated<'a>(&mut self, keys: impl Iterator<Item = (&'a str, Position)>) {
        let mut first = HashMap::new();
        for (key, at) in keys {
            if let Some(line) = first.insert(key, at.line) {
                let message = format!("{key:?} is given twice, before on line {line}");
                self.found.push(SpecError::error(message).about(key).at(at));
            }
        }
    }

    fn repeated_within(&mut self, node: &Node) {
        match &node.value {
            Value::List(items) => items.iter().for_each(|item| self.repeated_within(item)),
            Value::Map(entries) => {
                self.repeated(entries.iter().map(|entry| (entry.key.as_str(), entry.at)));
                entries.iter().for_each(|entry| self.repeated_within(&entry.node));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Text(_) => {}
        }
    }

    fn warn(&mut self, key: &str, at: Position, message: impl Into<String>) {
        self.found.push(SpecError::warning(message).of_kind(FindingKind::Interpreted).about(key).at(at));
    }
}

/// `workspace: {mode: …}` and `workspace.mode: …` are the same key.
fn flatten(entries: &[Entry]) -> Vec<Keyed<'_>> {
    let mut keys = Vec::new();
    for entry in entries {
        match &entry.node.value {
            Value::Map(inner) if entry.key == "workspace" => {
                keys.extend(inner.iter().map(|entry| (format!("workspace.{}", entry.key), entry)));
            }
            _ => keys.push((entry.key.clone(), entry)),
        }
    }
    keys
}

#[cfg(test)]
mod tests;
