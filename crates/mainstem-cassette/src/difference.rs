//! In what a request differs from another, in words that fit into an error.

use std::{collections::BTreeSet, fmt};

use serde_json::Value;

use super::{
    canonical::{alike, target},
    exchange::{Asked, Body},
};

/// How much of a value is shown, in characters.
const SHOWN: usize = 40;

/// How much of that stands before the place where two texts part.
const BEFORE: usize = 12;

/// One place.
#[derive(Debug, PartialEq)]
pub(super) struct Difference {
    /// Returns a JSON pointer into the body; something else for what is not in it.
    pub(super) at: String,
    pub(super) recorded: Option<Value>,
    pub(super) asked: Option<Value>,
}

/// Every place in which they differ, method and path aside.
pub(super) fn differences(recorded: &Asked, asked: &Asked) -> Vec<Difference> {
    let query = |asked: &Asked| target(&asked.path).1.join("&").into();
    let mut found = Vec::new();
    compare("the query", Some(&query(recorded)), Some(&query(asked)), &mut found);
    let (recorded, asked) = (value(recorded), value(asked));
    compare("", recorded.as_ref(), asked.as_ref(), &mut found);
    found
}

fn value(asked: &Asked) -> Option<Value> {
    Some(match asked.body.clone()? {
        Body::Json(value) => value,
        Body::Text(text) | Body::Base64(text) => text.into(),
    })
}

fn compare(at: &str, recorded: Option<&Value>, asked: Option<&Value>, found: &mut Vec<Difference>) {
    match (recorded, asked) {
        (None, None) => {}
        (Some(recorded), Some(asked)) if alike(recorded, asked) => {}
        (Some(Value::Object(recorded)), Some(Value::Object(asked))) => {
            let keys: BTreeSet<_> = recorded.keys().chain(asked.keys()).collect();
            for key in keys {
                let at = format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
                compare(&at, recorded.get(key), asked.get(key), found);
            }
        }
        (Some(Value::Array(recorded)), Some(Value::Array(asked))) => {
            for index in 0..recorded.len().max(asked.len()) {
                compare(&format!("{at}/{index}"), recorded.get(index), asked.get(index), found);
            }
        }
        (recorded, asked) => {
            let at = if at.is_empty() { "the body" } else { at }.to_owned();
            found.push(Difference { at, recorded: recorded.cloned(), asked: asked.cloned() });
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let from = match (&self.recorded, &self.asked) {
            (Some(Value::String(recorded)), Some(Value::String(asked))) => parting(recorded, asked),
            _ => 0,
        };
        let [recorded, asked] = [&self.recorded, &self.asked].map(|value| shown(value.as_ref(), from));
        write!(f, "{}: recorded {recorded}, asked {asked}", self.at)
    }
}

/// From which character on two texts are shown, so that one sees where they part.
fn parting(one: &str, other: &str) -> usize {
    let same = one.chars().zip(other.chars()).take_while(|(one, other)| one == other).count();
    let longest = one.chars().count().max(other.chars().count());
    if longest <= SHOWN { 0 } else { same.saturating_sub(BEFORE) }
}

fn shown(value: Option<&Value>, from: usize) -> String {
    match value {
        None => "nothing".to_owned(),
        Some(Value::String(text)) => {
            let (before, rest) =
                (if from > 0 { "…" } else { "" }, text.chars().skip(from).collect::<String>());
            format!("{:?}", format!("{before}{}", excerpt(&rest)))
        }
        Some(value) => excerpt(&value.to_string()),
    }
}

/// Returns the beginning of a text.
fn excerpt(text: &str) -> String {
    let mut chars = text.chars();
    let mut excerpt: String = chars.by_ref().take(SHOWN).collect();
    if chars.next().is_some() {
        excerpt.push('…');
    }
    excerpt
}

#[cfg(test)]
mod tests;
