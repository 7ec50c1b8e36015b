//! The declaration of one skill: instructions that a model reads when it needs them.

use std::path::Path;

use crate::{
    FindingKind, Origin, Position, SpecError,
    front_matter::{self, FrontMatter},
    node::{Entry, Node, Value},
    repair, rules,
    suggest::closest,
};

/// Instructions for one kind of task, in the public format Agent Skills: read from a folder's
/// `SKILL.md` by [`parse_skill`], or built in code.
///
/// ```
/// use mainstem_spec::Skill;
///
/// let description = "How changelogs are written here; read it before you write one";
/// let skill = Skill::new("changelog", description, "Newest first.");
/// assert!(skill.validate().is_ok());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Skill {
    /// The name: `[a-z0-9][a-z0-9_-]*`.
    pub name: String,
    /// By which a model decides whether to read the rest.
    pub description: String,
    /// The instructions.
    pub body: String,
    /// The other files of its folder, as a path from the folder's workspace, such as
    /// `skills/pdf/forms.md`.
    pub files: Vec<String>,
    /// Where it was declared, which decides which declaration wins.
    pub origin: Origin,
}

/// The keys of a `SKILL.md` that are read; the format has more (`license`, `metadata`,
/// `allowed-tools`, …), which have no meaning here.
const KEYS: [&str; 2] = ["name", "description"];

impl Skill {
    /// A skill built in code.
    #[must_use]
    pub fn new(name: impl Into<String>, description: impl Into<String>, body: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            body: body.into(),
            files: Vec::new(),
            origin: Origin::Program,
        }
    }

    /// Sets where it was declared.
    #[must_use]
    pub fn with_origin(self, origin: Origin) -> Self {
        Self { origin, ..self }
    }

    /// Checks what the types can't: the name and the description.
    ///
    /// # Errors
    /// Everything that is wrong; each error names the skill and the key.
    pub fn validate(&self) -> Result<(), Vec<SpecError>> {
        let verdicts =
            [("name", rules::skill_name(&self.name)), ("description", description(&self.description))];
        let named = |message| SpecError::error(format!("skill {:?}: {message}", self.name));
        let errors: Vec<_> = verdicts
            .into_iter()
            .filter_map(|(key, verdict)| Some(named(verdict.err()?).about(key)))
            .collect();
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }
}

/// Reads the text of one `SKILL.md`. Pure: `path` is only named in findings and as the skill's
/// origin.
///
/// `name` is that of the folder. Returns the skill and its warnings, in the order of the file.
///
/// ```
/// use std::path::Path;
///
/// let text = "---\nname: pdf\ndescription: Fills in PDF forms\nlicense: MIT\n---\nUse pdftk.\n";
/// let path = Path::new("skills/pdf/SKILL.md");
/// let (skill, warnings) = mainstem_spec::parse_skill("pdf", text, path).unwrap();
/// assert_eq!((skill.body.as_str(), warnings.len()), ("Use pdftk.", 0));
/// ```
///
/// # Errors
/// Everything found, errors and warnings, in the order of the file.
pub fn parse_skill(name: &str, text: &str, path: &Path) -> Result<(Skill, Vec<SpecError>), Vec<SpecError>> {
    let skill = Skill::new(name, "", "").with_origin(Origin::File(path.to_owned()));
    let mut reader = Reader { skill, found: Vec::new() };
    if let Err(error) = reader.file(text) {
        reader.found.push(error);
    }
    let Reader { skill, found } = reader;
    let mut found: Vec<_> = found.into_iter().map(|error| error.in_file(path)).collect();
    found.sort_by_key(|error| error.position);
    if found.iter().any(SpecError::is_error) { Err(found) } else { Ok((skill, found)) }
}

/// A skill under way, and what was found so far.
struct Reader {
    skill: Skill,
    found: Vec<SpecError>,
}

impl Reader {
    fn file(&mut self, text: &str) -> Result<(), SpecError> {
        rules::skill_name(&self.skill.name).map_err(|message| {
            let meant = rules::nearest_id(&self.skill.name);
            SpecError::error(message).at(Position::START).with_suggestion(meant.as_deref())
        })?;
        let FrontMatter { yaml, body } = front_matter::split(text)?;
        self.skill.body = body.replace("\r\n", "\n").trim_start_matches('\n').trim_end().to_owned();
        let (root, repairs) = repair::read(yaml)?;
        self.found.extend(repairs);
        let entries = if matches!(root.value, Value::Null) { &[] } else { root.entries()? };
        for (index, entry) in entries.iter().enumerate() {
            self.key(entry, entries[..index].iter().find(|earlier| earlier.key == entry.key));
        }
        self.together(entries);
        Ok(())
    }

    fn key(&mut self, entry: &Entry, earlier: Option<&Entry>) {
        if let Some(earlier) = earlier {
            let message = format!("{:?} is given twice, before on line {}", entry.key, earlier.at.line);
            self.found.push(SpecError::error(message).about(&entry.key).at(entry.at));
            return;
        }
        let done = match &*entry.key {
            "name" => self.name(&entry.node),
            "description" => self.description(&entry.node),
            other => {
                let meant = closest(other, KEYS);
                let warning = SpecError::warning(format!("unknown key {other:?}"));
                let warning = warning.of_kind(FindingKind::UnknownKey).about(other).at(entry.at);
                self.found.extend(meant.map(|_| warning.with_suggestion(meant)));
                Ok(())
            }
        };
        if let Err(error) = done {
            // An absent value has no place of its own.
            let at = if matches!(entry.node.value, Value::Null) { Some(entry.at) } else { error.position };
            self.found.push(SpecError { position: at, ..error.about(&entry.key) });
        }
    }

    fn name(&mut self, node: &Node) -> Result<(), SpecError> {
        let name = node.text()?;
        if name != self.skill.name {
            let message = format!("the skill is called {:?} after its folder, not {name:?}", self.skill.name);
            self.found.push(
                SpecError::warning(message).of_kind(FindingKind::Interpreted).about("name").at(node.at),
            );
        }
        Ok(())
    }

    fn description(&mut self, node: &Node) -> Result<(), SpecError> {
        let text = node.text()?;
        description(text).map_err(|message| node.error(message))?;
        text.trim().clone_into(&mut self.skill.description);
        Ok(())
    }

    /// Checks that need the whole file.
    fn together(&mut self, entries: &[Entry]) {
        if entries.iter().all(|entry| entry.key != "description") {
            let message = "the description is missing: say when to use the skill, the model chooses by it";
            self.found.push(SpecError::error(message).about("description").at(Position::START));
        }
        if self.skill.body.is_empty() {
            self.found.push(SpecError::warning("there are no instructions below the front matter"));
        }
    }
}

fn description(description: &str) -> rules::Verdict {
    if description.trim().is_empty() {
        return Err("the description is empty: say when to use the skill, the model chooses by it".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests;
