//! Addresses and variables.

use mainstem_http::parse;

use super::*;

#[test]
fn the_endpoint_lies_below_the_base_url() {
    let check = |base: &str, model: &str, expected: &str| {
        let url = GenerateContent::url(&parse(base).unwrap(), model);
        assert_eq!(url.as_str(), format!("{expected}:streamGenerateContent?alt=sse"));
    };
    let google = "https://generativelanguage.googleapis.com";
    check(google, "gemini-2.5-flash", &format!("{google}/v1beta/models/gemini-2.5-flash"));
    check(&format!("{google}/"), "models/gemini-3-pro", &format!("{google}/v1beta/models/gemini-3-pro"));
    check(&format!("{google}/v1alpha"), "gemini-3-pro", &format!("{google}/v1alpha/models/gemini-3-pro"));
    check(google, "tunedModels/mine", &format!("{google}/v1beta/tunedModels/mine"));
    check("http://localhost:1/gemini", "m", "http://localhost:1/gemini/v1beta/models/m");
    check("http://h/v1beta1/", "m", "http://h/v1beta1/models/m");
    check("http://h/vertex/v2x", "a b?", "http://h/vertex/v2x/v1beta/models/a%20b%3F");
    let vertex = "https://aiplatform.googleapis.com/v1/projects/p/locations/global/publishers/google";
    check(vertex, "gemini-3.8-flash", &format!("{vertex}/models/gemini-3.8-flash"));
    let gateway = GenerateContent::url(&parse("http://h?user=1").unwrap(), "m");
    assert_eq!(gateway.as_str(), "http://h/v1beta/models/m:streamGenerateContent?user=1&alt=sse");
}

#[test]
fn google_itself_is_known_by_its_host() {
    let google = Gemini::new("m");
    assert_eq!(google.server().url().scheme(), "https");
    assert!(GenerateContent::SERVICE.is_key_required(google.server().host()));
    assert!(!GenerateContent::SERVICE.is_key_required("localhost:1"));
}

#[test]
fn the_environment_has_two_names_for_each() {
    let check = |vars: &[(&str, &str)], key: Option<&str>, url: &str| {
        let var = |name: &str| vars.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned());
        let gemini = Gemini::from_vars("gemini-2.5-flash", var).unwrap();
        let headers = gemini.server().headers().unwrap();
        assert_eq!(headers.get("x-goog-api-key").map(|value| value.to_str().unwrap()), key, "{vars:?}");
        let path = "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse";
        assert_eq!(gemini.server().url().as_str(), format!("{url}{path}"), "{vars:?}");
    };
    let google = "https://generativelanguage.googleapis.com";
    check(&[("GEMINI_API_KEY", " k-1\n"), ("GOOGLE_API_KEY", "k-2")], Some("k-1"), google);
    check(&[("GEMINI_API_KEY", ""), ("GOOGLE_API_KEY", "k-2")], Some("k-2"), google);
    let (ours, theirs) = (("GEMINI_BASE_URL", "http://a"), ("GOOGLE_GEMINI_BASE_URL", "http://b:1/"));
    check(&[theirs, ours], None, "http://a");
    check(&[theirs], None, "http://b:1");
}

#[test]
fn the_model_is_part_of_the_address() {
    let gemini = Gemini::new("m").with_base_url("http://h/v1").unwrap().with_api_key("k-123");
    let other = gemini.clone().with_model("n");
    assert_eq!(gemini.server().url().as_str(), "http://h/v1/models/m:streamGenerateContent?alt=sse");
    assert_eq!(other.server().url().as_str(), "http://h/v1/models/n:streamGenerateContent?alt=sse");
    assert!(other.server().has_key());
    let moved = other.with_base_url("http://i").unwrap();
    assert_eq!(moved.server().url().as_str(), "http://i/v1beta/models/n:streamGenerateContent?alt=sse");
    assert!(moved.server().has_key());
}
