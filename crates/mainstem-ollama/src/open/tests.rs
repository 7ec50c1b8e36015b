//! Who is advised what.

use super::*;

#[test]
fn only_an_ollama_on_a_machine_can_pull_and_sign_in() {
    let check = |model: &Ollama, status: u16, said: &str, expected: Option<&str>| {
        assert_eq!(advice(model, status, said).as_deref(), expected, "{status} {said}");
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
