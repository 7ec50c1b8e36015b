//! Takes the network away, by a filter of system calls.

use std::io;

use nix::libc::{
    AF_UNIX, BPF_ABS, BPF_JMP, BPF_JSET, BPF_K, BPF_LD, BPF_RET, BPF_W, ENETUNREACH, SECCOMP_RET_ERRNO,
    SYS_io_uring_setup, SYS_socket,
};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    apply_filter, sock_filter,
};

/// The error of refused calls.
const REFUSED: u32 = ENETUNREACH.unsigned_abs();

/// Denies every socket other than file-system sockets to the calling thread and to every process
/// that it starts. This can't be lifted.
///
/// A network namespace, where the system allows one, has no network either. The filter also works
/// without namespaces, and gives the same error with and without them. It denies io_uring, which
/// can make sockets without that system call, and on x86-64 the numbers of x32, under which some
/// kernels have every system call a second time.
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
    let refused = SeccompAction::Errno(REFUSED);
    let arch = std::env::consts::ARCH.try_into()?;
    let filter = SeccompFilter::new(rules.into_iter().collect(), SeccompAction::Allow, refused, arch)?;
    let first = if cfg!(target_arch = "x86_64") { x32_refused() } else { Vec::new() };
    Ok([first, filter.try_into()?].concat())
}

/// Returns the instructions of a filter that refuse each system call by a number of x32. The
/// library's rules name single numbers.
fn x32_refused() -> BpfProgram {
    const X32: u32 = 0x4000_0000;
    let next = |code: u32, k: u32| sock_filter { code: code as u16, jt: 0, jf: 0, k };
    vec![
        // The number is the first field of what a filter sees.
        next(BPF_LD | BPF_W | BPF_ABS, 0),
        sock_filter { jf: 1, ..next(BPF_JMP | BPF_JSET | BPF_K, X32) },
        next(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | REFUSED),
    ]
}
