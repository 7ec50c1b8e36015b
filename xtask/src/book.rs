//! `cargo xtask book`: the book, with the pages that come from elsewhere, built by mdbook below the
//! target folder; every link within it is followed.

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};

use crate::{
    built::Program,
    cargo::{output, program, run as exec},
    tree,
};

const SOURCE: &str = "docs/book";

/// Pages that are files elsewhere.
const PAGES: [(&str, &str); 7] = [
    ("changelog.md", "CHANGELOG.md"),
    ("events.md", "docs/events.md"),
    ("keys.md", "crates/mainstem-spec/KEYS.md"),
    ("layers.md", "docs/layers.md"),
    ("limits.md", "docs/limits.md"),
    ("performance.md", "docs/performance.md"),
    ("versioning.md", "docs/versioning.md"),
];

/// Where links of such pages to other files lead.
const REPOSITORY: &str = "https://github.com/mainstem-rs/mainstem/blob/main/";

/// Includes the pages with Rust code.
const DOCTESTS: &str = "crates/mainstem/src/lib.rs";

const INSTALL: &str = "mdbook is not installed; `cargo install mdbook --locked`";

pub(crate) fn run(root: &Path) -> Result<()> {
    tested(root)?;
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let book = target.join("book");
    if book.exists() {
        fs::remove_dir_all(&book)?;
    }
    for file in tree::files(root)?.iter().filter(|file| file.starts_with(SOURCE)) {
        copy(&root.join(file), &book.join(file.strip_prefix(&format!("{SOURCE}/")).unwrap_or(file)))?;
    }
    let src = book.join("src");
    for (page, file) in PAGES {
        let text = fs::read_to_string(root.join(file)).context(file)?;
        fs::write(src.join(page), with_links(&text, file))?;
    }
    for file in tree::files(root)?.iter().filter(|file| file.starts_with("docs/pictures/")) {
        copy(&root.join(file), &src.join(file.trim_start_matches("docs/")))?;
    }
    fs::write(src.join("cli.md"), commands(root)?)?;
    include(root, &src)?;
    if program(root, "mdbook").arg("--version").output().is_err() {
        ensure!(env::var_os("CI").is_none(), INSTALL);
        println!("skipped: {INSTALL}");
        return Ok(());
    }
    exec(program(&book, "mdbook").arg("build"))?;
    check(&book.join("book"))?;
    println!("book: {}", book.join("book/index.html").display());
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to.parent().context("a file has a folder")?)?;
    fs::copy(from, to).map(drop).with_context(|| from.display().to_string())
}

/// Lets the links of a page lead to pages of the book, or else to the repository.
fn with_links(text: &str, file: &str) -> String {
    let folder = Path::new(file).parent().unwrap_or_else(|| Path::new(""));
    let mut linked = String::new();
    let mut parts = text.split("](");
    linked.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let (link, rest) = part.split_once(')').unwrap_or((part, ""));
        let (path, anchor) = link.split_at(link.find('#').unwrap_or(link.len()));
        let link = if path.is_empty() || path.contains("://") {
            link.to_owned()
        } else {
            let path = normal(&folder.join(path));
            let page = PAGES.iter().find(|(_, file)| *file == path).map(|(page, _)| (*page).to_owned());
            let page = page.or_else(|| path.strip_prefix("docs/book/src/").map(str::to_owned));
            page.unwrap_or_else(|| format!("{REPOSITORY}{path}")) + anchor
        };
        linked.push_str(&format!("]({link}){rest}"));
    }
    linked
}

/// Returns a path without `..`.
fn normal(path: &Path) -> String {
    let mut parts = Vec::new();
    for part in path.components().map(|part| part.as_os_str().to_string_lossy()) {
        match &*part {
            ".." => drop(parts.pop()),
            "." => {}
            _ => parts.push(part.into_owned()),
        }
    }
    parts.join("/")
}

/// Puts the files in that pages include from outside the book; mdbook reads only its own.
fn include(root: &Path, src: &Path) -> Result<()> {
    for entry in fs::read_dir(src)? {
        let path = entry?.path();
        let Ok(mut text) = fs::read_to_string(&path) else { continue };
        while let Some((before, rest)) = text.split_once("{{#include ") {
            let (file, after) = rest.split_once("}}").context("an include has an end")?;
            let place = root.join(SOURCE).join("src").join(file);
            let included = fs::read_to_string(&place).with_context(|| place.display().to_string())?;
            text = format!("{before}{}{after}", included.trim_end());
        }
        fs::write(&path, text)?;
    }
    Ok(())
}

/// Fails if the Rust code of a page is not compiled and run.
fn tested(root: &Path) -> Result<()> {
    let doctests = fs::read_to_string(root.join(DOCTESTS)).context(DOCTESTS)?;
    for file in tree::files(root)?.iter().filter(|file| file.starts_with(SOURCE)) {
        let has_code = || fs::read_to_string(root.join(file)).is_ok_and(|text| text.contains("```rust"));
        ensure!(doctests.contains(file.as_str()) || !has_code(), "{DOCTESTS} does not include {file}");
    }
    Ok(())
}

/// Returns the page of the command line: the help of each command.
fn commands(root: &Path) -> Result<String> {
    let mainstem = Program::CLI.build(root)?;
    let mut page = "# Command line\n\nThe help of each command, as `mainstem help` prints it.\n".to_owned();
    let mut open = vec![Vec::new()];
    while let Some(words) = open.pop() {
        let mut help = program(root, &mainstem);
        let text = output(help.arg("help").args(&words).env("COLUMNS", "100"))?;
        let name = ["mainstem".to_owned()].into_iter().chain(words.clone()).collect::<Vec<_>>().join(" ");
        page.push_str(&format!("\n## {name}\n\n```text\n{}\n```\n", text.trim_end()));
        let commands = text.lines().skip_while(|line| *line != "Commands:").skip(1);
        let commands = commands.take_while(|line| !line.is_empty()).filter(|line| !line.starts_with("    "));
        let names = commands.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help");
        let deeper = names.map(|name| words.iter().cloned().chain([name.to_owned()]).collect::<Vec<_>>());
        open.extend(deeper.collect::<Vec<_>>().into_iter().rev());
    }
    Ok(page)
}

/// Follows every link from a page to another page of the book.
fn check(html: &Path) -> Result<()> {
    let mut pages = BTreeMap::new();
    for entry in fs::read_dir(html)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "html") {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            pages.insert(name, fs::read_to_string(&path)?);
        }
    }
    let ids: BTreeMap<_, BTreeSet<_>> =
        pages.iter().map(|(name, text)| (name.clone(), attributes(text, "id").collect())).collect();
    let mut broken = Vec::new();
    for (page, text) in pages.iter().filter(|(page, _)| *page != "print.html" && *page != "toc.html") {
        for link in attributes(text, "href").chain(attributes(text, "src")).filter(|link| !link.contains(':'))
        {
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if path.is_empty() { page } else { path };
            let is_there = match ids.get(target) {
                Some(ids) => anchor.is_empty() || ids.contains(anchor),
                None => html.join(target).exists(),
            };
            if !is_there {
                broken.push(format!("{page}: {link}"));
            }
        }
    }
    ensure!(broken.is_empty(), "links that lead nowhere:\n{}", broken.join("\n"));
    println!("book: {} pages", pages.len());
    Ok(())
}

fn attributes<'a>(html: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    let start = format!(" {name}=\"");
    let values = html.split(&start).skip(1).collect::<Vec<_>>();
    values.into_iter().filter_map(|rest| rest.split('"').next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_to_pages_or_to_the_repository() {
        let check = |file: &str, link: &str, expected: &str| {
            assert_eq!(
                with_links(&format!("See [it]({link}), now"), file),
                format!("See [it]({expected}), now")
            );
        };
        check("docs/limits.md", "events.md#laws", "events.md#laws");
        check("docs/limits.md", "book/src/serving.md", "serving.md");
        check("crates/mainstem-spec/KEYS.md", "../../docs/book/src/agents.md#skills", "agents.md#skills");
        check("docs/layers.md", "../tests/layers", &format!("{REPOSITORY}tests/layers"));
        check("docs/layers.md", "#here", "#here");
        check("docs/layers.md", "https://example.com/a", "https://example.com/a");
    }
}
