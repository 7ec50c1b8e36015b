//! The differences between two requests, as text for an error.

use std::{collections::BTreeSet, fmt};

use serde_json::Value;

use super::{
    canonical::{alike, target},
    exchange::{Body, TapeRequest},
};

/// The number of characters that are shown of a value.
const SHOWN: usize = 40;

/// The number of these before the place where two texts differ.
const BEFORE: usize = 12;

/// One difference.
#[derive(Debug, PartialEq)]
pub(super) struct Difference {
    /// A JSON pointer into the body, or the name of another part.
    pub(super) at: String,
    pub(super) recorded: Option<Value>,
    pub(super) requested: Option<Value>,
}

/// Returns every difference, except in method and path.
pub(super) fn differences(recorded: &TapeRequest, requested: &TapeRequest) -> Vec<Difference> {
    let query = |requested: &TapeRequest| target(&requested.path).1.join("&").into();
    let mut found = Vec::new();
    compare("the query", Some(&query(recorded)), Some(&query(requested)), &mut found);
    let (recorded, requested) = (value(recorded), value(requested));
    compare("", recorded.as_ref(), requested.as_ref(), &mut found);
    found
}

fn value(requested: &TapeRequest) -> Option<Value> {
    Some(match requested.body.clone()? {
        Body::Json(value) => value,
        Body::Text(text) | Body::Base64(text) => text.into(),
    })
}

fn compare(at: &str, recorded: Option<&Value>, requested: Option<&Value>, found: &mut Vec<Difference>) {
    match (recorded, requested) {
        (None, None) => {}
        (Some(recorded), Some(requested)) if alike(recorded, requested) => {}
        (Some(Value::Object(recorded)), Some(Value::Object(requested))) => {
            let keys: BTreeSet<_> = recorded.keys().chain(requested.keys()).collect();
            for key in keys {
                let at = format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
                compare(&at, recorded.get(key), requested.get(key), found);
            }
        }
        (Some(Value::Array(recorded)), Some(Value::Array(requested))) => {
            for index in 0..recorded.len().max(requested.len()) {
                compare(&format!("{at}/{index}"), recorded.get(index), requested.get(index), found);
            }
        }
        (recorded, requested) => {
            let at = if at.is_empty() { "the body" } else { at }.to_owned();
            found.push(Difference { at, recorded: recorded.cloned(), requested: requested.cloned() });
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let from = match (&self.recorded, &self.requested) {
            (Some(Value::String(recorded)), Some(Value::String(requested))) => parting(recorded, requested),
            _ => 0,
        };
        let [recorded, requested] =
            [&self.recorded, &self.requested].map(|value| shown(value.as_ref(), from));
        write!(f, "{}: recorded {recorded}, requested {requested}", self.at)
    }
}

/// Returns the character from which two texts are shown, so that their difference is visible.
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
