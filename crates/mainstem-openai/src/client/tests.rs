//! Settings, wherever they come from.

use super::*;

fn from_vars(vars: &[(&str, &str)]) -> Result<OpenAi, ConfigError> {
    let var = |name: &str| vars.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned());
    OpenAi::from_vars("m", var)
}

#[test]
fn the_environment_is_read_as_openai_reads_it() {
    let openai =
        from_vars(&[("OPENAI_API_KEY", " sk-1\n"), ("OPENAI_ORG_ID", "org"), ("OPENAI_PROJECT_ID", "p")]);
    let headers = openai.unwrap().server.headers().unwrap();
    let value = |name: &str| headers[name].to_str().unwrap().to_owned();
    assert_eq!(value("authorization"), "Bearer sk-1");
    assert_eq!((value("openai-organization"), value("openai-project")), ("org".into(), "p".into()));

    let local = from_vars(&[("OPENAI_BASE_URL", "http://localhost:1/v1"), ("OPENAI_API_KEY", "")]).unwrap();
    assert_eq!(local.server.host(), "localhost:1");
    assert!(local.server.headers().unwrap().is_empty());

    let error = from_vars(&[("OPENAI_BASE_URL", "")]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "OPENAI_API_KEY is not set; set it, or set OPENAI_BASE_URL to a server that needs no key"
    );
    assert!(matches!(from_vars(&[("OPENAI_BASE_URL", "h")]), Err(ConfigError::BaseUrl { .. })));
}

#[test]
fn what_was_learned_belongs_to_the_server_and_the_model() {
    let openai = OpenAi::new("m");
    assert!(openai.dialect().completion_tokens, "OpenAI's own word");
    let learned = Dialect { no_usage: true, ..openai.dialect() };
    let clone = openai.clone();
    openai.learn(&learned);
    assert_eq!(clone.dialect(), learned, "clones share it");
    assert_eq!(clone.with_model("n").dialect(), OpenAi::new("n").dialect());
    assert_eq!(openai.with_base_url("http://h").unwrap().dialect(), Dialect::default());
    let whole = OpenAi::new("m").without_streaming("no").with_base_url("http://h").unwrap().with_model("n");
    assert_eq!(whole.dialect().whole.as_deref(), Some("no"), "a setting stays");
}

#[test]
fn a_model_shows_no_secrets_and_can_be_sent() {
    fn check<T: Send + Sync + Clone + 'static>(_: &T) {}
    let openai = OpenAi::new("gpt").with_api_key("sk-secret").with_header("x-key", "k-secret").unwrap();
    check(&openai);
    let shown = format!("{openai:?}");
    assert!(
        shown.contains("gpt") && shown.contains("api.openai.com") && !shown.contains("secret"),
        "{shown}"
    );
}
