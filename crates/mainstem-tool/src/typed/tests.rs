//! Functions as tools: their specs, their outputs, and the places of errors in arguments.

use std::{collections::BTreeMap, sync::Arc};

use mainstem_message::{ContentBlock, ToolState};
use serde::Deserialize;
use serde_json::json;
use tokio_test::{assert_ready, task::spawn};

use super::*;
use crate::{Json, host::tests::context};

#[derive(Deserialize, JsonSchema)]
struct Search {
    /// What to look for.
    query: String,
    #[serde(default)]
    filters: Vec<Filter>,
    #[serde(default)]
    weights: BTreeMap<String, u8>,
    #[serde(default)]
    mode: Mode,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Filter {
    year: u16,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Mode {
    #[default]
    Fast,
    Deep {
        levels: u8,
    },
}

#[track_caller]
fn answer(tool: &impl Tool, arguments: Value) -> Result<(String, ToolState), String> {
    let cx = context();
    let output = assert_ready!(spawn(tool.call(&cx, arguments)).poll()).map_err(|error| error.to_string())?;
    let (content, state) = output.into_parts();
    Ok((content.iter().filter_map(ContentBlock::as_text).collect(), state))
}

fn search() -> impl Tool {
    tool_fn("search", "Search the corpus", |cx: ToolContext, search: Search| async move {
        let Search { query, filters, weights, mode } = search;
        let years: Vec<_> = filters.iter().map(|filter| filter.year).collect();
        let levels = if let Mode::Deep { levels } = mode { levels } else { 0 };
        let call = cx.call_id().clone();
        Ok::<_, ToolError>(format!("{call}: {query} {years:?} {weights:?} {levels}"))
    })
}

#[test]
fn the_function_gets_its_context_and_its_arguments() {
    let said = |text: &str| Ok((text.to_owned(), ToolState::Success));
    assert_eq!(answer(&search(), json!({ "query": "rust" })), said("call-1: rust [] {} 0"));
    let all = json!({ "query": "a", "filters": [{ "year": 2026 }], "weights": { "b": 1 }, "mode": { "deep": { "levels": 3 } } });
    assert_eq!(answer(&search(), all), said(r#"call-1: a [2026] {"b": 1} 3"#));
}

#[test]
fn wrong_arguments_are_told_with_their_place() {
    #[track_caller]
    fn check(arguments: Value, expected: &str) {
        let expected = format!("the arguments of search can't be read: at {expected}");
        assert_eq!(answer(&search(), arguments), Err(expected));
    }
    check(json!({ "query": 1 }), "/query: expected a string, got 1");
    check(
        json!({ "query": "a", "filters": [{ "year": 1 }, { "year": "now" }] }),
        r#"/filters/1/year: expected a whole number from 0 to 65535, got "now""#,
    );
    check(json!({ "query": "a", "filters": [{}] }), "/filters/0: `year` is missing");
    check(
        json!({ "query": "a", "filters": [{ "year": 1, "month": 2 }] }),
        "/filters/0/month: unknown key `month`; known: year",
    );
    check(
        json!({ "query": "a", "weights": { "x/y~z": 300 } }),
        "/weights/x~1y~0z: expected a whole number from 0 to 255, got 300",
    );
    check(
        json!({ "query": "a", "mode": { "deep": { "levels": "all" } } }),
        r#"/mode/deep/levels: expected a whole number from 0 to 255, got "all""#,
    );
}

#[test]
fn any_answer_and_any_error_will_do() {
    let none = |_: ToolContext, (): ()| async { Ok::<_, ToolError>(()) };
    assert_eq!(answer(&tool_fn("f", "", none), json!(null)), Ok((String::new(), ToolState::Success)));
    let number = |_: ToolContext, (): ()| async { Ok::<_, ToolError>(Json(7)) };
    assert_eq!(answer(&tool_fn("f", "", number), json!(null)), Ok(("7".to_owned(), ToolState::Success)));
    let fails = |_: ToolContext, (): ()| async { "x".parse::<u8>().map(|_| "") };
    let error = answer(&tool_fn("f", "", fails), json!(null)).unwrap_err();
    assert_eq!(error, "invalid digit found in string");
    let failed = |_: ToolContext, (): ()| async { Ok::<_, ToolError>(ToolOutput::failed("no luck")) };
    assert_eq!(answer(&tool_fn("f", "", failed), json!(null)), Ok(("no luck".to_owned(), ToolState::Error)));
}

#[test]
fn the_spec_is_the_name_the_description_and_the_schema_in_one_piece() {
    let spec = search().spec();
    assert_eq!((&*spec.name, &*spec.description), ("search", "Search the corpus"));
    assert_eq!(*spec.parameters, schema_of::<Search>());
    let schema = spec.parameters.to_string();
    assert_eq!(spec.parameters["properties"]["filters"]["items"]["required"], json!(["year"]));
    assert!(["$ref", "$defs", "$schema", "\"title\""].iter().all(|key| !schema.contains(key)), "{schema}");
}

#[test]
fn a_tool_says_how_it_may_run() {
    let tool = || tool_fn("f", "", |_, (): ()| async { Ok::<_, ToolError>("") });
    let says = |tool: &dyn Tool| (tool.is_read_only(), tool.is_exclusive());
    assert_eq!(says(&tool()), (false, false));
    assert_eq!(says(&tool().with_read_only(true)), (true, false));
    assert_eq!(says(&tool().with_exclusive(true)), (false, true));
    // Vendors take nothing but objects.
    assert_eq!(*Arc::new(tool()).spec().parameters, json!({ "type": "object", "properties": {} }));
    assert_eq!(answer(&tool(), json!({})), Ok((String::new(), ToolState::Success)));
}
