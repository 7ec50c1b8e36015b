//! The lists of models of all providers, as their documentation shows them.

use mainstem::provider::{Setup, provider};
use mainstem_testing::raw::{Server, whole};

const JSON: &str = "content-type: application/json\r\n";

/// Checks what a provider lists, a line each, and the paths that it asks for.
async fn check(name: &str, pages: &[&str], paths: &[&str], expected: Result<&[&str], &str>) {
    let row = provider(name).unwrap();
    let mut server = Server::start(pages.iter().map(|page| whole("200 OK", JSON, page)).collect()).await;
    let var = |name: &str| match name {
        name if name == row.base_url => Some(server.url()),
        name if name == row.key => Some("a-key-that-is-secret".to_owned()),
        _ => None,
    };
    let listed = row.models(&Setup::new(&var)).await;
    let shown = |number: Option<u64>| number.map_or_else(|| "-".to_owned(), |number| number.to_string());
    let lines = listed.map(|models| {
        let line = |model: &mainstem::http::ListedModel| {
            format!("{} {} {}", model.id, shown(model.context_window), shown(model.max_output_tokens))
        };
        models.iter().map(line).collect::<Vec<_>>()
    });
    match (lines, expected) {
        (Ok(lines), Ok(expected)) => assert_eq!(lines, expected, "{name}"),
        (Err(error), Err(expected)) => {
            assert_eq!(error.to_string().replace(&server.host(), "HOST"), expected)
        }
        (lines, expected) => panic!("{name}: {lines:?} instead of {expected:?}"),
    }
    for path in paths {
        let request = server.request().await;
        let start = request.lines().next().unwrap();
        assert_eq!(start, format!("GET {path} HTTP/1.1"), "{name}");
        assert!(request.contains("a-key-that-is-secret"), "{name}: {request}");
    }
}

#[tokio::test]
async fn each_api_lists_its_models() {
    // https://platform.openai.com/docs/api-reference/models/list
    let openai = r#"{"object":"list","data":[{"id":"gpt-4o","object":"model","created":1,"owned_by":"openai"},{"object":"?"}]}"#;
    for name in ["openai", "responses", "deepseek"] {
        check(name, &[openai], &["/models"], Ok(&["gpt-4o - -"])).await;
    }
    check("azure", &[openai], &["/openai/v1/models"], Ok(&["gpt-4o - -"])).await;
    // https://platform.claude.com/docs/en/api/models/list
    let first = r#"{"data":[{"id":"claude-opus-5","type":"model","max_input_tokens":1000000,"max_tokens":128000}],"first_id":"claude-opus-5","has_more":true,"last_id":"claude-opus-5"}"#;
    let last = r#"{"data":[{"id":"claude-haiku-4-5","type":"model"}],"has_more":false,"last_id":"claude-haiku-4-5"}"#;
    let paths = ["/v1/models?limit=1000", "/v1/models?limit=1000&after_id=claude-opus-5"];
    let models = ["claude-opus-5 1000000 128000", "claude-haiku-4-5 - -"];
    check("anthropic", &[first, last], &paths, Ok(&models)).await;
    // https://ai.google.dev/api/models#method:-models.list
    let first = r#"{"models":[{"name":"models/gemini-2.5-pro","inputTokenLimit":1048576,"outputTokenLimit":65536,"supportedGenerationMethods":["generateContent","countTokens"]},{"name":"models/embedding-001","supportedGenerationMethods":["embedContent"]}],"nextPageToken":"a=b"}"#;
    let last =
        r#"{"models":[{"name":"models/gemma-3-27b-it","inputTokenLimit":131072,"outputTokenLimit":8192}]}"#;
    let paths = ["/v1beta/models?pageSize=1000", "/v1beta/models?pageSize=1000&pageToken=a%3Db"];
    let models = ["gemini-2.5-pro 1048576 65536", "gemma-3-27b-it 131072 8192"];
    check("gemini", &[first, last], &paths, Ok(&models)).await;
    // https://docs.ollama.com/api/tags
    let tags = r#"{"models":[{"name":"qwen3:8b","model":"qwen3:8b","size":5,"details":{"family":"qwen3"}}]}"#;
    check("ollama", &[tags], &["/api/tags"], Ok(&["qwen3:8b - -"])).await;
    // https://openrouter.ai/docs/api/api-reference/models/get-models
    let openrouter = r#"{"data":[{"id":"openai/gpt-4","context_length":8192,"top_provider":{"context_length":8192,"max_completion_tokens":4096}}]}"#;
    check("openrouter", &[openrouter], &["/models"], Ok(&["openai/gpt-4 8192 4096"])).await;
    // https://console.groq.com/docs/api-reference#models-list
    let groq = r#"{"object":"list","data":[{"id":"llama3-8b-8192","context_window":8192,"max_completion_tokens":8192}]}"#;
    check("groq", &[groq], &["/openai/v1/models"], Ok(&["llama3-8b-8192 8192 8192"])).await;
    // https://docs.mistral.ai/api/#tag/models
    let mistral = r#"{"object":"list","data":[{"id":"ministral-8b-latest","max_context_length":32768}]}"#;
    check("mistral", &[mistral], &["/models"], Ok(&["ministral-8b-latest 32768 -"])).await;
    // https://docs.together.ai/reference/models-1
    let together = r#"[{"id":"meta-llama/Llama-3","object":"model","context_length":8192}]"#;
    check("together", &[together], &["/models"], Ok(&["meta-llama/Llama-3 8192 -"])).await;
    let vllm = r#"{"object":"list","data":[{"id":"Qwen/Qwen3-8B","object":"model","max_model_len":40960}]}"#;
    check("vllm", &[vllm], &["/v1/models"], Ok(&["Qwen/Qwen3-8B 40960 -"])).await;
}

#[tokio::test]
async fn a_list_that_is_none_is_an_error_without_secrets() {
    let page = r#"{"no":"a-key-that-is-secret"}"#;
    let error = r#"HOST sent what is no list of models: it has no models: {"no":"[secret]"}"#;
    for name in ["openai", "anthropic", "gemini", "ollama"] {
        check(name, &[page], &[], Err(error)).await;
    }
    let endless = r#"{"data":[{"id":"m"}],"has_more":true,"last_id":"m"}"#;
    let error = "HOST has a list of models with more than 50 pages";
    check("anthropic", &[endless; 50], &[], Err(error)).await;
}
