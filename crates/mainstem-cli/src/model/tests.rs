//! Which model is chosen, and what is wrong with settings.

use std::path::PathBuf;

use super::*;
use crate::config::providers::ProviderName;

fn provider(name: &str) -> ProviderName {
    ProviderName::of(name).unwrap()
}

fn settings(model: Option<&str>, base_url: Option<&str>, key: Option<&str>) -> Settings {
    let said = |value: &str| Setting::new(value.to_owned(), "FILE");
    let mut settings = Settings { model: model.map(said), ..Settings::default() };
    settings.workspace = Some(Setting::new(PathBuf::from("ws"), "FILE"));
    let access = Access {
        base_url: base_url.map(said),
        api_key_env: key.map(|name| Setting::new(VariableName(name.to_owned()), "FILE")),
        ..Access::default()
    };
    settings.providers.insert(provider("openai"), access);
    settings
}

#[test]
fn a_name_goes_before_what_a_key_or_a_server_suggest() {
    let check = |model, url, key, env: &[&str], expected: &str| {
        let var = |name: &str| env.contains(&name).then(|| "x".to_owned());
        let chosen = choose(&settings(model, url, key), var);
        let chosen =
            chosen.map_or_else(|| "none".to_owned(), |said| format!("{} ({})", said.value, said.origin));
        assert_eq!(chosen, expected);
    };
    check(None, None, None, &[], "none");
    check(None, None, None, &["PATH"], "none");
    check(None, None, None, &["OPENAI_API_KEY"], "openai:gpt-4o-mini (OPENAI_API_KEY)");
    check(None, None, None, &["ANTHROPIC_API_KEY"], "anthropic:claude-haiku-4-5 (ANTHROPIC_API_KEY)");
    check(
        None,
        None,
        None,
        &["GEMINI_API_KEY", "ANTHROPIC_BASE_URL"],
        "anthropic:claude-haiku-4-5 (ANTHROPIC_BASE_URL)",
    );
    check(None, None, None, &["GEMINI_API_KEY"], "gemini:gemini-2.5-flash (GEMINI_API_KEY)");
    check(None, None, Some("K"), &["K"], "openai:gpt-4o-mini (FILE)");
    check(None, Some("http://h/v1"), None, &[], "openai:gpt-4o-mini (FILE)");
    check(Some("demo"), Some("http://h/v1"), Some("K"), &["OPENAI_API_KEY"], "demo (FILE)");
}

fn no_var(_: &str) -> Option<String> {
    None
}

#[test]
fn what_cannot_be_used_is_said_with_its_place() {
    let check = |settings: Settings, expected: &str| {
        let error = registry(&settings, 0.0, no_var).unwrap_err();
        assert_eq!(format!("{error:#}"), expected);
    };
    check(
        settings(None, Some("nowhere"), None),
        "FILE: the base URL \"nowhere\" can't be used: it must begin with http:// or https://, such as \"http://nowhere\"",
    );
    check(settings(None, None, Some("MY_KEY")), "FILE: the variable MY_KEY for the key is not set");
    let with_header = |name: &str, value: &str| {
        let mut settings = settings(None, None, None);
        let access = settings.providers.entry(provider("anthropic")).or_default();
        access.headers.insert(name.to_owned(), Setting::new(value.to_owned(), "FILE"));
        settings
    };
    check(with_header("x", "a ${TOKEN}"), "FILE: the variable TOKEN is not set");
    check(with_header("x", "${TOKEN"), "FILE: a `${` without its `}`");
    check(
        with_header("x y", "z"),
        "FILE: the header \"x y\" can't be sent: its name has characters that none may have",
    );
}

#[test]
fn unknown_models_name_the_known() {
    let registry = registry(&settings(None, None, None), 0.0, no_var).unwrap();
    let check =
        |name, expected: &str| assert_eq!(registry.resolve(name).err().unwrap().to_string(), expected);
    check(
        "opt-4o",
        "unknown model \"opt-4o\"; known: demo, anthropic:…, azure:…, deepseek:…, gemini:…, groq:…, lmstudio:…, mistral:…, ollama:…, openai:…, openrouter:…, responses:…, together:…, vllm:…, xai:…",
    );
    check(
        "gpt-4o",
        "model \"gpt-4o\" can't be used: OPENAI_API_KEY is not set; set it, or set OPENAI_BASE_URL to a server that needs no key",
    );
    check(
        "openai:gpt-4o",
        "model \"openai:gpt-4o\" can't be used: OPENAI_API_KEY is not set; set it, or set OPENAI_BASE_URL to a server that needs no key",
    );
    check(
        "gemini:",
        "model \"gemini:\" can't be used: the name has no model; write it like gemini:gemini-2.5-flash",
    );
    assert!(registry.resolve("demo").is_ok());
}
