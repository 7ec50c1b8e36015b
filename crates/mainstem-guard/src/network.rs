//! No network, by a filter of system calls.

use std::io;

use nix::libc::{AF_UNIX, ENETUNREACH, SYS_io_uring_setup, SYS_socket};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    apply_filter,
};

/// Denies every socket other than file-system sockets to the calling thread and to every process that it starts. This can't be lifted.
///
/// A network namespace, where the system allows one, has no network either. The filter also works without namespaces, and gives the same
/// error with and without them. It denies io_uring, which can make sockets without that system call.
pub(crate) fn switch_off() -> io::Result<()> {
    let program = program().map_err(|error| {
        io::Error::other(format!("the network can't be switched off on this machine: {error}"))
    })?;
    apply_filter(&program).map_err(|error| {
        io::Error::other(format!("the network can't be switched off on this machine: {error}"))
    })
}

fn program() -> Result<BpfProgram, seccompiler::BackendError> {
    let family = u64::from(AF_UNIX.unsigned_abs());
    let other = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, family)?;
    let rules = [(SYS_socket, vec![SeccompRule::new(vec![other])?]), (SYS_io_uring_setup, Vec::new())];
    let refused = SeccompAction::Errno(ENETUNREACH.unsigned_abs());
    let arch = std::env::consts::ARCH.try_into()?;
    SeccompFilter::new(rules.into_iter().collect(), SeccompAction::Allow, refused, arch)?.try_into()
}
