//! Settings, and what is shown of them.

use super::*;
use crate::ConfigError;

fn from_vars(vars: &[(&str, &str)]) -> Result<OpenAiResponses, ConfigError> {
    let var = |name: &str| vars.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned());
    OpenAiResponses::from_vars("m", var)
}

#[test]
fn the_endpoint_lies_below_the_base_url() {
    let check = |base: &str, expected: &str| {
        let model = OpenAiResponses::new("m").with_base_url(base).unwrap();
        assert_eq!(model.server.url().as_str(), expected);
    };
    check("https://api.openai.com/v1/", "https://api.openai.com/v1/responses");
    check("https://h/v1/responses", "https://h/v1/responses");
    check("https://r.openai.azure.com/openai/v1", "https://r.openai.azure.com/openai/v1/responses");
    check("https://h/openai/v1?api-version=preview", "https://h/openai/v1/responses?api-version=preview");
    assert_eq!(OpenAiResponses::new("m").server.url().as_str(), "https://api.openai.com/v1/responses");
}

#[test]
fn the_environment_is_read_as_openai_reads_it() {
    let model = from_vars(&[("OPENAI_API_KEY", " sk-1\n"), ("OPENAI_ORG_ID", "org")]).unwrap();
    let headers = model.server.headers().unwrap();
    assert_eq!(
        (&headers["authorization"], &headers["openai-organization"]),
        (&"Bearer sk-1".parse().unwrap(), &"org".parse().unwrap())
    );
    assert!(matches!(from_vars(&[]), Err(ConfigError::NoKey { .. })));
    let local = from_vars(&[("OPENAI_BASE_URL", "http://localhost:1/v1")]).unwrap();
    assert_eq!(local.server.url().as_str(), "http://localhost:1/v1/responses");
}

#[test]
fn openai_holds_schemas_and_of_others_it_is_said() {
    let (openai, request) = (OpenAiResponses::new("m"), ModelRequest::default());
    assert!(openai.holds_schema(&request));
    let other = openai.with_base_url("http://h").unwrap();
    assert!(!other.holds_schema(&request));
    assert!(other.with_json_schema(true).holds_schema(&request));
}

#[test]
fn what_was_learned_belongs_to_the_server_and_the_model() {
    let openai = OpenAiResponses::new("m");
    let learned = Dialect { plain: true, ..Dialect::default() };
    let clone = openai.clone();
    openai.learn(&learned);
    assert_eq!(clone.dialect(), learned, "clones share it");
    assert_eq!(clone.with_model("n").dialect(), Dialect::default());
    let whole = openai.without_streaming("no").with_base_url("http://h").unwrap().with_model("n");
    assert_eq!(whole.dialect().whole.as_deref(), Some("no"), "a setting stays");
}

#[test]
fn a_model_shows_no_secrets_and_can_be_sent() {
    fn check<T: Send + Sync + Clone + 'static>(_: &T) {}
    let openai =
        OpenAiResponses::new("gpt").with_api_key("sk-secret").with_header("x-key", "k-secret").unwrap();
    check(&openai);
    let shown = format!("{openai:?}");
    assert!(
        shown.starts_with("OpenAiResponses") && shown.contains("gpt") && !shown.contains("secret"),
        "{shown}"
    );
}
