//! For tests: this test binary as the program that guards.

use crate::Program;

/// This test binary, by the test below.
pub(crate) fn program() -> Program {
    let itself = Program::new(std::env::current_exe().unwrap());
    ["--exact", "rig::guards", "--nocapture", "--test-threads=1"].into_iter().fold(itself, Program::with_arg)
}

/// A process that was started as a guard runs the guard here.
#[test]
fn guards() {
    crate::take_role();
}
