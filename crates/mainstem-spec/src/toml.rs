//! The one place that knows the TOML library: text to positioned nodes.

use std::ops::Range;

use serde_json::Number;
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use crate::{
    Position, SpecError,
    node::{Entry, Node, Value},
};

/// Reads a whole file, whose size was checked when it was read.
pub(crate) fn read(text: &str) -> Result<Node, SpecError> {
    let places = Places(text);
    let root = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(Position::START, |span| places.at(&span));
        SpecError::error(format!("invalid TOML: {}", error.message())).at(at)
    })?;
    let value = places.map(root.get_ref());
    Ok(Node { at: Position::START, value })
}

/// Turns offsets into positions.
struct Places<'a>(&'a str);

impl Places<'_> {
    fn at(&self, span: &Range<usize>) -> Position {
        let before = self.0.get(..span.start).unwrap_or(self.0);
        let counted = |count: usize| u32::try_from(count + 1).unwrap_or(u32::MAX);
        let line = counted(before.matches('\n').count());
        Position { line, column: counted(before.rsplit('\n').next().unwrap_or_default().chars().count()) }
    }

    fn map(&self, table: &DeTable<'_>) -> Value {
        let entries = table.iter().map(|(key, value)| Entry {
            key: key.get_ref().clone().into_owned(),
            at: self.at(&key.span()),
            node: self.node(value),
        });
        let mut entries: Vec<_> = entries.collect();
        // The library sorts by key.
        entries.sort_by_key(|entry| entry.at);
        Value::Map(entries)
    }

    fn node(&self, value: &Spanned<DeValue<'_>>) -> Node {
        let number = |text: &str| text.replace('_', "").parse::<Number>().ok();
        let text = |text: &str| Value::Text(text.to_owned());
        let read = match value.get_ref() {
            DeValue::String(string) => text(string),
            DeValue::Boolean(flag) => Value::Bool(*flag),
            DeValue::Integer(integer) => {
                i64::from_str_radix(&integer.as_str().replace('_', ""), integer.radix())
                    .map_or_else(|_| text(integer.as_str()), |integer| Value::Number(integer.into()))
            }
            DeValue::Float(float) => {
                number(float.as_str()).map_or_else(|| text(float.as_str()), Value::Number)
            }
            DeValue::Datetime(date) => Value::Text(date.to_string()),
            DeValue::Array(items) => Value::List(items.iter().map(|item| self.node(item)).collect()),
            DeValue::Table(table) => self.map(table),
        };
        Node { at: self.at(&value.span()), value: read }
    }
}
