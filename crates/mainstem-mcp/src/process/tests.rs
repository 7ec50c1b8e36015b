//! Who may be signalled.

use super::*;

#[tokio::test]
async fn a_keeper_that_was_waited_for_is_not_signalled() {
    let sleeps = |is_kept| {
        let mut command = plain("sleep", &["60".to_owned()]);
        Process::new(command.process_group(0).spawn().unwrap(), is_kept)
    };
    for is_kept in [true, false] {
        let mut process = sleeps(is_kept);
        assert!(process.held().is_some());
        process.child.start_kill().unwrap();
        process.exited().await;
        // The rest of a group may live on.
        assert_eq!(process.held().is_some(), !is_kept);
    }
}
