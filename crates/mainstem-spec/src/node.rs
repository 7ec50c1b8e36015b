//! A value in a file, with its place, and its conversions.

use serde_json::{Map, Number, Value as Json};

use crate::{Position, SpecError, suggest::closest};

/// A YAML node, made by [`yaml`](crate::yaml) only.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) at: Position,
    pub(crate) value: Value,
}

#[derive(Debug)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

/// `key: value`.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) at: Position,
    pub(crate) node: Node,
}

type Read<T> = Result<T, SpecError>;

impl Node {
    pub(crate) fn text(&self) -> Read<&str> {
        match &self.value {
            Value::Text(text) => Ok(text),
            Value::Bool(_) | Value::Number(_) => Err(self.unlike("text", ": put it in quotes")),
            Value::Null | Value::List(_) | Value::Map(_) => Err(self.unlike("text", "")),
        }
    }

    pub(crate) fn flag(&self) -> Read<bool> {
        match &self.value {
            Value::Bool(flag) => Ok(*flag),
            Value::Text(text) => {
                let meant = match text.to_lowercase().as_str() {
                    "yes" | "y" | "on" | "true" => Some("true"),
                    "no" | "n" | "off" | "false" => Some("false"),
                    _ => None,
                };
                Err(self.unlike("true or false", "").with_suggestion(meant))
            }
            _ => Err(self.unlike("true or false", "")),
        }
    }

    pub(crate) fn number(&self) -> Read<f64> {
        self.numeric("a number")?.as_f64().ok_or_else(|| self.unlike("a number", ""))
    }

    pub(crate) fn whole<T: TryFrom<u64>>(&self) -> Read<T> {
        let expected = "a whole number";
        let number = self.numeric(expected)?;
        match number.as_u64().and_then(|number| T::try_from(number).ok()) {
            Some(whole) => Ok(whole),
            None if number.is_f64() => Err(self.unlike(expected, "")),
            None => Err(self.error(format!("the number {number} is out of range"))),
        }
    }

    fn numeric(&self, expected: &str) -> Read<&Number> {
        match &self.value {
            Value::Number(number) => Ok(number),
            Value::Text(text) if text.parse::<Number>().is_ok() => {
                Err(self.unlike(expected, ": remove the quotes"))
            }
            _ => Err(self.unlike(expected, "")),
        }
    }

    /// Returns the value of one of a few words.
    pub(crate) fn choice<T: Copy>(&self, choices: &[(&str, T)]) -> Read<T> {
        let words = || choices.iter().map(|(word, _)| *word);
        let expected = || words().map(|word| format!("{word:?}")).collect::<Vec<_>>().join(" or ");
        let text = self.text().map_err(|_| self.unlike(&expected(), ""))?;
        let choice = choices.iter().find(|(word, _)| *word == text);
        choice
            .map(|(_, choice)| *choice)
            .ok_or_else(|| self.unlike(&expected(), "").with_suggestion(closest(text, words())))
    }

    /// Returns the values of several of a few words: items of a list, or of a text with commas.
    pub(crate) fn choices<T: Copy>(&self, choices: &[(&str, T)]) -> Read<Vec<T>> {
        if let Value::List(items) = &self.value {
            return items.iter().map(|item| item.choice(choices)).collect();
        }
        let word = |name: String| Self { value: Value::Text(name), at: self.at };
        self.names()?.into_iter().map(|name| word(name).choice(choices)).collect()
    }

    /// Returns the items of a list, or of a text with commas. A comma in parentheses is part of a
    /// name.
    pub(crate) fn names(&self) -> Read<Vec<String>> {
        let names = match &self.value {
            Value::List(items) => items.iter().map(Self::text).collect::<Read<Vec<_>>>()?,
            Value::Text(text) => between_commas(text),
            _ => return Err(self.unlike("a list, or names with commas in between", "")),
        };
        let names = names.into_iter().map(str::trim).filter(|name| !name.is_empty());
        Ok(names.map(str::to_owned).collect())
    }

    /// Returns the names that it has, each with its place: items of a list, keys of a mapping,
    /// parts of a text with commas.
    pub(crate) fn named(&self) -> Vec<(String, Position)> {
        match &self.value {
            Value::Text(text) => {
                between_commas(text).into_iter().map(|name| (name.trim().to_owned(), self.at)).collect()
            }
            Value::List(items) => items.iter().flat_map(Self::named).collect(),
            Value::Map(entries) => entries.iter().map(|entry| (entry.key.clone(), entry.at)).collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
        }
    }

    pub(crate) fn entries(&self) -> Read<&[Entry]> {
        match &self.value {
            Value::Map(entries) => Ok(entries),
            _ => Err(self.unlike("a mapping of `key: value` lines", "")),
        }
    }

    pub(crate) fn json(&self) -> Json {
        match &self.value {
            Value::Null => Json::Null,
            Value::Bool(flag) => Json::Bool(*flag),
            Value::Number(number) => Json::Number(number.clone()),
            Value::Text(text) => Json::String(text.clone()),
            Value::List(items) => items.iter().map(Self::json).collect(),
            Value::Map(entries) => Json::Object(
                entries.iter().map(|entry| (entry.key.clone(), entry.node.json())).collect::<Map<_, _>>(),
            ),
        }
    }

    /// Returns an error at this node.
    pub(crate) fn error(&self, message: impl Into<String>) -> SpecError {
        SpecError::error(message).at(self.at)
    }

    fn unlike(&self, expected: &str, remedy: &str) -> SpecError {
        self.error(format!("expected {expected}, got {}{remedy}", self.kind()))
    }

    fn kind(&self) -> String {
        match &self.value {
            Value::Null => "nothing: give it a value or remove the key".to_owned(),
            Value::Bool(flag) => flag.to_string(),
            Value::Number(number) => format!("the number {number}"),
            Value::Text(text) if text.chars().count() > 40 => {
                format!("{:?} and so on", text.chars().take(40).collect::<String>())
            }
            Value::Text(text) => format!("{text:?}"),
            Value::List(_) => "a list".to_owned(),
            Value::Map(_) => "a mapping".to_owned(),
        }
    }
}

fn between_commas(text: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    text.split(|c: char| {
        depth = match c {
            '(' => depth + 1,
            ')' => depth.saturating_sub(1),
            _ => depth,
        };
        c == ',' && depth == 0
    })
    .collect()
}
