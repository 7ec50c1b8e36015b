//! Errors that teach a dialect, and errors for the caller.

use mainstem_http::Dialect as _;

use super::*;

#[test]
fn only_a_refusal_of_the_field_itself_is_heeded() {
    let check = |status: u16, message: &str, expected: Option<Dialect>| {
        let body =
            format!(r#"{{"type":"error","error":{{"type":"invalid_request_error","message":"{message}"}}}}"#);
        let error = ServerError::of(status, &body);
        assert_eq!(Dialect::default().adapted_to(&error), expected, "{message}");
        assert_eq!(expected.and_then(|adapted| adapted.adapted_to(&error)), None, "once");
    };
    let sampling = Some(Dialect { no_sampling: true, ..Dialect::default() });
    let budget = Some(Dialect { no_budget: true, ..Dialect::default() });
    let effort = Some(Dialect { no_effort: true, ..Dialect::default() });
    let caching = Some(Dialect { no_caching: true, ..Dialect::default() });
    // https://github.com/Comfy-Org/ComfyUI/issues/13923
    check(400, "`temperature` is deprecated for this model.", sampling);
    check(400, "`top_p` is deprecated for this model.", sampling);
    check(400, "temperature: Extra inputs are not permitted", sampling);
    check(400, "temperature: range: 0..1", None);
    check(400, "`temperature` and `top_p` cannot both be specified for this model.", None);
    check(400, "messages: Extra inputs are not permitted", None);
    check(500, "`temperature` is deprecated for this model.", None);
    // https://platform.claude.com/docs/en/build-with-claude/extended-thinking
    check(
        400,
        r#"\"thinking.type.enabled\" is not supported for this model. Use \"thinking.type.adaptive\"."#,
        budget,
    );
    check(400, "max_tokens must be greater than thinking.budget_tokens", None);
    check(400, "This model does not support the effort parameter.", effort);
    check(400, "adaptive thinking is not supported on this model", effort);
    check(400, "output_config: Extra inputs are not permitted", effort);
    check(400, "output_config.effort: Extra inputs are not permitted", effort);
    check(400, "output_config.effort: 'utmost' is not supported", None);
    check(400, "output_config.format: Extra inputs are not permitted", None);
    check(400, "system.0.cache_control: Extra inputs are not permitted", caching);
    check(400, "A maximum of 4 blocks with cache_control may be provided. Found 5.", None);
}
