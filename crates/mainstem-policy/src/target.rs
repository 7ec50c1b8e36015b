//! The values in a call's arguments that a rule applies to.

use std::borrow::Cow;

use serde_json::Value;

use crate::{command, glob, path, url};

/// The fields that a call acts on, for rules without a field.
const ACTS_ON: [&str; 6] = ["command", "cmd", "path", "file_path", "url", "agent_id"];
/// The fields that it searches for, which count only if it has none of the above.
const LOOKS_FOR: [&str; 2] = ["pattern", "query"];

/// A value, interpreted by the name of its field.
#[derive(Debug, PartialEq)]
pub(crate) struct Target<'a> {
    reading: Reading,
    text: Cow<'a, str>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Reading {
    Command,
    Path,
    Url,
    Text,
    /// The argument is absent, so it can't match.
    Absent,
}

impl Target<'_> {
    pub(crate) fn covered_by(&self, glob: &str) -> bool {
        match self.reading {
            Reading::Command => command::covers(glob, &self.text),
            Reading::Path => path::covers(glob, &self.text),
            Reading::Url => url::covers(glob, &self.text),
            Reading::Text => glob::matches(glob, &self.text),
            Reading::Absent => false,
        }
    }

    pub(crate) fn touched_by(&self, glob: &str) -> bool {
        match self.reading {
            Reading::Command => command::touches(glob, &self.text),
            Reading::Path => path::touches(glob, &self.text),
            Reading::Url => url::touches(glob, &self.text),
            Reading::Text => glob::matches(glob, &self.text),
            Reading::Absent => false,
        }
    }
}

/// Returns the values at a field: a name, or a JSON pointer in which `*` is every element.
pub(crate) fn at<'a>(field: &str, arguments: &'a Value) -> Vec<Target<'a>> {
    let tokens: Vec<String> = match field.strip_prefix('/') {
        Some(pointer) => {
            pointer.split('/').map(|token| token.replace("~1", "/").replace("~0", "~")).collect()
        }
        None => vec![field.to_owned()],
    };
    let name = tokens.iter().rev().find(|token| !is_index(token)).map_or("", String::as_str);
    let step = |values: Vec<&'a Value>, token: &String| {
        values.into_iter().flat_map(|value| children(value, token)).collect()
    };
    let values: Vec<&Value> = tokens.iter().fold(vec![arguments], step);
    values.into_iter().flat_map(|value| read(name, value)).collect()
}

/// Returns the values that the call acts on, all of which a rule that allows has to match; so an
/// argument that the tool ignores can't allow the call.
pub(crate) fn principal(arguments: &Value) -> Vec<Target<'_>> {
    let first = [&ACTS_ON[..], &LOOKS_FOR]
        .into_iter()
        .map(|names| all_of(names, arguments))
        .find(|found| !found.is_empty());
    first.unwrap_or_else(|| vec![whole(arguments)])
}

/// Returns all values that the call may act on, any of which is enough for a rule that refuses:
/// also those that are commands, paths or addresses by their name alone.
pub(crate) fn possible(arguments: &Value) -> Vec<Target<'_>> {
    let is_named = |name: &str| {
        [&ACTS_ON[..], &LOOKS_FOR].concat().contains(&name) || Reading::of(name) != Reading::Text
    };
    let fields = arguments
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(name, value)| is_named(name) && !value.is_null());
    let found: Vec<_> = fields.flat_map(|(name, value)| read(name, value)).collect();
    if found.is_empty() { vec![whole(arguments)] } else { found }
}

fn all_of<'a>(names: &[&str], arguments: &'a Value) -> Vec<Target<'a>> {
    let present =
        names.iter().filter_map(|name| Some((name, arguments.get(name).filter(|value| !value.is_null())?)));
    present.flat_map(|(name, value)| read(name, value)).collect()
}

fn whole(arguments: &Value) -> Target<'_> {
    let mut sorted = arguments.clone();
    sorted.sort_all_objects();
    Target { reading: Reading::Text, text: sorted.to_string().into() }
}

/// Returns the values of a pointer's token; null for a missing one, so that an element without the
/// field is not skipped.
fn children<'a>(value: &'a Value, token: &str) -> Vec<&'a Value> {
    match (value, token) {
        (Value::Array(values), "*") => values.iter().collect(),
        (Value::Object(fields), "*") => fields.values().collect(),
        (Value::Array(values), index) => {
            vec![index.parse().ok().and_then(|index: usize| values.get(index)).unwrap_or(&Value::Null)]
        }
        (value, name) => vec![value.get(name).unwrap_or(&Value::Null)],
    }
}

fn is_index(token: &str) -> bool {
    token == "*" || token.chars().all(|c| c.is_ascii_digit())
}

/// Interprets a value. A list is each of its elements, but a list that is a command is its words.
fn read<'a>(name: &str, value: &'a Value) -> Vec<Target<'a>> {
    let reading = Reading::of(name);
    let target = |text: Cow<'a, str>| Target { reading, text };
    match value {
        Value::Null => vec![Target { reading: Reading::Absent, text: "".into() }],
        Value::String(text) => vec![target(text.into())],
        Value::Array(words) if reading == Reading::Command => {
            let words: Vec<_> = words
                .iter()
                .map(|word| word.as_str().map_or_else(|| word.to_string(), str::to_owned))
                .collect();
            vec![target(words.join(" ").into())]
        }
        Value::Array(values) => values.iter().flat_map(|value| read(name, value)).collect(),
        Value::Bool(_) | Value::Number(_) => vec![target(value.to_string().into())],
        Value::Object(_) => vec![whole(value)],
    }
}

impl Reading {
    fn of(name: &str) -> Self {
        let any = |words: &[&str]| words.iter().any(|word| ends_in(name, word));
        if any(&["command", "cmd", "script"]) {
            Self::Command
        } else if any(&["path", "file", "filename", "dir", "directory", "folder", "cwd"]) {
            Self::Path
        } else if any(&["url", "uri"]) {
            Self::Url
        } else {
            Self::Text
        }
    }
}

/// Returns `true` if the last word of a name is this, or its plural: `file_path`, `filePath` and
/// `paths` end in `path`, `profile` not in `file`.
fn ends_in(name: &str, word: &str) -> bool {
    let name = name.strip_suffix('s').unwrap_or(name);
    let Some((before, last)) = name.len().checked_sub(word.len()).and_then(|at| name.split_at_checked(at))
    else {
        return false;
    };
    let is_word = !before.ends_with(char::is_alphabetic) || last.starts_with(char::is_uppercase);
    is_word && last.eq_ignore_ascii_case(word)
}

#[cfg(test)]
mod tests;
