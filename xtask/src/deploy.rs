//! `cargo xtask deploy`: what people install besides crates, made and tried: the Debian package,
//! the steps of the container image in a folder that has nothing else, and the plan of a release.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::{
    built::Program,
    cargo::{cargo, has, output, place, program, run as exec},
};

const DOCKERFILE: &str = "deploy/Dockerfile";
const COMPOSE: &str = "deploy/compose.yaml";
const TWO_MACHINES: &str = "docs/examples/two-machines/compose.yaml";
const KUBERNETES: &str = "deploy/kubernetes.yaml";

const INSTALL: &str =
    "cargo-deb and dist are not both installed; `cargo install cargo-deb cargo-dist --locked`";

/// The bound of the released binary, in bytes.
const MAX_BINARY: u64 = 25 << 20;

/// The bound of the time in which the released binary tells its version: the best of [`STARTS`].
const MAX_START: Duration = Duration::from_millis(10);
const STARTS: u32 = 20;

/// How often a container's health is asked, and how long between two.
const PROBES: u32 = 100;
const INTERVAL: Duration = Duration::from_millis(100);

/// With `slow`, the binary is the one that is released.
pub(crate) fn run(root: &Path, slow: bool) -> Result<()> {
    if let Some(tools) = place("MAINSTEM_DEPLOY", "the programs of tests/deploy/requirements.txt")? {
        exec(program(root, tools.join("hadolint")).arg(DOCKERFILE))?;
        manifests(root, &tools)?;
    }
    let is_here = has(root, "deb") && program(root, "dist").arg("--version").output().is_ok();
    if !is_here {
        ensure!(env::var_os("CI").is_none(), INSTALL);
        println!("skipped: {INSTALL}");
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let package = package(root, folder.path(), slow)?;
    image(root, folder.path(), &package)?;
    // Fails if the workflow is not what dist-workspace.toml makes of it.
    exec(program(root, "dist").args(["generate", "--check"]))?;
    let plan = output(program(root, "dist").args(["plan", "--output-format", "json"]))?;
    ensure!(plan.contains("mainstem-cli-x86_64-unknown-linux-musl.tar.xz"), "{plan}");
    Ok(())
}

/// Checks what Docker Compose and Kubernetes are given: the files against their schemas, and the
/// commands of our image in them against the command line.
fn manifests(root: &Path, tools: &Path) -> Result<()> {
    let compose = composed(root, tools, COMPOSE)?;
    exec(program(root, tools.join("kubernetes-validate")).args(["--strict", "--quiet", KUBERNETES]))?;
    let to_json = "import json, sys, yaml; print(json.dumps(list(yaml.safe_load_all(open(sys.argv[1])))))";
    let kubernetes = output(program(root, tools.join("python")).args(["-c", to_json, KUBERNETES]))?;
    let kubernetes: Value = serde_json::from_str(&kubernetes).context(KUBERNETES)?;

    let services = compose["services"].as_object().into_iter().flatten().map(|(_, service)| service);
    let of_services = services.map(|service| (service, "command"));
    let pods = kubernetes.as_array().into_iter().flatten().map(|part| &part["spec"]["template"]["spec"]);
    let containers = pods.filter_map(|pod| pod["containers"].as_array()).flatten();
    let all = of_services.chain(containers.map(|container| (container, "args")));
    let ours: Vec<_> = all.filter(|(container, _)| container["image"] == "mainstem").collect();
    // Three nodes and a worker, and those of Kubernetes.
    ensure!(ours.len() == 5, "there are {} containers of our image, not 5", ours.len());
    let binary = Program::CLI.build(root)?;
    for (container, arguments) in ours {
        let arguments: Vec<String> = serde_json::from_value(container[arguments].clone())?;
        // Arguments that are not understood are refused before the help is shown.
        output(program(root, &binary).args(&arguments).arg("--help")).with_context(|| arguments.join(" "))?;
    }
    for (name, service) in composed(root, tools, TWO_MACHINES)?["services"].as_object().into_iter().flatten()
    {
        let script = service["command"][2].as_str().unwrap_or_default().replace("$$", "$");
        let (_, arguments) =
            script.split_once("exec mainstem ").with_context(|| format!("{name}: {script}"))?;
        let script = format!("exec {} {arguments} --help", binary.display());
        output(program(root, "sh").args(["-c", &script])).with_context(|| script)?;
    }
    println!("manifests: valid, and their commands are understood");
    Ok(())
}

/// Returns what Docker Compose makes of a file.
fn composed(root: &Path, tools: &Path, file: &str) -> Result<Value> {
    let mut compose = program(root, tools.join("docker-compose"));
    let composed = output(compose.args(["-f", file, "config", "--format", "json"]))?;
    serde_json::from_str(&composed).context(file.to_owned())
}

/// Makes the Debian package.
fn package(root: &Path, folder: &Path, slow: bool) -> Result<PathBuf> {
    let (binary, profile) = match slow {
        true => (released(root)?, "dist"),
        false => (Program::CLI.build(root)?, "dev"),
    };
    exec(program(root, "deploy/pages").arg(binary))?;
    let package = folder.join("mainstem.deb");
    let mut deb =
        cargo(root, &["deb", "--quiet", "--no-build", "--no-strip", "--fast", "-p", "mainstem-cli"]);
    exec(deb.args(["--profile", profile, "--output"]).arg(&package))?;
    contents(root, &package)?;
    Ok(package)
}

/// Checks that the package has the program, and what shells and `man` read of it.
fn contents(root: &Path, package: &Path) -> Result<()> {
    const FILES: [&str; 6] = [
        "usr/bin/mainstem",
        "usr/share/bash-completion/completions/mainstem",
        "usr/share/zsh/vendor-completions/_mainstem",
        "usr/share/fish/vendor_completions.d/mainstem.fish",
        "usr/share/man/man1/mainstem.1.gz",
        "usr/share/man/man1/mainstem-run.1.gz",
    ];
    let listed = output(program(root, "dpkg-deb").arg("--contents").arg(package))?;
    let has = |file: &str| {
        let line = listed.lines().find(|line| line.ends_with(&format!("./{file}")));
        // An empty file has no completions.
        line.is_some_and(|line| line.split_whitespace().nth(2).is_some_and(|bytes| bytes != "0"))
    };
    let missing: Vec<_> = FILES.into_iter().filter(|file| !has(file)).collect();
    ensure!(missing.is_empty(), "the package lacks {}", missing.join(", "));
    Ok(())
}

/// Builds the binary that is released.
fn released(root: &Path) -> Result<PathBuf> {
    let build =
        ["--config", ".cargo/dist.toml", "build", "--profile", "dist", "--locked", "-p", "mainstem-cli"];
    exec(&mut cargo(root, &build))?;
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let binary = target.join("dist/mainstem");
    let size = fs::metadata(&binary)?.len();
    println!("mainstem: {:.1} MiB", size as f64 / f64::from(1 << 20));
    ensure!(size <= MAX_BINARY, "the released binary has {size} bytes, more than {MAX_BINARY}");
    let mut best = Duration::MAX;
    for _ in 0..STARTS {
        let since = Instant::now();
        output(program(root, &binary).arg("--version"))?;
        best = best.min(since.elapsed());
    }
    println!("mainstem --version: {:.1} ms", best.as_secs_f64() * 1e3);
    ensure!(best < MAX_START, "the released binary tells its version in {best:?}, more than {MAX_START:?}");
    Ok(binary)
}

/// Does by hand what the Dockerfile says: a root with the package, the C library and certificates,
/// in which the server begins, is healthy, and stops.
fn image(root: &Path, folder: &Path, package: &Path) -> Result<()> {
    if !cfg!(target_os = "linux") || !is_root(root)? {
        ensure!(env::var_os("CI").is_none(), "the image's steps need root on Linux");
        println!("skipped: the image's steps need root on Linux");
        return Ok(());
    }
    let image = Image::new(root, folder.join("image"))?;
    image.fill(root, package)?;
    let mut server = image.start()?;
    let healthy = image.until_healthy();
    let stopped = stop(&mut server);
    healthy?;
    ensure!(stopped?, "the server of the image did not end well");
    ensure!(image.folder.join("data/journal.db").exists(), "the image's sessions are not in /data");
    let sick = image.command(&image.probe)?.status()?;
    ensure!(sick.code() == Some(1), "the health check of a server that is gone ended with {sick}");
    println!("image: began, was healthy, stopped");
    Ok(())
}

fn is_root(root: &Path) -> Result<bool> {
    Ok(output(program(root, "id").arg("-u"))?.trim() == "0")
}

/// The last stage of the Dockerfile, and the folder that stands for it.
struct Image {
    folder: PathBuf,
    user: String,
    server: Vec<String>,
    probe: Vec<String>,
}

impl Image {
    fn new(root: &Path, folder: PathBuf) -> Result<Self> {
        let text = fs::read_to_string(root.join(DOCKERFILE)).context(DOCKERFILE)?;
        let line = |instruction: &str| {
            let mut lines = text.lines().filter_map(|line| line.strip_prefix(instruction));
            lines.next_back().map(str::trim).with_context(|| format!("{DOCKERFILE} has no {instruction}"))
        };
        let list = |instruction: &str| -> Result<Vec<String>> {
            let line = line(instruction)?;
            let list = &line[line.find('[').unwrap_or(0)..];
            serde_json::from_str(list).with_context(|| format!("{DOCKERFILE}: {instruction}: {line}"))
        };
        let server = [list("ENTRYPOINT")?, list("CMD")?].concat();
        Ok(Self { folder, user: line("USER")?.to_owned(), server, probe: list("HEALTHCHECK")? })
    }

    /// Puts into the folder what the base image and the copies give.
    fn fill(&self, root: &Path, package: &Path) -> Result<()> {
        fs::create_dir_all(&self.folder)?;
        exec(program(root, "dpkg").arg("-x").arg(package).arg(&self.folder))?;
        let binary = self.folder.join("usr/bin/mainstem");
        for library in output(program(root, "ldd").arg(&binary))?.split_whitespace() {
            if library.starts_with('/') {
                self.copy(Path::new(library))?;
            }
        }
        let tokens = self.folder.join("run/secrets/tokens");
        fs::create_dir_all(self.folder.join("run/secrets"))?;
        fs::write(tokens, "a-token-for-the-check\n")?;
        let data = self.folder.join("data");
        fs::create_dir_all(&data)?;
        exec(program(root, "chown").arg(&self.user).arg(&data))?;
        let certificates = Path::new("/etc/ssl/certs/ca-certificates.crt");
        if certificates.exists() { self.copy(certificates) } else { Ok(()) }
    }

    fn copy(&self, file: &Path) -> Result<()> {
        let copy = self.folder.join(file.strip_prefix("/")?);
        fs::create_dir_all(copy.parent().context("a file has a folder")?)?;
        fs::copy(file, copy).map(drop).with_context(|| file.display().to_string())
    }

    /// Returns a command of the image, as its user and with its environment.
    fn command(&self, line: &[String]) -> Result<Command> {
        let chroot =
            ["/usr/sbin/chroot", "/usr/bin/chroot"].into_iter().find(|path| Path::new(path).exists());
        let mut command = Command::new(chroot.context("there is no chroot")?);
        command.env_clear().env("PATH", "/usr/bin").env("HOME", "/data").env("MAINSTEM_MODEL", "demo");
        command.arg(format!("--userspec={}", self.user)).arg(&self.folder).args(line).stdin(Stdio::null());
        Ok(command)
    }

    fn start(&self) -> Result<Child> {
        self.command(&self.server)?.spawn().context("cannot start the image's server")
    }

    fn until_healthy(&self) -> Result<()> {
        for _ in 0..PROBES {
            if self.command(&self.probe)?.stderr(Stdio::null()).status()?.success() {
                return Ok(());
            }
            sleep(INTERVAL);
        }
        exec(&mut self.command(&self.probe)?)
    }
}

/// Stops a server as `docker stop` does; returns whether it ended well.
fn stop(server: &mut Child) -> Result<bool> {
    exec(Command::new("kill").arg(server.id().to_string()))?;
    Ok(server.wait()?.success())
}
