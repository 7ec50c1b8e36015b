//! `cargo xtask ci`: the steps a change has to pass, up to the first failure.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::cargo::{cargo, output, run as exec};
use crate::{
    api, book, browser, clients, deny, deploy, layers, models, package, public_api, sbom, schema, semver,
    snapshots, suite, supply, tidy, ui, versions,
};

pub(crate) fn run(root: &Path, slow: bool) -> Result<()> {
    let start = Instant::now();
    let plain = |args: &[&str]| exec(&mut cargo(root, args));
    step("fmt", || plain(&["fmt", "--all", "--check"]))?;
    // A second each, and they find what is easily forgotten: before the steps of half an hour.
    step("tidy", || tidy::run(root))?;
    step("layers", || layers::run(root))?;
    step("clippy", || {
        plain(&["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"])
    })?;
    step("features", || {
        // Neither the binary without its features nor a build of single layers has warnings.
        plain(&[
            "clippy",
            "-p",
            "mainstem-cli",
            "--locked",
            "--no-default-features",
            "--",
            "-D",
            "warnings",
        ])?;
        for features in features(root)? {
            let facade =
                ["clippy", "-p", "mainstem", "--locked", "--no-default-features", "--features", &features];
            plain(&[&facade[..], &["--", "-D", "warnings"]].concat())?;
        }
        Ok(())
    })?;
    step("tests", || snapshots::run(root, slow))?;
    step("doctests", || plain(&["test", "--doc", "--workspace", "--locked"]))?;
    step("timelines", || suite::timelines(root))?;
    if slow {
        step("neighbour", || suite::neighbour(root))?;
        step("checker", || suite::whole_checker(root))?;
        step("versions", || versions::run(root, None))?;
    } else {
        // Under `--slow` the tests have the whole suite.
        step("nodes", || suite::nodes(root))?;
    }
    step("models", || models::run(root, slow))?;
    step("clients", || clients::run(root))?;
    step("api", || api::run(root))?;
    step("examples", || browser::examples(root))?;
    step("browser", || browser::run(root))?;
    step("ui", || ui::run(root, false, slow))?;
    step("book", || book::run(root))?;
    step("doc", || {
        let mut doc = cargo(root, &["doc", "--workspace", "--no-deps", "--all-features", "--locked"]);
        exec(doc.env("RUSTDOCFLAGS", "-D warnings"))
    })?;
    step("deny", || deny::run(root))?;
    step("supply", || supply::run(root, false))?;
    step("sbom", || sbom::run(root, true))?;
    step("deploy", || deploy::run(root, slow))?;
    step("package", || package::run(root))?;
    step("public-api", || public_api::run(root, false))?;
    step("semver", || semver::run(root, None))?;
    step("schema", || schema::run(root, true))?;
    println!("\nci passed in {:.0} s", start.elapsed().as_secs_f64());
    Ok(())
}

/// Returns each feature of the facade alone, and none.
fn features(root: &Path) -> Result<Vec<String>> {
    let json = output(&mut cargo(root, &["metadata", "--no-deps", "--format-version", "1"]))?;
    let metadata: Value = serde_json::from_str(&json).context("cannot read cargo metadata")?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let facade = packages.filter(|package| package["name"] == "mainstem");
    let features = facade.filter_map(|facade| facade["features"].as_object()).flat_map(|named| named.keys());
    let alone = features.filter(|feature| *feature != "default").cloned();
    Ok([String::new()].into_iter().chain(alone).collect())
}

fn step(name: &str, work: impl FnOnce() -> Result<()>) -> Result<()> {
    println!("\n== {name}");
    let start = Instant::now();
    let result = work();
    let seconds = start.elapsed().as_secs_f64();
    println!("== {name}: {} in {seconds:.1} s", if result.is_ok() { "ok" } else { "FAILED" });
    result.with_context(|| format!("ci stopped at step `{name}`"))
}
