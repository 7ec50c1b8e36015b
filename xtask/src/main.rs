//! Chores of the workspace, run as `cargo xtask <chore>`; `ci` is what a change has to pass.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a chore reports on the terminal")]

mod api;
mod bench;
mod book;
mod browser;
mod built;
mod cargo;
mod ci;
mod clients;
mod deny;
mod deploy;
mod layers;
mod models;
mod package;
mod pictures;
mod problem;
mod public_api;
mod sbom;
mod schema;
mod semver;
mod server;
mod snapshots;
mod suite;
mod supply;
mod tidy;
mod tree;
mod ui;
mod versions;

use std::process::ExitCode;

use clap::Parser;

#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", about = "Chores of the workspace")]
enum Chore {
    /// Everything a change has to pass, in order, up to the first failure
    Ci {
        /// Run the long loops in full instead of a sample
        #[arg(long)]
        slow: bool,
    },
    /// Rules of the tree that the compiler doesn't hold
    Tidy,
    /// Write docs/events.md, docs/limits.md, docs/schema and the keys of agents' files
    Schema {
        /// Compare with the tree instead of writing
        #[arg(long)]
        check: bool,
    },
    /// Run the tests; fail on snapshots that wait for review or that no test reads
    Snapshots,
    /// The timelines twenty times, to detect a random order
    Timelines,
    /// schemathesis against `mainstem serve` and the OpenAPI document that it gives
    Api,
    /// The page of the example `embed` in Chromium
    Browser,
    /// The page of the server, built from ui/ and tested in Chromium
    Ui {
        /// Write the built files instead of comparing them
        #[arg(long)]
        accept: bool,
        /// The long tests, too, such as ten minutes of fifty agents
        #[arg(long)]
        slow: bool,
    },
    /// What threads do, in many orders, under a model checker
    Models {
        /// Many times as many orders
        #[arg(long)]
        slow: bool,
    },
    /// The crates that each layer brings, compared with docs/layers.md
    Layers,
    /// The packages that would be published, and what is in them
    Package,
    /// The book, below the target folder
    Book,
    /// The Debian package, the container image's steps, and the plan of a release
    Deploy {
        /// With the binary that is released, whose size is bounded
        #[arg(long)]
        slow: bool,
    },
    /// Draw docs/pictures anew: what the terminal shows, which tests compare
    Pictures,
    /// The public items of each library, compared with docs/api
    PublicApi {
        /// Write the listings instead
        #[arg(long)]
        accept: bool,
    },
    /// Each published library, compared with the latest release by cargo-semver-checks
    Semver {
        /// Compare with this commit instead
        #[arg(long)]
        baseline: Option<String>,
    },
    /// What runs code while we compile: compared with the list in the tree
    Supply {
        /// Write the list instead
        #[arg(long)]
        accept: bool,
    },
    /// A bill of materials of the binary, as CycloneDX
    Sbom {
        /// Make it twice and compare, and validate it against the schema
        #[arg(long)]
        check: bool,
    },
    /// The vendors' own clients in Python, against our scripted server
    Clients,
    /// The checker of many nodes with servers of two versions
    Versions {
        /// The commit of the older ones; by default the last one before the newest tables
        commit: Option<String>,
    },
    /// The performance rows, in release mode
    Bench {
        /// Passed on to mainstem-bench
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
}

fn main() -> ExitCode {
    match run(Chore::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(chore: Chore) -> anyhow::Result<()> {
    let root = &tree::root()?;
    match chore {
        Chore::Ci { slow } => ci::run(root, slow),
        Chore::Tidy => tidy::run(root),
        Chore::Schema { check } => schema::run(root, check),
        Chore::Snapshots => snapshots::run(root, false),
        Chore::Timelines => suite::timelines(root),
        Chore::Api => api::run(root),
        Chore::Browser => browser::run(root),
        Chore::Ui { accept, slow } => ui::run(root, accept, slow),
        Chore::Models { slow } => models::run(root, slow),
        Chore::Layers => layers::run(root),
        Chore::Package => package::run(root),
        Chore::Book => book::run(root),
        Chore::Deploy { slow } => deploy::run(root, slow),
        Chore::Pictures => pictures::run(root),
        Chore::PublicApi { accept } => public_api::run(root, accept),
        Chore::Semver { baseline } => semver::run(root, baseline.as_deref()),
        Chore::Supply { accept } => supply::run(root, accept),
        Chore::Sbom { check } => sbom::run(root, check),
        Chore::Clients => clients::run(root),
        Chore::Versions { commit } => versions::run(root, commit.as_deref()),
        Chore::Bench { args } => bench::run(root, &args),
    }
}
