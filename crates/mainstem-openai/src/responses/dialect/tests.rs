//! Errors of the vendor, and the dialect that each teaches.

use mainstem_http::Dialect as _;

use super::*;
use crate::service::OPENAI;

fn check(status: u16, body: &str, expected: Option<Dialect>) {
    let error = ServerError::of(status, body);
    let adapted = Dialect::default().adapted_to(&error);
    assert_eq!(adapted, expected, "{body}");
    if let Some(dialect) = adapted {
        assert_eq!(dialect.adapted_to(&error), None, "heeded once: {body}");
    }
}

#[test]
fn openais_own_fields_are_sent_unless_it_refuses_them() {
    let own = Dialect::of(&OPENAI, "api.openai.com");
    assert_eq!(own, Dialect { own_fields: true, ..Dialect::default() });
    assert_eq!(Dialect::of(&OPENAI, "h"), Dialect::default());
    let body = r#"{"error":{"message":"Unknown parameter: 'stream_options'.","param":"stream_options.include_obfuscation"}}"#;
    assert_eq!(own.adapted_to(&ServerError::of(400, body)), Some(Dialect::default()));
}

#[test]
fn real_errors_change_the_dialect_once() {
    check(
        400,
        r#"{"error":{"message":"Encrypted content is not supported with this model.","type":"invalid_request_error","param":"include","code":null}}"#,
        Some(Dialect { plain: true, ..Dialect::default() }),
    );
    check(
        400,
        r#"{"error":{"message":"Encrypted content is not supported with this model."}}"#,
        Some(Dialect { plain: true, ..Dialect::default() }),
    );
    let no_summary = Some(Dialect { no_summary: true, ..Dialect::default() });
    check(
        400,
        r#"{"error":{"message":"Your organization must be verified to generate reasoning summaries.","type":"invalid_request_error","param":"reasoning.summary","code":"unsupported_value"}}"#,
        no_summary.clone(),
    );
    check(
        400,
        r#"{"error":{"message":"Unsupported parameter: 'reasoning.summary' is not supported with the 'o1' model."}}"#,
        no_summary,
    );
    check(
        400,
        r#"{"error":{"message":"Unsupported parameter: 'reasoning.effort' is not supported with this model.","param":"reasoning.effort"}}"#,
        Some(Dialect { no_effort: true, ..Dialect::default() }),
    );
    check(
        400,
        r#"{"error":{"message":"Unsupported value: 'max' is not supported with the 'm' model.","param":"reasoning.effort"}}"#,
        None,
    );
    check(
        400,
        r#"{"error":{"message":"Verify first.","type":"invalid_request_error","param":"stream","code":"unsupported_value"}}"#,
        Some(Dialect { whole: Some("Verify first.".into()), ..Dialect::default() }),
    );
    check(
        400,
        r#"{"error":{"message":"The encrypted content gAAA...DQ== could not be verified.","type":"invalid_request_error","param":null,"code":"invalid_encrypted_content"}}"#,
        Some(Dialect { omits_reasoning: true, ..Dialect::default() }),
    );
}

#[test]
fn other_errors_end_the_call() {
    check(400, r#"{"error":{"message":"Missing","param":"input[0].arguments"}}"#, None);
    check(401, r#"{"error":{"message":"No","param":"include"}}"#, None);
    check(500, r#"{"error":{"message":"'stream' broke"}}"#, None);
}

#[test]
fn what_one_conversation_taught_does_not_last() {
    let found = Dialect { plain: true, omits_reasoning: true, ..Dialect::default() };
    assert_eq!(found.lasting(), Dialect { plain: true, ..Dialect::default() });
}
