//! A program over `mainstem-model` alone: one trait for every model, decorated and asked.

use std::time::Duration;

use futures_util::StreamExt;
use mainstem_model::{IdleTimeout, Model, ModelDelta, ModelRequest, ScriptedModel, scripted::Turn};

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let script = ScriptedModel::new().agent("main", [Turn::new().text("Rome.")]);
    let model = IdleTimeout::new(script, Duration::from_secs(60));
    assert_eq!(answer(&model).await, "Rome.");
}

/// Any model answers here: a vendor's, one behind a gateway, a script.
async fn answer(model: &impl Model) -> String {
    let request = ModelRequest { agent: "main".into(), ..ModelRequest::default() };
    let deltas = model.stream(request);
    let texts = deltas.filter_map(async |delta| match delta {
        Ok(ModelDelta::Text(text)) => Some(text),
        _ => None,
    });
    texts.collect().await
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_program_runs() {
        super::main();
    }
}
