//! The services that offer OpenAI's APIs: their addresses, variables and names in traces, each as
//! its documentation has them. What a vendor does otherwise is in the dialects.

use mainstem_http::{Service, Variables};

/// [OpenAI](https://platform.openai.com/docs/api-reference), with the variables that its own
/// libraries read.
pub const OPENAI: Service =
    Service::new("openai", "https://api.openai.com/v1", OPENAI_VARIABLES).with_key_hosts(&["api.openai.com"]);

const OPENAI_VARIABLES: Variables = Variables {
    headers: &[("OPENAI_ORG_ID", ORGANIZATION), ("OPENAI_PROJECT_ID", PROJECT)],
    ..Variables::new("OPENAI_API_KEY", "OPENAI_BASE_URL")
};

pub(crate) const ORGANIZATION: &str = "openai-organization";
pub(crate) const PROJECT: &str = "openai-project";

/// [Azure OpenAI](https://learn.microsoft.com/azure/foundry/openai/api-version-lifecycle), by its
/// API v1, which needs no `api-version`. A model's name is that of its deployment.
///
/// The base URL is the resource's endpoint, such as `https://res.openai.azure.com`; a URL with a
/// path is used as it is. A token of Entra ID is read where OpenAI's library reads it.
pub const AZURE: Service = Service {
    base_url: None,
    path: "openai/v1",
    ..Service::new("azure.ai.openai", "", AZURE_VARIABLES)
        .with_key_hosts(&["openai.azure.com", "services.ai.azure.com", "cognitiveservices.azure.com"])
        .with_key_header("api-key")
};

const AZURE_VARIABLES: Variables = Variables {
    token: Some("AZURE_OPENAI_AD_TOKEN"),
    ..Variables::new("AZURE_OPENAI_API_KEY", "AZURE_OPENAI_ENDPOINT")
};

/// [OpenRouter](https://openrouter.ai/docs/api/reference/overview); OpenTelemetry has no name for
/// it.
pub const OPENROUTER: Service = Service::new(
    "openrouter",
    "https://openrouter.ai/api/v1",
    Variables::new("OPENROUTER_API_KEY", "OPENROUTER_BASE_URL"),
)
.with_key_hosts(&["openrouter.ai"]);

/// [Groq](https://console.groq.com/docs/openai). `GROQ_BASE_URL` has no path in Groq's own library.
pub const GROQ: Service = Service {
    path: "openai/v1",
    ..Service::new("groq", "https://api.groq.com/openai/v1", Variables::new("GROQ_API_KEY", "GROQ_BASE_URL"))
        .with_key_hosts(&["api.groq.com"])
};

/// [DeepSeek](https://api-docs.deepseek.com).
pub const DEEPSEEK: Service = Service::new(
    "deepseek",
    "https://api.deepseek.com",
    Variables::new("DEEPSEEK_API_KEY", "DEEPSEEK_BASE_URL"),
)
.with_key_hosts(&["api.deepseek.com"]);

/// [Mistral](https://docs.mistral.ai/api).
pub const MISTRAL: Service = Service::new(
    "mistral_ai",
    "https://api.mistral.ai/v1",
    Variables::new("MISTRAL_API_KEY", "MISTRAL_BASE_URL"),
)
.with_key_hosts(&["api.mistral.ai"]);

/// [xAI](https://docs.x.ai/developers/model-capabilities/text/comparison), which recommends the
/// Responses API: its chat completions are deprecated, and have no reasoning.
pub const XAI: Service =
    Service::new("x_ai", "https://api.x.ai/v1", Variables::new("XAI_API_KEY", "XAI_BASE_URL"))
        .with_key_hosts(&["api.x.ai"]);

/// [Together](https://docs.together.ai/docs/inference/openai-compatibility); OpenTelemetry has no
/// name for it.
pub const TOGETHER: Service = Service::new(
    "together",
    "https://api.together.ai/v1",
    Variables::new("TOGETHER_API_KEY", "TOGETHER_BASE_URL"),
)
.with_key_hosts(&["api.together.ai", "api.together.xyz"]);

/// [vLLM](https://docs.vllm.ai/en/stable/serving/openai_compatible_server.html) on this machine,
/// which reads its own key from the same variable.
pub const VLLM: Service = Service {
    path: "v1",
    ..Service::new("vllm", "http://localhost:8000/v1", Variables::new("VLLM_API_KEY", "VLLM_BASE_URL"))
};

/// [LM Studio](https://lmstudio.ai/docs/developer/openai-compat) on this machine.
pub const LMSTUDIO: Service = Service {
    path: "v1",
    ..Service::new(
        "lmstudio",
        "http://localhost:1234/v1",
        Variables::new("LM_API_TOKEN", "LMSTUDIO_BASE_URL"),
    )
};
