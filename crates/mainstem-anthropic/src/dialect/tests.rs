//! Errors that teach a dialect, and errors for the caller.

use super::*;

#[test]
fn only_a_refusal_of_the_field_itself_is_heeded() {
    let check = |status: u16, message: &str, expected: bool| {
        let body =
            format!(r#"{{"type":"error","error":{{"type":"invalid_request_error","message":"{message}"}}}}"#);
        assert_eq!(refuses_sampling(&ServerError::of(status, &body)), expected, "{message}");
    };
    // https://github.com/Comfy-Org/ComfyUI/issues/13923
    check(400, "`temperature` is deprecated for this model.", true);
    check(400, "`top_p` is deprecated for this model.", true);
    check(400, "temperature: Extra inputs are not permitted", true);
    check(400, "temperature: range: 0..1", false);
    check(400, "`temperature` and `top_p` cannot both be specified for this model.", false);
    check(400, "messages: Extra inputs are not permitted", false);
    check(500, "`temperature` is deprecated for this model.", false);
}
