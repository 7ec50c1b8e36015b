//! A graph of which subschema applies to which part of a value: without it a schema of a few lines
//! can keep a validator busy for hours.
//!
//! A check applies a schema to a value, some of its parts to the same value (`allOf`, `$ref` …) and
//! others to the value's parts (`properties`, `items` …). `allOf: [{$ref}, {$ref}]`, 28 times in a
//! row, applies the last schema 2²⁸ times to one value. The graph counts such applications before
//! they happen, as an upper bound.

mod names;

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::{SchemaError, SchemaLimit};

/// The value depth for which steps are limited at compile time.
const DEPTH: usize = 4;

#[derive(Debug, Default)]
pub(crate) struct Graph {
    nodes: Vec<Node>,
    /// Each node after those that it applies to the same value.
    order: Vec<usize>,
    /// The steps along one path of each depth up to [`DEPTH`].
    shallow: Vec<u64>,
}

/// A schema, by what it applies to the parts of a value.
#[derive(Debug, Default)]
struct Node {
    /// To the value itself.
    same: Vec<usize>,
    /// To one field each.
    fields: Vec<usize>,
    /// To every field.
    every_field: Vec<usize>,
    /// To one element each.
    elements: Vec<usize>,
    /// To every element.
    every_element: Vec<usize>,
    /// Asks what the others have evaluated, for which they are applied once more.
    is_twice: bool,
}

/// A graph under construction.
struct Builder<'a> {
    root: &'a Value,
    graph: Graph,
    known: HashMap<*const Value, usize>,
    open: Vec<(usize, &'a Value)>,
    anchors: HashMap<&'a str, &'a Value>,
    patterns: usize,
}

impl Graph {
    /// Returns the graph of a schema that is within the limits.
    pub(crate) fn of(schema: &Value) -> Result<Self, SchemaError> {
        let bytes = schema.to_string().len();
        check(SchemaLimit::Bytes, bytes, || format!("the schema has {bytes} bytes"))?;
        let levels = depth(schema);
        check(SchemaLimit::Nesting, levels, || format!("the schema is nested {levels} levels deep"))?;
        let mut builder = Builder::new(schema)?;
        builder.node(schema);
        while let Some((index, schema)) = builder.open.pop() {
            builder.visit(index, schema)?;
        }
        let mut graph = builder.graph;
        graph.sort()?;
        graph.shallow = graph.steps_by_depth(DEPTH);
        let steps = graph.steps(DEPTH);
        check(SchemaLimit::Steps, clamp(steps), || format!("a value can take {steps} steps to check"))?;
        Ok(graph)
    }

    /// Whether a value can be checked in bounded time.
    pub(crate) fn check_work(&self, value: &Value) -> Result<(), SchemaError> {
        let work = self.work(value);
        check(SchemaLimit::Work, clamp(work), || format!("it takes up to {work} steps"))
    }

    /// Returns an upper bound of schema applications in the check of a value.
    pub(crate) fn work(&self, value: &Value) -> u64 {
        self.steps(depth(value)).saturating_mul(count(value))
    }

    /// Returns an upper bound of schema applications along one path of this depth.
    fn steps(&self, depth: usize) -> u64 {
        let known = self.shallow.get(depth).copied();
        known.unwrap_or_else(|| self.steps_by_depth(depth).last().copied().unwrap_or(0))
    }

    /// Returns the same for each depth up to this one.
    fn steps_by_depth(&self, deepest: usize) -> Vec<u64> {
        let mut below = vec![0; self.nodes.len()];
        let level = |_| {
            let mut here = vec![0; self.nodes.len()];
            for index in &self.order {
                here[*index] = self.nodes[*index].steps(&here, &below);
            }
            below = here;
            below.first().copied().unwrap_or(0)
        };
        (0..=deepest).map(level).collect()
    }

    /// Orders the nodes, each after those that it applies to the same value.
    fn sort(&mut self) -> Result<(), SchemaError> {
        let mut left: Vec<usize> = self.nodes.iter().map(|node| node.same.len()).collect();
        let mut users = vec![Vec::new(); self.nodes.len()];
        for (index, node) in self.nodes.iter().enumerate() {
            node.same.iter().for_each(|used| users[*used].push(index));
        }
        let mut chain = vec![1; self.nodes.len()];
        let mut ready: Vec<usize> = (0..left.len()).filter(|index| left[*index] == 0).collect();
        while let Some(index) = ready.pop() {
            self.order.push(index);
            for user in &users[index] {
                chain[*user] = chain[*user].max(chain[index] + 1);
                left[*user] -= 1;
                if left[*user] == 0 {
                    ready.push(*user);
                }
            }
        }
        if self.order.len() < self.nodes.len() {
            let why = "the schema applies to a value what it applies to the same value again, without end";
            return Err(SchemaError::Invalid(why.to_owned()));
        }
        let longest = chain.into_iter().max().unwrap_or(0);
        check(SchemaLimit::Chain, longest, || {
            format!("{longest} references and alternatives follow one another")
        })
    }
}

impl Node {
    fn steps(&self, here: &[u64], below: &[u64]) -> u64 {
        let sum = |nodes: &[usize], costs: &[u64]| {
            nodes.iter().fold(0_u64, |sum, node| sum.saturating_add(costs[*node]))
        };
        let most = |nodes: &[usize]| nodes.iter().map(|node| below[*node]).max().unwrap_or(0);
        let object = most(&self.fields).saturating_add(sum(&self.every_field, below));
        let array = most(&self.elements).saturating_add(sum(&self.every_element, below));
        let same = sum(&self.same, here).saturating_mul(if self.is_twice { 2 } else { 1 });
        same.saturating_add(object.max(array)).saturating_add(1)
    }
}

impl<'a> Builder<'a> {
    fn new(root: &'a Value) -> Result<Self, SchemaError> {
        let anchors = names::anchors(root)?;
        let (graph, known, open) = Default::default();
        Ok(Self { root, graph, known, open, anchors, patterns: 0 })
    }

    /// Returns the node of a schema; a new one is visited later.
    fn node(&mut self, schema: &'a Value) -> usize {
        let next = self.graph.nodes.len();
        let index = *self.known.entry(std::ptr::from_ref(schema)).or_insert(next);
        if index == next {
            self.graph.nodes.push(Node::default());
            self.open.push((index, schema));
        }
        index
    }

    fn visit(&mut self, index: usize, schema: &'a Value) -> Result<(), SchemaError> {
        let count = self.graph.nodes.len();
        check(SchemaLimit::Subschemas, count, || format!("the schema contains more than {count} schemas"))?;
        let Value::Object(keys) = schema else { return Ok(()) };
        let mut node = Node::default();
        for (key, value) in keys {
            match key.as_str() {
                "pattern" => self.pattern(value.as_str().unwrap_or_default())?,
                "$ref" | "$dynamicRef" | "$recursiveRef" => {
                    let target = self.target(value)?;
                    node.same.push(self.node(target));
                }
                "allOf" | "anyOf" | "oneOf" => node.same.extend(self.list(value)),
                "not" | "if" | "then" | "else" => node.same.push(self.node(value)),
                "dependentSchemas" | "dependencies" => node.same.extend(self.map(value)),
                "properties" => node.fields.extend(self.map(value)),
                "patternProperties" => {
                    value
                        .as_object()
                        .into_iter()
                        .flat_map(Map::keys)
                        .try_for_each(|key| self.pattern(key))?;
                    node.every_field.extend(self.map(value));
                }
                "additionalProperties" | "propertyNames" => node.every_field.push(self.node(value)),
                "unevaluatedProperties" => {
                    node.is_twice = true;
                    node.every_field.push(self.node(value));
                }
                "items" if value.is_array() => node.elements.extend(self.list(value)),
                "prefixItems" => node.elements.extend(self.list(value)),
                "items" | "additionalItems" | "contains" => node.every_element.push(self.node(value)),
                "unevaluatedItems" => {
                    node.is_twice = true;
                    node.every_element.push(self.node(value));
                }
                // They are applied only where something refers to them, but all are compiled.
                "$defs" | "definitions" => self.map(value).into_iter().for_each(drop),
                _ => {}
            }
        }
        self.graph.nodes[index] = node;
        Ok(())
    }

    fn list(&mut self, value: &'a Value) -> Vec<usize> {
        value.as_array().into_iter().flatten().map(|schema| self.node(schema)).collect()
    }

    fn map(&mut self, value: &'a Value) -> Vec<usize> {
        value.as_object().into_iter().flat_map(Map::values).map(|schema| self.node(schema)).collect()
    }

    fn pattern(&mut self, pattern: &str) -> Result<(), SchemaError> {
        self.patterns += 1;
        let (count, bytes) = (self.patterns, pattern.len());
        check(SchemaLimit::Patterns, count, || {
            format!("the schema contains more than {} patterns", count - 1)
        })?;
        check(SchemaLimit::PatternBytes, bytes, || format!("a pattern has {bytes} bytes"))
    }

    /// Returns what a reference means: a part of the schema itself.
    fn target(&self, reference: &Value) -> Result<&'a Value, SchemaError> {
        let reference = reference.as_str().unwrap_or_default();
        let found = match reference.strip_prefix('#') {
            Some("") => Some(self.root),
            Some(pointer) if pointer.starts_with('/') => self.root.pointer(&decoded(pointer)),
            Some(anchor) => self.anchors.get(anchor).copied(),
            None => None,
        };
        found.ok_or_else(|| {
            let why = format!("the schema refers to {reference:?}, which it does not contain");
            SchemaError::Invalid(why)
        })
    }
}

/// Percent-encoded characters of a pointer in a URI fragment (RFC 6901, section 6).
fn decoded(pointer: &str) -> String {
    let mut bytes = Vec::with_capacity(pointer.len());
    let mut rest = pointer.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let hex = (*first == b'%').then(|| std::str::from_utf8(after.get(..2)?).ok()).flatten();
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn check(limit: SchemaLimit, found: usize, words: impl FnOnce() -> String) -> Result<(), SchemaError> {
    if found <= limit.value() {
        return Ok(());
    }
    Err(SchemaError::Limit { limit, found: words() })
}

fn clamp(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// Returns how deep a value is nested; 0 for what has no parts. `serde_json` reads no more than 128
/// levels.
fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// Returns how many values there are in a value, itself included.
fn count(value: &Value) -> u64 {
    match value {
        Value::Array(items) => 1 + items.iter().map(count).sum::<u64>(),
        Value::Object(fields) => 1 + fields.values().map(count).sum::<u64>(),
        _ => 1,
    }
}
