//! A thousand children in one session, over HTTP.

use std::collections::HashMap;

use mainstem::{model::scripted::Turn, prelude::*};
use mainstem_testing::{ModelServer, laws};

use crate::support::{Spawns, ms};

const CHILDREN: usize = 1000;
const AT_ONCE: usize = 100;

#[tokio::test]
async fn a_thousand_children_end_once_each_and_leave_nothing_behind() {
    let begin = tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let calls = (0..CHILDREN).fold(Turn::new(), |turn, n| turn.spawn("kid", &format!("task {n}")));
    let model = ScriptedModel::new()
        .agent_on("m", "go", [calls, Turn::new().text("Done.")])
        // Slow enough that, on a busy machine, too, all slots are taken before the first is free
        // again.
        .agent("m", [Turn::new().pace(ms(20)).say("one two three")]);
    let server = ModelServer::start(model).await.unwrap();
    let model = OpenAi::new("m").with_base_url(&server.base_url()).unwrap();
    let harness = Harness::builder("main", model)
        .with_subagent(AgentSpec::new("kid", "K"))
        .with_max_children(AT_ONCE)
        .build()
        .unwrap();
    let (mut ends, mut live, mut most) = (HashMap::new(), 0_usize, 0);
    let mut run = harness.stream_events("go");
    let mut events = Vec::new();
    while let Some(event) = run.next().await {
        match &event.kind {
            EventKind::AgentStart { .. } if !event.is_root() => live += 1,
            EventKind::AgentEnd { outcome, .. } => {
                assert_eq!(*outcome, Outcome::Success);
                *ends.entry(event.agent_key().cloned()).or_insert(0) += 1;
                live -= usize::from(!event.is_root());
            }
            _ => {}
        }
        most = most.max(live);
        events.push(event);
    }
    laws(&events).unwrap();
    assert_eq!(ends.len(), CHILDREN + 1);
    assert!(ends.values().all(|times| *times == 1));
    assert_eq!(most, AT_ONCE);
    assert_eq!(server.requests().len(), CHILDREN + 2, "no request is repeated");
    harness.shutdown(ms(100)).await;
    drop((harness, run, server));
    // The remaining tasks are connections that detect that their client has left.
    let left = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    for _ in 0..1000 {
        if left() == begin {
            break;
        }
        tokio::time::sleep(ms(5)).await;
    }
    assert_eq!(left(), begin);
}
