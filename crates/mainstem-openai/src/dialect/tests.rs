//! Errors of real servers, and the dialect that each teaches.

use mainstem_http::Dialect as _;

use super::*;

fn check(status: u16, body: &str, expected: Option<Dialect>) {
    let error = ServerError::of(status, body);
    let adapted = Dialect::default().adapted_to(&error);
    assert_eq!(adapted, expected, "{body}");
    if let Some(dialect) = adapted {
        assert_eq!(dialect.adapted_to(&error), None, "heeded once: {body}");
    }
}

#[test]
fn real_errors_change_the_dialect_once() {
    let no_usage = Some(Dialect { no_usage: true, ..Dialect::default() });
    check(
        400,
        r#"{"error":{"message":"Unrecognized request argument supplied: stream_options","param":null}}"#,
        no_usage.clone(),
    );
    check(
        400,
        r#"{"error":{"message":"Unknown parameter: 'stream_options'.","param":"stream_options","code":"unknown_parameter"}}"#,
        no_usage.clone(),
    );
    check(
        422,
        r#"{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","stream_options"]}]},"param":null}"#,
        no_usage,
    );
    check(
        400,
        r#"{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","param":"max_tokens","code":"unsupported_parameter"}}"#,
        Some(Dialect { completion_tokens: true, ..Dialect::default() }),
    );
    check(
        400,
        r#"{"message":"The `reasoning_content` in the thinking mode must be passed back to the API.","type":"invalid_request_error"}"#,
        Some(Dialect { reasoning: true, ..Dialect::default() }),
    );
    for refused in [
        "Unsupported parameter: 'reasoning_effort' is not supported with this model.",
        "Unrecognized request argument supplied: reasoning_effort",
        "reasoning_effort is not supported with this model",
    ] {
        let body = format!(r#"{{"error":{{"message":"{refused}","param":"reasoning_effort"}}}}"#);
        check(400, &body, Some(Dialect { no_effort: true, ..Dialect::default() }));
    }
    let unverified = "Your organization must be verified to stream this model.";
    check(
        400,
        &format!(r#"{{"error":{{"message":"{unverified}","param":"stream","code":"unsupported_value"}}}}"#),
        Some(Dialect { whole: Some(unverified.into()), ..Dialect::default() }),
    );
    let unsupported = "Unsupported value: 'stream' does not support true with this model.";
    check(
        400,
        &format!(r#"{{"error":{{"message":"{unsupported}","type":"invalid_request_error"}}}}"#),
        Some(Dialect { whole: Some(unsupported.into()), ..Dialect::default() }),
    );
}

#[test]
fn a_server_that_refuses_openais_own_fields_gets_none() {
    let own = Dialect { own_fields: true, ..Dialect::default() };
    for refused in ["stream_options.include_obfuscation", "prompt_cache_key"] {
        let body =
            format!(r#"{{"error":{{"message":"Unknown parameter: '{refused}'.","param":"{refused}"}}}}"#);
        let error = ServerError::of(400, &body);
        assert_eq!(own.adapted_to(&error), Some(Dialect::default()), "{refused}");
    }
}

#[test]
fn other_errors_end_the_call() {
    check(400, r#"{"error":{"message":"Unsupported value: 'temperature'","param":"temperature"}}"#, None);
    let value = "Unsupported value: 'reasoning_effort' does not support 'max' with this model.";
    check(400, &format!(r#"{{"error":{{"message":"{value}","param":"reasoning_effort"}}}}"#), None);
    check(400, r#"{"error":{"message":"max_tokens must be at most 4096","param":"max_tokens"}}"#, None);
    check(
        400,
        r#"{"error":{"message":"'max_tokens' or 'max_completion_tokens' is too large: 9","code":400}}"#,
        None,
    );
    check(429, r#"{"error":{"message":"stream_options: too many requests"}}"#, None);
    check(500, "stream_options", None);
    check(400, "", None);
}
