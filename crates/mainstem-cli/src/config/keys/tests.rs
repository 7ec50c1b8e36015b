//! The documentation of the keys has what their declaration has.

use std::path::Path;

use clap::{Args, CommandFactory};

use super::*;
use crate::{args::Cli, book::blocks, config::file::parse};

/// A row of the book's table.
fn row(key: &Key) -> String {
    let quoted = |names: &[String]| {
        let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
        names.join(", ")
    };
    let names = key.names();
    let trust = match &key.guarded {
        None => "at once".to_owned(),
        Some((what, _)) if *what == key.path => "once trusted".to_owned(),
        Some((what, _)) => format!("`{what}` once trusted"),
    };
    format!("| `{}` | {} | {} | {trust} |", names[0], quoted(&names[1..]), key.about)
}

#[test]
fn the_book_has_every_key_with_its_flag_and_its_trust() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/book/src/settings.md");
    // A package stands alone, without the book.
    let Ok(page) = std::fs::read_to_string(path) else { return };
    let rows: Vec<_> = Settings::keys().iter().map(row).collect();
    let heads = "| key | flag, variable | what it sets | in a project's file |\n|---|---|---|---|";
    let table = format!("{heads}\n{}\n", rows.join("\n"));
    assert!(page.contains(&table), "write this into docs/book/src/settings.md:\n{table}");
}

#[test]
fn the_settings_of_the_book_are_settings() {
    // The README's block is for Cargo.
    for (page, block) in blocks("toml").into_iter().filter(|(page, _)| page != "README.md") {
        let read = parse(&block, Path::new(&page));
        assert!(read.is_ok(), "{:#}\n{block}", read.unwrap_err());
    }
}

#[test]
fn the_help_of_a_flag_names_its_variable() {
    let flags = Settings::augment_args(Command::new(""));
    for key in Settings::keys().iter().filter(|key| !key.variables.is_empty() && key.flag.is_some()) {
        let flag = flags.get_arguments().find(|arg| arg.get_id().as_str() == key.path).unwrap();
        let help = flag.get_help().unwrap().to_string();
        for variable in &key.variables {
            assert!(help.ends_with(&format!("[env: {variable}]")), "{help}");
        }
    }
}

#[test]
fn each_flag_of_a_setting_is_the_flag_of_a_key() {
    let keys = Settings::keys();
    let flags: Vec<_> = keys.iter().filter_map(|key| key.flag.as_ref().map(|flag| &*flag.long)).collect();
    for arg in Settings::augment_args(Command::new("")).get_arguments() {
        assert!(flags.contains(&&*format!("--{}", arg.get_long().unwrap())), "{arg}");
    }
    assert!(flags.contains(&"--budget-tokens") && flags.contains(&"--shell-limit"), "{flags:?}");
}

#[test]
fn help_names_every_part_that_needs_trust() {
    let help = Cli::command().find_subcommand_mut("trust").unwrap().render_long_help().to_string();
    let parts = [
        "server_tools",
        "on_cut = \"resume\"",
        "workspace = \"../x\"",
        "shell = true",
        "shell_network = \"on\"",
        "shell_limits",
        "agent_generate = true",
        "prices",
        "mcp.NAME",
        "agent_servers = true",
        "remote_hosts",
        "providers.NAME",
        "serve.input_roles",
    ];
    let guarded: Vec<_> = Settings::keys().into_iter().filter_map(|key| key.guarded).collect();
    assert_eq!(guarded.iter().map(|(what, _)| &**what).collect::<Vec<_>>(), parts);
    assert!(help.contains(&super::guarded()), "{help}");
}

#[test]
fn advice_names_flag_variable_and_key() {
    assert_eq!(ways("model"), "-m, MAINSTEM_MODEL or `model` in ./mainstem.toml");
    assert_eq!(ways("limits.wait"), "--child-wait or `limits.wait` in ./mainstem.toml");
    assert_eq!(ways("mcp"), "`mcp` in ./mainstem.toml");
}

/// The lines of a help text that are TOML, by their indentation.
fn toml(help: &str) -> String {
    let lines = help.lines().filter_map(|line| line.strip_prefix("    "));
    lines
        .filter(|line| line.contains(" = ") || line.starts_with('['))
        .map(|line| format!("{line}\n"))
        .collect()
}

#[test]
fn the_examples_of_help_can_be_read() {
    let run = Cli::command().find_subcommand("run").unwrap().get_after_help().unwrap().to_string();
    let mut texts = vec![String::new()];
    for line in toml(&run).lines() {
        // A key of the top level begins a file, wherever the last one ended.
        if !line.starts_with('[')
            && Settings::keys().iter().any(|key| line.starts_with(&format!("{} =", key.path)))
        {
            texts.push(String::new());
        }
        texts.last_mut().unwrap().push_str(&format!("{line}\n"));
    }
    assert!(texts.len() > 4, "{texts:?}");
    for text in texts {
        parse(&text, Path::new("mainstem.toml")).unwrap();
    }
}
