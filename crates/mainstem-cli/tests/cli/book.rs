//! The commands of the book, and what it says that they print.

mod shell;

use std::{fs, path::Path};

/// Runs the blocks of each page whose lines begin with `$`, in a folder of the page's own.
#[test]
fn commands_print_what_the_book_shows() {
    let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/book/src");
    // A package stands alone, without the book.
    let Ok(pages) = fs::read_dir(pages) else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut count = 0;
    for page in pages.map(|page| page.unwrap().path()) {
        let name = page.file_name().unwrap().to_str().unwrap();
        if !name.ends_with(".md") || !fs::read_to_string(&page).unwrap().contains("```console") {
            continue;
        }
        fs::copy(&page, folder.path().join(name)).unwrap();
        // With both, the commands run in a copy of the first.
        for kind in ["in", "out"] {
            fs::create_dir(folder.path().join(name).with_extension(kind)).unwrap();
        }
        count += 1;
    }
    assert!(count > 0, "no page has commands");
    let home = folder.path().join("home");
    let cases = trycmd::TestCases::new();
    cases.register_bin("mainstem", Path::new(env!("CARGO_BIN_EXE_mainstem")));
    cases.env("HOME", home.to_str().unwrap()).env("NO_COLOR", "1").env("COLUMNS", "100");
    cases.case(folder.path().join("*.md"));
}
