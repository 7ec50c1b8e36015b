//! Over LangGraph's API, at a server of ours.

use mainstem::{model::scripted::Turn, prelude::*, spec::Protocol};
use mainstem_testing::render;

use super::{check_ended, check_unknown, continued};
use crate::{
    anywhere::serve_with,
    chain::{builder, child_end, events, remote},
    restart::{Whole, check_asks_again, check_cancel, check_live, far},
    speaks::Speaks,
    support::Spawns,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mainstem_server_runs_children_over_langgraphs_api() {
    let (url, serving) = serve_with(far().build().unwrap(), Some(mainstem_server::Protocol::LangGraph)).await;
    let main = [Turn::new().spawn("far", "look"), Turn::new().text("All done.")];
    let declared = remote("far", &format!("{url}/lg/assistants/far")).with_protocol(Protocol::LangGraph);
    let main = builder("main", ScriptedModel::new().agent("main", main)).with_subagent(declared);
    let events = events(&main.build().unwrap()).await;
    let text = render(&events);
    assert_eq!(child_end(&events, "far"), (Outcome::Success, ""), "{text}");
    assert_eq!(child_end(&events, "third"), (Outcome::Success, ""), "{text}");
    assert!(
        text.contains("third") && text.contains("TEXT_BLOCK_DELTA \"It is so, as I have seen\" ×7"),
        "{text}"
    );
    serving.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_of_langgraphs_api_goes_on_behind_each_event() {
    let whole = Whole::run(Speaks::LangGraph).await;
    let every = if std::env::var_os("RUN_SLOW_TESTS").is_some() { 1 } else { 3 };
    for cut in whole.while_it_is_known("langgraph.run").step_by(every) {
        let (events, task) = continued(&whole, cut).await;
        check_ended(cut, &events, &task, &whole);
    }
    // Our server keeps no metadata of runs.
    let (events, task) = continued(&whole, whole.just_begun()).await;
    check_unknown(&events, &task, "the server shows no metadata of runs to find it by");
    assert_eq!(whole.far_runs(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_goes_on_live_and_is_steered() {
    check_live(Speaks::LangGraph).await;
    check_cancel(Speaks::LangGraph).await;
    check_asks_again(Speaks::LangGraph).await;
}
