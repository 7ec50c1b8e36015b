//! The list of models, as OpenAI and the services with its APIs write it.

use mainstem_http::{ListedModel, ModelPage};
use serde_json::Value;

/// Context windows at OpenRouter and Together, Groq, Mistral, and vLLM.
const WINDOWS: [&str; 4] = ["context_length", "context_window", "max_context_length", "max_model_len"];

/// Output limits at OpenRouter and Groq.
const OUTPUTS: [&str; 2] = ["top_provider/max_completion_tokens", "max_completion_tokens"];

/// Reads a list: `data`, or at Together the whole document.
pub(crate) fn page(page: &Value) -> Option<ModelPage> {
    let entries = page.get("data").unwrap_or(page).as_array()?;
    let models = entries.iter().filter_map(|entry| ListedModel::read(entry, "id", &WINDOWS, &OUTPUTS));
    Some(ModelPage { models: models.collect(), next: None })
}
