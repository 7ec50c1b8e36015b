//! Addresses.

use super::*;

#[test]
fn the_endpoint_lies_below_the_base_url() {
    let check = |base: &str, expected: &str| {
        let model = OpenAiResponses::new("m").with_base_url(base).unwrap();
        assert_eq!(model.server().url().as_str(), expected);
    };
    check("https://api.openai.com/v1/", "https://api.openai.com/v1/responses");
    check("https://h/v1/responses", "https://h/v1/responses");
    check("https://r.openai.azure.com/openai/v1", "https://r.openai.azure.com/openai/v1/responses");
    check("https://h/openai/v1?api-version=preview", "https://h/openai/v1/responses?api-version=preview");
    assert_eq!(OpenAiResponses::new("m").server().url().as_str(), "https://api.openai.com/v1/responses");
}
