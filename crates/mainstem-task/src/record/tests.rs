//! Terminal states are final, and each change raises the version.

use proptest::prelude::*;

use super::*;

fn record() -> TaskRecord {
    let text = r#"{"id":"t","rootSessionId":"s","parentAgentId":"main","parentSessionId":"s","agentKey":"agent:a:1","agentId":"a",
        "task":"go","status":"pending","version":1,"createdAt":"2026-11-22T10:00:00Z","updatedAt":"2026-11-22T10:00:00Z"}"#;
    serde_json::from_str(text).unwrap()
}

fn change() -> impl Strategy<Value = TaskChange> {
    prop_oneof![
        Just(TaskChange::Run),
        Just(TaskChange::WaitForConfirm),
        Just(TaskChange::Complete { result: "done".into() }),
        Just(TaskChange::Fail { error: Failure::new("error", "no"), partial: None }),
        Just(TaskChange::Cancel { by: "me".into() }),
        Just(TaskChange::RequestCancel { by: "you".into() }),
        Just(TaskChange::Deliver),
        Just(TaskChange::Claim { executor: ExecutorId::new("x") }),
    ]
}

proptest! {
    #[test]
    fn terminal_is_final_and_versions_tell(changes in prop::collection::vec(change(), 0..12)) {
        let mut task = record();
        for (n, change) in changes.into_iter().enumerate() {
            let before = task.clone();
            let changed = task.apply(change, Timestamp::from_micros(n as u64 + 10));
            let same = TaskRecord { version: task.version, updated_at: task.updated_at, ..before.clone() };
            prop_assert_eq!(task.version - before.version, u64::from(task != same));
            if changed.is_err() {
                prop_assert_eq!(&task, &before);
            }
            if before.is_over() {
                let told = TaskRecord { delivered_at: task.delivered_at, ..same };
                prop_assert_eq!(&task, &told, "only whether its parent was told may change after the end");
            }
            prop_assert!(task.fence >= before.fence);
        }
    }
}

#[test]
fn an_illegal_change_says_what_was_wrong() {
    let mut task = record();
    let now = Timestamp::from_micros(1);
    task.apply(TaskChange::Run, now).unwrap();
    task.apply(TaskChange::Cancel { by: "the user".into() }, now).unwrap();
    let refused = task.apply(TaskChange::Complete { result: String::new() }, now).unwrap_err();
    assert_eq!(refused.to_string(), "task t is cancelled and can't become completed");
    assert_eq!(task.cancel.map(|cancel| cancel.by).as_deref(), Some("the user"));
}
