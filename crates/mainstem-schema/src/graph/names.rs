//! What the parts of a schema are called: each reference must mean one part, the same to the graph
//! and to the validator.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::SchemaError;

/// The parts that have an anchor.
pub(super) type Anchors<'a> = HashMap<&'a str, &'a Value>;

/// Returns the parts of a schema that have an anchor.
///
/// # Errors
/// A part changes what references in it mean: it has an identifier or a dialect of its own, or an
/// anchor that another part has, too.
pub(super) fn anchors(root: &Value) -> Result<Anchors<'_>, SchemaError> {
    let mut found = Anchors::new();
    let has_old_ids =
        root.get("$schema").and_then(Value::as_str).is_some_and(|dialect| dialect.contains("draft-04"));
    collect(root, "", has_old_ids, &mut found)?;
    Ok(found)
}

fn collect<'a>(
    value: &'a Value,
    pointer: &str,
    has_old_ids: bool,
    anchors: &mut Anchors<'a>,
) -> Result<(), SchemaError> {
    match value {
        Value::Object(keys) => {
            if !pointer.is_empty() {
                check_part(keys, pointer, has_old_ids)?;
            }
            for name in ["$anchor", "$dynamicAnchor"].iter().filter_map(|key| keys.get(*key)?.as_str()) {
                if anchors.insert(name, value).is_some() {
                    return Err(SchemaError::Invalid(format!(
                        "two parts of the schema have the anchor {name:?}"
                    )));
                }
            }
            keys.iter().try_for_each(|(key, part)| {
                let key = key.replace('~', "~0").replace('/', "~1");
                collect(part, &format!("{pointer}/{key}"), has_old_ids, anchors)
            })
        }
        Value::Array(items) => items
            .iter()
            .enumerate()
            .try_for_each(|(index, part)| collect(part, &format!("{pointer}/{index}"), has_old_ids, anchors)),
        _ => Ok(()),
    }
}

/// Refuses a subschema with its own identifier or dialect, in which `#` would not be the root.
fn check_part(keys: &Map<String, Value>, pointer: &str, has_old_ids: bool) -> Result<(), SchemaError> {
    let own = ["$id", "$schema", "id"].into_iter().filter(|key| *key != "id" || has_old_ids);
    match own.into_iter().find(|key| keys.get(*key).is_some_and(Value::is_string)) {
        None => Ok(()),
        Some(key) => Err(SchemaError::Invalid(format!(
            "at {pointer}, a part of the schema has a `{key}` of its own; only the whole schema can have one"
        ))),
    }
}
