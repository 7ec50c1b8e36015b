//! Settings, wherever they come from.

use mainstem_message::ToolSpec;

use super::*;

fn from_vars(vars: &[(&str, &str)]) -> Result<Ollama, ConfigError> {
    let var = |name: &str| vars.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned());
    Ollama::from_vars("m", var)
}

#[test]
fn the_environment_is_read_as_ollama_reads_it() {
    let nothing = from_vars(&[]).unwrap();
    assert_eq!(nothing.server.url().as_str(), "http://127.0.0.1:11434/api/chat");
    assert!(nothing.server.headers().unwrap().is_empty(), "no key is needed");

    let both = from_vars(&[("OLLAMA_HOST", "https://ollama.com\n"), ("OLLAMA_API_KEY", " k-1 ")]).unwrap();
    assert_eq!(both.server.url().as_str(), "https://ollama.com/api/chat");
    assert_eq!(both.server.headers().unwrap()["authorization"], "Bearer k-1");

    let error = from_vars(&[("OLLAMA_HOST", "ollama.com"), ("OLLAMA_API_KEY", " ")]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "OLLAMA_API_KEY is not set; set it, or set OLLAMA_HOST to a server that needs no key"
    );
    assert!(matches!(from_vars(&[("OLLAMA_HOST", "ftp://h")]), Err(ConfigError::BaseUrl { .. })));
}

#[test]
fn another_model_keeps_the_settings() {
    let ollama =
        Ollama::new("m").with_base_url("h").unwrap().with_api_key("k").with_num_ctx(1).with_model("n");
    assert_eq!((ollama.name(), ollama.server.host(), ollama.num_ctx), ("n", "h:11434", Some(1)));
    assert!(ollama.server.has_key());
}

#[test]
fn a_schema_is_held_without_tools_and_on_ones_own_machine() {
    let plain = ModelRequest::default();
    assert!(Ollama::new("qwen3:8b").holds_schema(&plain));
    for cloud in ["gpt-oss:120b-cloud", "glm-5:cloud"] {
        assert!(!Ollama::new(cloud).holds_schema(&plain), "{cloud}");
    }
    assert!(!Ollama::new("qwen3").with_base_url("ollama.com").unwrap().holds_schema(&plain));
    let tools = [ToolSpec::new("f", "", serde_json::json!({}))].into();
    assert!(!Ollama::new("qwen3").holds_schema(&ModelRequest { tools, ..plain }));
}

#[test]
fn a_model_shows_no_secrets_and_can_be_sent() {
    fn check<T: Send + Sync + Clone + 'static>(_: &T) {}
    let ollama = Ollama::new("qwen3").with_api_key("k-secret").with_header("x-key", "h-secret").unwrap();
    check(&ollama);
    let shown = format!("{ollama:?}");
    assert!(
        shown.contains("qwen3") && shown.contains("127.0.0.1:11434") && !shown.contains("secret"),
        "{shown}"
    );
}
