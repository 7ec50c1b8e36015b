//! A model server for clients in other languages: plays one script in each vendor's API until its
//! standard input ends.
//!
//! `cargo run -q -p mainstem-testing --example model_server` prints its address. Ask for the model
//! `scripted`.
#![expect(clippy::print_stdout, reason = "it tells its address")]

use mainstem_message::{StopReason, Usage};
use mainstem_model::{ScriptedModel, scripted::Turn};
use mainstem_testing::ModelServer;
use serde_json::json;
use tokio::io::AsyncReadExt;

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::io::Result<()> {
    let turns = [
        Turn::new()
            .thinking("Hm. ")
            .text("Two ")
            .text("calls.")
            .call("look", json!({ "at": "größe" }))
            .call("see", json!({}))
            .usage(Usage::new(12, 7))
            .stop(StopReason::ToolCalls),
        Turn::new().text("Done.").usage(Usage::new(20, 2)),
    ];
    let server = ModelServer::start(ScriptedModel::new().agent("scripted", turns)).await?;
    println!("{}", server.root_url());
    let mut rest = Vec::new();
    tokio::io::stdin().read_to_end(&mut rest).await?;
    Ok(())
}
