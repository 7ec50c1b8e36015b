//! Addresses.

use super::*;

#[test]
fn the_endpoint_lies_below_the_base_url() {
    let check = |base: &str, expected: &str| {
        let openai = OpenAi::new("m").with_base_url(base).unwrap();
        assert_eq!(format!("{} at {}", openai.server().url(), openai.server().host()), expected);
    };
    check("https://api.openai.com/v1", "https://api.openai.com/v1/chat/completions at api.openai.com");
    check("http://localhost:8080/v1/", "http://localhost:8080/v1/chat/completions at localhost:8080");
    check(" http://[::1]:1 ", "http://[::1]:1/chat/completions at [::1]:1");
    check("https://h/v1/chat/completions", "https://h/v1/chat/completions at h");
    check("https://h/v1/chat/completions/", "https://h/v1/chat/completions/ at h");
    check(
        "https://h/openai/v1?api-version=preview",
        "https://h/openai/v1/chat/completions?api-version=preview at h",
    );
}

#[test]
fn azure_has_its_own_address() {
    let model = azure("https://res.openai.azure.com/", "my gpt", "2024-10-21").unwrap();
    let path = "openai/deployments/my%20gpt/chat/completions?api-version=2024-10-21";
    assert_eq!(model.server().url().as_str(), format!("https://res.openai.azure.com/{path}"));
    assert!(azure("res.openai.azure.com", "gpt", "v").is_err());
}
