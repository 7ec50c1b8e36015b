//! Settings, wherever they come from.

use super::*;

fn from_vars(vars: &[(&str, &str)]) -> Result<Gemini, ConfigError> {
    let var = |name: &str| vars.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned());
    Gemini::from_vars("gemini-2.5-flash", var)
}

#[test]
fn the_environment_has_two_names_for_each() {
    let check = |vars: &[(&str, &str)], key: Option<&str>, url: &str| {
        let gemini = from_vars(vars).unwrap();
        let headers = gemini.server.headers().unwrap();
        assert_eq!(headers.get("x-goog-api-key").map(|value| value.to_str().unwrap()), key, "{vars:?}");
        let path = "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse";
        assert_eq!(gemini.server.url().as_str(), format!("{url}{path}"), "{vars:?}");
    };
    let google = "https://generativelanguage.googleapis.com";
    check(&[("GEMINI_API_KEY", " k-1\n"), ("GOOGLE_API_KEY", "k-2")], Some("k-1"), google);
    check(&[("GEMINI_API_KEY", ""), ("GOOGLE_API_KEY", "k-2")], Some("k-2"), google);
    let (ours, theirs) = (("GEMINI_BASE_URL", "http://a"), ("GOOGLE_GEMINI_BASE_URL", "http://b:1/"));
    check(&[theirs, ours], None, "http://a");
    check(&[theirs], None, "http://b:1");

    let error = from_vars(&[]).unwrap_err().to_string();
    assert_eq!(
        error,
        "GEMINI_API_KEY is not set; set it, or set GEMINI_BASE_URL to a server that needs no key"
    );
    assert!(matches!(from_vars(&[("GEMINI_BASE_URL", "h")]), Err(ConfigError::BaseUrl { .. })));
}

#[test]
fn the_model_is_part_of_the_address() {
    let gemini = Gemini::new("m").with_base_url("http://h/v1").unwrap().with_api_key("k-123");
    let other = gemini.clone().with_model("n");
    assert_eq!(gemini.server.url().as_str(), "http://h/v1/models/m:streamGenerateContent?alt=sse");
    assert_eq!(other.server.url().as_str(), "http://h/v1/models/n:streamGenerateContent?alt=sse");
    assert_eq!((other.name(), other.server.has_key()), ("n", true));
    let moved = other.with_base_url("http://i").unwrap();
    assert_eq!(moved.server.url().as_str(), "http://i/v1beta/models/n:streamGenerateContent?alt=sse");
    assert!(moved.server.has_key());
}

#[test]
fn a_model_shows_no_secrets_and_can_be_sent() {
    fn check<T: Send + Sync + Clone + 'static>(_: &T) {}
    let gemini = Gemini::new("pro").with_api_key("k-secret").with_header("x-token", "t-secret").unwrap();
    check(&gemini);
    let shown = format!("{gemini:?}");
    assert!(
        shown.contains("pro") && shown.contains("generativelanguage") && !shown.contains("secret"),
        "{shown}"
    );
}
