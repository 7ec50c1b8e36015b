//! The blocks of the README and of the book's pages, for tests.

use std::{fs, path::Path};

/// Returns the blocks of this language, each with the page that has it; none in a package, which
/// stands alone, without the book.
pub(crate) fn blocks(language: &str) -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let Ok(pages) = fs::read_dir(root.join("docs/book/src")) else { return Vec::new() };
    let pages =
        pages.map(|page| page.unwrap().path()).filter(|page| page.extension().is_some_and(|it| it == "md"));
    let of_page = |page: &Path| {
        let text = fs::read_to_string(page).unwrap();
        let name = page.file_name().unwrap().to_string_lossy().into_owned();
        let fence = format!("\n```{language}\n");
        let blocks = text.split(&fence).skip(1).map(|rest| rest.split("\n```").next().unwrap_or_default());
        blocks.map(|block| (name.clone(), block.to_owned())).collect::<Vec<_>>()
    };
    pages.chain([root.join("README.md")]).flat_map(|page| of_page(&page)).collect()
}
