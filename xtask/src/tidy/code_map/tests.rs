//! A small tree with two crates, and lists that fit it or don't.

use super::{CHANGES, check as problems, names};
use crate::tidy::packages::{Dependency, Package};

const FILES: [&str; 5] = [
    "crates/mainstem-event/src/kind.rs",
    "crates/mainstem-event/src/kind/tests.rs",
    "crates/mainstem-message/src/lib.rs",
    "tests/it/main.rs",
    "xtask/src/main.rs",
];

fn package(name: &str, folder: &str, on: &[&str]) -> Package {
    let to = |name: &&str| Dependency { name: (*name).into(), kind: None };
    let dependencies = on.iter().map(to).collect();
    Package { name: name.into(), folder: folder.into(), dependencies, ..Package::default() }
}

#[track_caller]
fn check(text: &str, expected: &[&str]) {
    let packages = [
        package("mainstem-event", "crates/mainstem-event", &["mainstem-message", "serde"]),
        package("mainstem-message", "crates/mainstem-message", &[]),
        package("mainstem-tests", "tests", &["mainstem-event"]),
    ];
    let files = FILES.map(String::from);
    let found: Vec<_> = problems(text, &packages, &files).iter().map(ToString::to_string).collect();
    assert_eq!(found, expected, "{text}");
}

const FITS: &str = "- **mainstem-message** — what is said\n- **mainstem-event** — what happened\n";

#[test]
fn a_list_of_every_crate_fits() {
    check(FITS, &[]);
    check(&FITS.replace("\n-", "\n\nEvents:\n-"), &[]);
    check(&format!("{FITS}- **mainstem-tests** — timelines\n"), &[]);
    let paths = "See crates/mainstem-event/src/kind.rs, `tests/it/`, xtask/src and mainstem-tests.";
    check(&format!("{FITS}\n{paths}\n"), &[]);
    check(&format!("{FITS}\n`mainstem-event/src/kind.rs`, mainstem-message/src and `anything`\n"), &[]);
}

#[test]
fn a_crate_needs_an_item() {
    let missing = [
        "ARCHITECTURE.md:1: the list of crates has no item `- **mainstem-event** …`",
        "ARCHITECTURE.md:1: the list of crates has no item `- **mainstem-message** …`",
    ];
    check("", &missing);
    check("The crates mainstem-event and mainstem-message\n", &missing);
}

#[test]
fn an_item_has_one_line() {
    let text = FITS.replace("happened", "happened: `kind`,\n  the table");
    let long = "mainstem-event has more than one line; describe its modules in their files";
    check(&text, &[&format!("ARCHITECTURE.md:3: {long}")]);
}

#[test]
fn a_crate_stands_below_its_dependencies() {
    let text = "- **mainstem-event** — what happened\n- **mainstem-message** — what is said\n";
    let below = "mainstem-event depends on mainstem-message, which is below it";
    check(text, &[&format!("ARCHITECTURE.md:1: {below}")]);
}

#[test]
fn names_in_the_text_exist() {
    let rows = [
        ("mainstem-core", "there is no crate mainstem-core"),
        ("├── mainstem-core/", "there is no crate mainstem-core"),
        ("`mainstem-core/src/lib.rs`", "there is no crate mainstem-core"),
        ("crates/mainstem-event/src/queue.rs", "crates/mainstem-event/src/queue.rs doesn't exist"),
        ("`mainstem-event/src/queue.rs`", "crates/mainstem-event/src/queue.rs doesn't exist"),
        ("(crates/mainstem-core)", "crates/mainstem-core doesn't exist"),
        ("tests/it/spawn.rs.", "tests/it/spawn.rs doesn't exist"),
    ];
    for (text, message) in rows {
        check(&format!("{FITS}\n{text}\n"), &[&format!("ARCHITECTURE.md:4: {message}")]);
    }
}

#[test]
fn names_in_another_page_exist() {
    let found = |text: &str| {
        let packages = [package("mainstem-event", "crates/mainstem-event", &[])];
        let found = names(CHANGES, text, &packages, &FILES.map(String::from));
        found.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(found("`mainstem-event/src/kind.rs`, then [tidy](../xtask/src/main.rs)"), [""; 0]);
    let missing = "docs/changes.md:2: docs/event.md doesn't exist";
    assert_eq!(found("1.\n2. `docs/event.md`"), [missing]);
}
