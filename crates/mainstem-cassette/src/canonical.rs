//! The canonical form of a request, by which it is found on a tape: without the order of its keys,
//! its secrets, and the parts that differ between runs.

use serde_json::{Number, Value};

use super::{
    exchange::{Body, TapeRequest},
    secrets::REDACTED,
};
use crate::CassetteError;

/// Ignored places in JSON bodies: JSON pointers, in which `*` stands for every key or index.
#[derive(Clone, Debug, Default)]
pub(super) struct Ignored(Vec<Vec<String>>);

impl Ignored {
    pub(super) fn parse(pointers: &[String]) -> Result<Self, CassetteError> {
        pointers.iter().map(|pointer| parse(pointer)).collect::<Result<_, _>>().map(Self)
    }

    /// Sorts the keys, and removes the ignored places.
    pub(super) fn canonical(&self, requested: &mut TapeRequest) {
        if let Some(Body::Json(value)) = &mut requested.body {
            self.0.iter().for_each(|path| strip(value, path));
            value.sort_all_objects();
        }
    }
}

fn parse(pointer: &str) -> Result<Vec<String>, CassetteError> {
    let rest =
        pointer.strip_prefix('/').ok_or_else(|| CassetteError::Pointer { pointer: pointer.to_owned() })?;
    Ok(rest.split('/').map(|part| part.replace("~1", "/").replace("~0", "~")).collect())
}

fn strip(value: &mut Value, path: &[String]) {
    match path {
        [] => {}
        [last] => remove(value, last),
        [first, rest @ ..] => children(value, first).into_iter().for_each(|child| strip(child, rest)),
    }
}

fn children<'a>(value: &'a mut Value, name: &str) -> Vec<&'a mut Value> {
    match value {
        Value::Object(map) => {
            map.iter_mut().filter(|(key, _)| matches(name, key)).map(|(_, value)| value).collect()
        }
        Value::Array(items) => {
            let items = items.iter_mut().enumerate();
            items.filter(|(index, _)| matches(name, &index.to_string())).map(|(_, item)| item).collect()
        }
        _ => Vec::new(),
    }
}

/// The elements of an array keep their indexes, so that other pointers stay valid.
fn remove(value: &mut Value, name: &str) {
    match value {
        Value::Object(map) => map.retain(|key, _| !matches(name, key)),
        array => children(array, name).into_iter().for_each(|item| *item = Value::Null),
    }
}

fn matches(name: &str, key: &str) -> bool {
    name == "*" || name == key
}

/// Returns `true` if two canonical requests are equal.
pub(super) fn same(one: &TapeRequest, other: &TapeRequest) -> bool {
    one.method == other.method
        && target(&one.path) == target(&other.path)
        && match (&one.body, &other.body) {
            (Some(Body::Json(one)), Some(Body::Json(other))) => alike(one, other),
            (one, other) => one == other,
        }
}

/// Returns `true` if two values are equal, except for the last bit of a fraction, which writing and
/// reading can change.
pub(super) fn alike(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(number), Value::Number(other)) => number == other || near(number, other),
        (Value::Array(items), Value::Array(others)) => {
            items.len() == others.len() && items.iter().zip(others).all(|(one, other)| alike(one, other))
        }
        (Value::Object(map), Value::Object(others)) => {
            let is_there = |(key, one)| others.get(key).is_some_and(|other| alike(one, other));
            map.len() == others.len() && map.iter().all(is_there)
        }
        (one, other) => one == other,
    }
}

fn near(one: &Number, other: &Number) -> bool {
    let (Some(one), Some(other)) = (one.as_f64(), other.as_f64()) else { return false };
    // Whole numbers are exact.
    one.fract() != 0.0 && (one - other).abs() <= 2.0 * f64::EPSILON * one.abs()
}

/// Returns path and query without the parameters that were replaced: a replay may have another key,
/// or none.
pub(super) fn target(path: &str) -> (&str, Vec<&str>) {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let counts = |parameter: &&str| !parameter.is_empty() && !parameter.ends_with(REDACTED);
    (path, query.split('&').filter(counts).collect())
}

#[cfg(test)]
mod tests;
