//! Settings, schemas, and advice.

use mainstem_message::ToolSpec;
use mainstem_model::Model;

use super::*;

fn from_vars(vars: &[(&str, &str)]) -> Result<Ollama, ConfigError> {
    let var = |name: &str| vars.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned());
    Ollama::from_vars("m", var)
}

#[test]
fn a_key_is_for_the_cloud() {
    let nothing = from_vars(&[]).unwrap();
    assert_eq!(nothing.server().url().as_str(), "http://127.0.0.1:11434/api/chat");
    assert!(nothing.server().headers().unwrap().is_empty(), "no key is needed");

    let both = from_vars(&[("OLLAMA_HOST", "https://ollama.com\n"), ("OLLAMA_API_KEY", " k-1 ")]).unwrap();
    assert_eq!(both.server().url().as_str(), "https://ollama.com/api/chat");
    assert_eq!(both.server().headers().unwrap()["authorization"], "Bearer k-1");

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
    assert_eq!((ollama.name(), ollama.server().host(), ollama.api().num_ctx), ("n", "h:11434", Some(1)));
    assert!(ollama.server().has_key());
}

#[test]
fn a_schema_is_held_without_tools_and_on_ones_own_machine() {
    let plain = ModelRequest::default();
    assert!(Ollama::new("qwen3:8b").can_enforce_schema(&plain));
    for cloud in ["gpt-oss:120b-cloud", "glm-5:cloud"] {
        assert!(!Ollama::new(cloud).can_enforce_schema(&plain), "{cloud}");
    }
    assert!(!Ollama::new("qwen3").with_base_url("ollama.com").unwrap().can_enforce_schema(&plain));
    let tools = [ToolSpec::new("f", "", serde_json::json!({}))].into();
    assert!(!Ollama::new("qwen3").can_enforce_schema(&ModelRequest { tools, ..plain }));
}

#[test]
fn only_an_ollama_on_a_machine_can_pull_and_sign_in() {
    let check = |ollama: &Ollama, status: u16, said: &str, expected: Option<&str>| {
        let error = ServerError::of(status, said);
        let advice = Chat::advice(ollama.name(), ollama.server(), &error);
        assert_eq!(advice.as_deref(), expected, "{status} {said}");
    };
    let pull = Some("; run `ollama pull qwen3:8b`");
    let local = Ollama::new("qwen3:8b");
    check(&local, 404, "model 'qwen3:8b' not found", pull);
    check(&local, 404, "404 page not found", None);
    check(&local, 400, "model 'qwen3:8b' not found", None);
    check(&local, 401, "unauthorized", Some("; run `ollama signin`"));
    check(&local.clone().with_api_key("k"), 401, "unauthorized", None);
    let cloud = local.with_base_url("ollama.com").unwrap();
    check(&cloud, 404, "model 'qwen3:8b' not found", None);
    check(&cloud, 401, "unauthorized", None);
}
