//! Texts of models, and the arguments that are sent.

use super::*;

#[test]
fn a_slip_is_wrapped() {
    let check = |written: &str, sent: &str| {
        let arguments = Arguments::of(written);
        assert_eq!(serde_json::to_string(&arguments).unwrap(), sent);
        assert_eq!(arguments.as_text(), sent);
    };
    check("", "{}");
    check(" \n", "{}");
    check(" {\"a\": [1, {}]}\n", "{\"a\": [1, {}]}");
    check("{\"a\": ", "{\"invalid_arguments\":\"{\\\"a\\\": \"}");
    check("[1]", "{\"invalid_arguments\":\"[1]\"}");
    check("{} {}", "{\"invalid_arguments\":\"{} {}\"}");
}
