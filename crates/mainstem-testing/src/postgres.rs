//! A PostgreSQL server for one test, from the machine's package.
#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::{
    fs,
    io::{BufRead, BufReader},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use tempfile::TempDir;

/// How long a server may take to start.
const START: Duration = Duration::from_secs(30);

/// The superuser of the servers. It has no password: they listen on the loopback interface alone.
const USER: &str = "postgres";

/// A server with an empty database, and files of its own. It is killed when this is dropped, and
/// when the thread that started it ends.
///
/// Needs Debian's package `postgresql`, or `initdb` and `postgres` in `PATH`. As root it runs as
/// the user `postgres`, since PostgreSQL refuses to run as root.
#[derive(Debug)]
pub struct Postgres {
    files: TempDir,
    port: u16,
    server: Child,
}

impl Postgres {
    /// Starts a server.
    ///
    /// # Panics
    /// If the package is missing, or the server does not start.
    pub fn start() -> Self {
        let files = tempfile::Builder::new().prefix("mainstem-postgres-").tempdir().expect("a folder");
        open_to_all(files.path());
        run(Command::new("cp").arg("-a").arg(template()).arg(files.path().join("data")));
        let port = free_port();
        let server = serve(files.path(), port);
        Self { files, port, server }
    }

    /// Returns the URL of its database.
    pub fn url(&self) -> String {
        self.url_at(self.port)
    }

    /// Returns the URL of its database through a proxy at another port.
    pub fn url_at(&self, port: u16) -> String {
        format!("postgres://{USER}@127.0.0.1:{port}/postgres?sslmode=disable")
    }

    /// Returns its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Stops it at once, as a crash of the machine would, but for what the disk has.
    pub fn stop(&mut self) {
        if self.server.try_wait().is_ok_and(|status| status.is_none()) {
            signal("QUIT", self.server.id());
            let _ = self.server.wait();
        }
    }

    /// Starts it again, with the same files and port.
    ///
    /// # Panics
    /// If it does not start.
    pub fn start_again(&mut self) {
        self.server = serve(self.files.path(), self.port);
    }

    /// Starts a replica that has every committed transaction: from now on a commit waits for it
    /// (synchronous replication). [`Replica::promote`] makes it the server.
    ///
    /// # Panics
    /// If it does not start, or does not follow.
    pub fn replicate(&self) -> Replica {
        let files = tempfile::Builder::new().prefix("mainstem-replica-").tempdir().expect("a folder");
        open_to_all(files.path());
        let (data, port) = (files.path().join("data"), free_port());
        let mut copy = as_user(&program("pg_basebackup"));
        copy.arg("-D").arg(&data).args(["--checkpoint=fast", "--no-sync", "--write-recovery-conf"]);
        run(copy.args(["-X", "stream", "-d", &self.url()]));
        let server = serve(files.path(), port);
        self.sql("ALTER SYSTEM SET synchronous_standby_names = '*'");
        self.sql("SELECT pg_reload_conf()");
        let begun = Instant::now();
        while self.sql("SELECT sync_state FROM pg_stat_replication") != "sync" {
            assert!(begun.elapsed() < START, "the replica does not follow");
            thread::sleep(Duration::from_millis(10));
        }
        Replica(Self { files, port, server })
    }

    /// Makes it refuse connections to its database over the network but for those of a role with
    /// TLS and its password; the superuser's go on as before. Returns the file with the certificate
    /// of its authority, which is for the name `localhost`.
    ///
    /// # Panics
    /// If that fails; it needs `openssl`, which comes with the package.
    pub fn secure(&self, role: &str, password: &str) -> PathBuf {
        let folder = self.files.path();
        let new = |name: &str| {
            let mut openssl = as_user(Path::new("openssl"));
            openssl.args(["req", "-x509", "-nodes", "-days", "2", "-newkey", "ec"]).current_dir(folder);
            openssl.args(["-pkeyopt", "ec_paramgen_curve:P-256", "-subj", &format!("/CN={name}")]);
            openssl.args(["-keyout", &format!("{name}.key"), "-out", &format!("{name}.pem")]);
            openssl
        };
        run(&mut new("authority"));
        run(new("localhost").args(["-CA", "authority.pem", "-CAkey", "authority.key"]).args([
            "-addext",
            "subjectAltName=DNS:localhost",
            "-addext",
            "basicConstraints=critical,CA:FALSE",
        ]));
        let rules = format!(
            "host all {USER} 127.0.0.1/32 trust\nhost replication {USER} 127.0.0.1/32 trust\n\
             hostssl all {role} 127.0.0.1/32 scram-sha-256\n"
        );
        fs::write(folder.join("data/pg_hba.conf"), rules).expect("the database's rules");
        self.sql(&format!("CREATE ROLE {role} LOGIN PASSWORD '{password}'"));
        for (setting, file) in [("ssl_cert_file", "localhost.pem"), ("ssl_key_file", "localhost.key")] {
            self.sql(&format!("ALTER SYSTEM SET {setting} = '{}'", folder.join(file).display()));
        }
        self.sql("ALTER SYSTEM SET ssl = on");
        self.sql("SELECT pg_reload_conf()");
        let begun = Instant::now();
        while self.sql("SHOW ssl") != "on" {
            let log = || fs::read_to_string(folder.join("log")).unwrap_or_default();
            assert!(begun.elapsed() < START, "it does not use TLS: {}", log());
            thread::sleep(Duration::from_millis(10));
        }
        folder.join("authority.pem")
    }

    /// Runs statements with `psql`. Returns what it prints: rows, with `|` between columns.
    ///
    /// # Panics
    /// If one of them fails.
    pub fn sql(&self, statements: &str) -> String {
        let mut psql = Command::new(program("psql"));
        psql.args(["-X", "-q", "-t", "-A", "-v", "ON_ERROR_STOP=1", "-c", statements, &self.url()]);
        let output = psql.output().expect("psql");
        assert!(output.status.success(), "{statements}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Writes a backup to a file with `pg_dump`, with these arguments besides the database.
    ///
    /// # Panics
    /// If that fails.
    pub fn dump(&self, file: &Path, arguments: &[&str]) {
        run(Command::new(program("pg_dump")).args(arguments).arg("--file").arg(file).arg(self.url()));
    }

    /// Restores a backup from a file with `pg_restore`.
    ///
    /// # Panics
    /// If that fails.
    pub fn restore(&self, file: &Path, arguments: &[&str]) {
        let mut restore = Command::new(program("pg_restore"));
        run(restore.args(arguments).arg("--exit-on-error").arg("--dbname").arg(self.url()).arg(file));
    }
}

/// A server that follows another: see [`Postgres::replicate`].
#[derive(Debug)]
pub struct Replica(Postgres);

impl Replica {
    /// Makes it a server that accepts writes, at a port of its own. Stop the server that it follows
    /// first.
    ///
    /// # Panics
    /// If that fails.
    pub fn promote(self) -> Postgres {
        let mut promote = as_user(&program("pg_ctl"));
        run(promote.args(["promote", "--wait", "--silent", "-D"]).arg(self.0.files.path().join("data")));
        self.0
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.stop();
    }
}

fn signal(name: &str, process: u32) {
    let _ = Command::new("kill").args([format!("-{name}"), process.to_string()]).status();
}

fn serve(files: &Path, port: u16) -> Child {
    let log = files.join("log");
    let mut server = as_user(&program("postgres"));
    server.arg("-D").arg(files.join("data")).args(["-p", &port.to_string()]);
    for setting in [
        "listen_addresses=127.0.0.1",
        "unix_socket_directories=",
        // What survives a loss of power is the package's, not ours.
        "fsync=off",
        "full_page_writes=off",
        "max_connections=300",
        "logging_collector=off",
    ] {
        server.args(["-c", setting]);
    }
    let stderr = fs::File::create(&log).expect("a log");
    let mut server =
        server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr).spawn().expect("postgres");
    let begun = Instant::now();
    // A replica accepts "read-only connections".
    while !has_line(&log, "ready to accept ") {
        let has_ended = server.try_wait().is_ok_and(|status| status.is_some());
        let log = || fs::read_to_string(&log).unwrap_or_default();
        assert!(!has_ended && begun.elapsed() < START, "the server does not start: {}", log());
        thread::sleep(Duration::from_millis(10));
    }
    server
}

fn free_port() -> u16 {
    let free = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
    free.expect("a free port").port()
}

fn has_line(log: &Path, text: &str) -> bool {
    let lines = fs::File::open(log).map(|log| BufReader::new(log).lines());
    lines.is_ok_and(|lines| lines.map_while(Result::ok).any(|line| line.contains(text)))
}

/// Returns the files of an empty database; creates them once for all tests of this machine.
fn template() -> PathBuf {
    let initdb = program("initdb");
    let version = Command::new(&initdb).arg("--version").output().expect("initdb").stdout;
    let version: String = String::from_utf8_lossy(&version)
        .chars()
        .filter(|char| char.is_ascii_digit() || *char == '.')
        .collect();
    let whose = if is_root() { "root" } else { "user" };
    let place = std::env::temp_dir().join(format!("mainstem-postgres-{version}-of-{whose}"));
    if place.is_dir() {
        return place;
    }
    let new = tempfile::Builder::new().prefix("mainstem-postgres-new-").tempdir().expect("a folder");
    open_to_all(new.path());
    let data = new.path().join("data");
    run(as_user(&initdb).arg("-D").arg(&data).args([
        "-A",
        "trust",
        "-U",
        USER,
        "--no-sync",
        "-E",
        "UTF8",
        "--locale=C",
    ]));
    // Another test may have been faster.
    let _ = fs::rename(&data, &place);
    place
}

/// Returns a program of the package.
fn program(name: &str) -> PathBuf {
    let folders = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut found: Vec<_> = folders.map(|version| version.path().join("bin").join(name)).collect();
    found.retain(|path| path.is_file());
    found.sort();
    found.pop().unwrap_or_else(|| PathBuf::from(name))
}

/// A command of the user that may run servers; it ends with the thread that starts it.
fn as_user(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL"]);
    if is_root() {
        command.args(["--reuid", USER, "--regid", USER, "--clear-groups"]);
    }
    command.arg(program).current_dir("/");
    command
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0)
}

fn open_to_all(folder: &Path) {
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    fs::set_permissions(folder, mode).expect("a folder of our own");
}

fn run(command: &mut Command) {
    let output = command.output().expect("Debian's package `postgresql` and util-linux");
    let why = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {why} (it needs Debian's package `postgresql`)");
}
