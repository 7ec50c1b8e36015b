//! Settings, wherever they come from.

use super::*;

fn from_vars(vars: &[(&str, &str)]) -> Result<Anthropic, ConfigError> {
    let var = |name: &str| vars.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned());
    Anthropic::from_vars("m", var)
}

/// All headers, in order of their names.
fn headers(vars: &[(&str, &str)]) -> Vec<String> {
    let headers = from_vars(vars).unwrap().server.headers().unwrap();
    let mut shown: Vec<_> = headers.iter().map(|(n, v)| format!("{n}: {}", v.to_str().unwrap())).collect();
    shown.sort_unstable();
    shown
}

#[test]
fn the_environment_is_read_as_anthropic_reads_it() {
    let version = "anthropic-version: 2023-06-01";
    assert_eq!(headers(&[("ANTHROPIC_API_KEY", " sk-1\n")]), [version, "x-api-key: sk-1"]);
    assert_eq!(headers(&[("ANTHROPIC_AUTH_TOKEN", "t-1")]), [version, "authorization: Bearer t-1"]);
    let both = [("ANTHROPIC_AUTH_TOKEN", "t-1"), ("ANTHROPIC_API_KEY", "sk-1")];
    assert_eq!(headers(&both), [version, "x-api-key: sk-1"], "the key wins");

    let elsewhere = [("ANTHROPIC_BASE_URL", "http://localhost:1"), ("ANTHROPIC_API_KEY", "")];
    assert_eq!(headers(&elsewhere), [version]);
    assert_eq!(from_vars(&elsewhere).unwrap().server.url().as_str(), "http://localhost:1/v1/messages");

    let error = from_vars(&[("ANTHROPIC_BASE_URL", "https://api.anthropic.com")]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "ANTHROPIC_API_KEY is not set; set it, or set ANTHROPIC_BASE_URL to a server that needs no key"
    );
    assert!(matches!(from_vars(&[("ANTHROPIC_BASE_URL", "h")]), Err(ConfigError::BaseUrl { .. })));
}

#[test]
fn the_version_can_be_another() {
    let anthropic = Anthropic::new("m").with_header("anthropic-version", "2026-10-21").unwrap();
    assert_eq!(anthropic.server.headers().unwrap()["anthropic-version"], "2026-10-21");
}

#[test]
fn what_was_learned_belongs_to_the_server_and_the_model() {
    let anthropic = Anthropic::new("m").with_prompt_caching();
    let clone = anthropic.clone();
    anthropic.learn_no_sampling();
    assert!(clone.dialect().no_sampling, "clones share it");
    let other = clone.with_model("n");
    assert!(!other.dialect().no_sampling && other.name() == "n" && other.caching, "a setting stays");
    let elsewhere = anthropic.with_base_url("http://h").unwrap();
    assert!(!elsewhere.dialect().no_sampling && elsewhere.caching);
}

#[test]
fn a_model_shows_no_secrets_and_can_be_sent() {
    fn check<T: Send + Sync + Clone + 'static>(_: &T) {}
    let anthropic =
        Anthropic::new("claude").with_api_key("sk-secret").with_header("x-key", "k-secret").unwrap();
    check(&anthropic);
    let shown = format!("{anthropic:?} {:?}", anthropic.clone().with_auth_token("t-secret"));
    assert!(
        shown.contains("claude") && shown.contains("api.anthropic.com") && !shown.contains("secret"),
        "{shown}"
    );
}
