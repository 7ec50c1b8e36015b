//! AgentScope's Agent Protocol on both sides: our remote agents at our server of it, and at one that
//! does what AgentScope's does.

use mainstem::{model::scripted::Turn, prelude::*, spec};
use mainstem_server::{Protocol, Server, Tokens};
use serde_json::json;
use tokio::{net::TcpListener, task::JoinHandle};

use super::{builder, child_end, events, local, nameless, remote, scripts};
use crate::anywhere::TOKEN;

/// Serves a harness over the Agent Protocol.
async fn serve(harness: Harness) -> (String, JoinHandle<()>) {
    let tokens = Tokens::new().with_token(TOKEN, None).unwrap();
    let server = Server::new(harness).with_tokens(tokens).with_protocol(Protocol::AgentProtocol);
    let server = server.build().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    #[expect(clippy::disallowed_methods, reason = "aborted by the test")]
    let serving = tokio::spawn(async move { server.serve(listener, Default::default()).await.unwrap() });
    (url, serving)
}

fn far(id: &str, url: &str) -> AgentSpec {
    remote(id, url).with_protocol(spec::Protocol::AgentScope)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_is_the_fleet_that_one_process_has() {
    let all = ["main", "second", "third"]
        .into_iter()
        .fold(ScriptedModel::new(), |model, name| scripts(name, model));
    let one =
        builder("main", all).with_subagent(local("second")).with_subagent(local("third")).build().unwrap();
    let here = events(&one).await;
    let below =
        ["second", "third"].into_iter().fold(ScriptedModel::new(), |model, name| scripts(name, model));
    let second = builder("second", below).with_subagent(local("third")).build().unwrap();
    let (url, serving) = serve(second).await;
    let main = scripts("main", ScriptedModel::new());
    let first = builder("main", main).with_subagent(far("second", &url)).build().unwrap();
    let there = events(&first).await;
    assert_eq!(nameless(&there), nameless(&here));
    assert_eq!(child_end(&there, "second"), (Outcome::Success, ""));
    let _ = (Turn::new(), json!({}));
    serving.abort();
}
