//! Which processes may be signalled.

use super::*;

#[tokio::test]
async fn a_supervisor_that_was_waited_for_is_not_signalled() {
    let sleeps = |is_supervised| {
        let mut command = plain("sleep", &["60".to_owned()]);
        Process::new(command.process_group(0).spawn().unwrap(), is_supervised)
    };
    for is_supervised in [true, false] {
        let mut process = sleeps(is_supervised);
        assert!(process.kill_target().is_some());
        process.child.start_kill().unwrap();
        process.exited().await;
        // The rest of a group may still run.
        assert_eq!(process.kill_target().is_some(), !is_supervised);
    }
}
