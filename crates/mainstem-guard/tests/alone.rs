//! A command on a system that allows a user namespace but refuses its map of ids. This program is
//! its own guard.

#[cfg(target_os = "linux")]
fn main() {
    mainstem_guard::init();
    linux::a_namespace_that_can_not_be_completed_is_none();
}

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
#[expect(clippy::unwrap_used, clippy::print_stderr, reason = "it is a test without the harness")]
mod linux {
    use std::{
        env, fs,
        io::Write,
        os::unix::fs::PermissionsExt,
        process::{Command, Stdio},
    };

    use mainstem_guard::Job;

    /// A system that lets all users make a user namespace and refuses its map of ids.
    pub(super) fn a_namespace_that_can_not_be_completed_is_none() {
        if !rustix::process::geteuid().is_root() {
            return not_applicable("only root can make the system refuse it");
        }
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let program = dir.path().join("program");
        fs::copy(env::current_exe().unwrap(), &program).unwrap();
        let user = "exec setpriv --reuid 4242 --regid 4242 --clear-groups \"$@\"";
        let refusing = format!("mount --bind /proc /proc && mount -o remount,bind,ro /proc && {user}");
        for (setup, has_own_processes) in [(refusing.as_str(), false), (user, true)] {
            let mut guard = Command::new("unshare");
            guard.args(["--mount", "sh", "-c", setup, "sh"]).arg(&program);
            guard.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("MAINSTEM_GUARD", "guard");
            guard.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
            let mut guard = guard.current_dir("/tmp").spawn().unwrap();
            let mut stdin = guard.stdin.take().unwrap();
            let job = Job::new(["sh", "-c", "id -u; id -g"].map(str::to_owned).into());
            stdin.write_all(job.to_line().unwrap().as_bytes()).unwrap();
            let output = guard.wait_with_output().unwrap();
            drop(stdin);
            let [reports, printed] =
                [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
            assert_eq!(printed, "4242\n4242\n", "{reports}");
            if !reports.contains(&format!("\"has_own_processes\":{has_own_processes}")) {
                assert!(has_own_processes, "{reports}");
                not_applicable("this machine gives others than root no namespaces");
            }
        }
    }

    /// Prints why something can't be tested on this machine; in CI, fails.
    fn not_applicable(why: &str) {
        assert!(env::var_os("CI").is_none(), "in CI it must be tested: {why}");
        eprintln!("not applicable: {why}");
    }
}
