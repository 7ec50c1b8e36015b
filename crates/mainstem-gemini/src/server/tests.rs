//! Addresses.

use mainstem_http::parse;

use super::*;

#[test]
fn the_endpoint_lies_below_the_base_url() {
    let check = |base: &str, model: &str, expected: &str| {
        let url = endpoint(&parse(base).unwrap(), model);
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
    let gateway = endpoint(&parse("http://h?user=1").unwrap(), "m");
    assert_eq!(gateway.as_str(), "http://h/v1beta/models/m:streamGenerateContent?user=1&alt=sse");
}

#[test]
fn google_itself_is_known_by_its_host() {
    assert!(is_google(&server(&google(), "m")));
    assert_eq!(google().host_str(), Some(GOOGLE));
    assert!(!is_google(&server(&parse("http://localhost:1").unwrap(), "m")));
}
