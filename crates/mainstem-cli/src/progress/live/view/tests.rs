//! Columns and rows at any size.

use mainstem_event::Outcome;
use ratatui::buffer::CellWidth;

use super::*;

fn row(depth: usize, name: &str, outcome: Option<Outcome>, activity: &str, text: Option<&str>) -> Row {
    let (id, about) = name.split_once(' ').unwrap_or((name, ""));
    let (activity, text) = (activity.to_owned(), text.map(str::to_owned));
    Row {
        key: None,
        depth,
        name: Name { id: id.to_owned(), about: about.to_owned() },
        outcome,
        is_asking: false,
        is_in_background: false,
        time: "8.4s".to_owned(),
        tokens: "5.1k tok".to_owned(),
        activity,
        text,
    }
}

fn tree() -> Vec<Entry> {
    let rows = [
        row(0, "main", None, "waits for 3 agents", None),
        row(1, "reviewer security", Some(Outcome::Success), "Nothing is wrong with", None),
        row(
            1,
            "rechercheur-日本 Which metro is longer",
            None,
            "search \"Paris metro\" (2.1s)",
            Some("…line 14 at 48 stations, so the"),
        ),
        row(2, "tester", Some(Outcome::Error), "failed: no key", None),
        Row { is_asking: true, ..row(1, "writer", None, "needs input", Some("May I?")) },
        Row { is_in_background: true, ..row(9, "digger", None, "writes", None) },
    ];
    rows.into_iter().map(Entry::Agent).chain([Entry::Ended { count: 12, depth: 1 }]).collect()
}

fn shown(width: u16, height: u16) -> String {
    let tree = tree();
    let view = View { glyphs: Glyphs::UNICODE, width, widest: widest(&tree), has_tokens: true, elapsed: 250 };
    let head = view.head("+", "Compare Paris and Rome", "6 agents · 14.2k tok · 00:12");
    let buffer = buffer(&view.frame(head, &tree, height.into()), width);
    let lines = buffer.content.chunks(usize::from(width)).map(|cells| {
        // A wide character stands in a cell and covers the next.
        let texts =
            cells.iter().enumerate().map(|(x, cell)| match x.checked_sub(1).map(|x| cells[x].cell_width()) {
                Some(2) => "",
                _ => cell.symbol(),
            });
        texts.collect::<String>().trim_end().to_owned()
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_name_fills_its_column_at_any_width() {
    let name = Name { id: "rechercheur".to_owned(), about: "Which metro is longer".to_owned() };
    for (glyphs, width) in (0..40).flat_map(|width| [(Glyphs::ASCII, width), (Glyphs::UNICODE, width)]) {
        let view = View { glyphs, width: 80, widest: 40, has_tokens: true, elapsed: 0 };
        let spans = view.name(&name, width);
        assert_eq!(spans.iter().map(Span::width).sum::<usize>(), width, "{spans:?}");
    }
}

/// Twins with one task differ in their number.
#[test]
fn a_number_is_not_cut() {
    let view = View { glyphs: Glyphs::UNICODE, width: 80, widest: 40, has_tokens: false, elapsed: 0 };
    let check = |id: &str, width: usize, expected: &str| assert_eq!(view.fit_id(id, width), expected);
    check("general-purpose#12", 18, "general-purpose#12");
    check("general-purpose#12", 12, "general-…#12");
    check("general-purpose", 8, "general…");
    check("a#1234567", 6, "a#123…");
}

#[test]
fn columns_fit_the_width() {
    let shown = [100, 70, 50, 40, 24, 10, 1].map(|width| format!("--- {width}\n{}", shown(width, 20)));
    insta::assert_snapshot!(shown.join("\n"));
}

#[test]
fn rows_fit_the_height() {
    let at_heights = [6, 5, 4, 3, 2, 1, 0].map(|height| format!("--- {height}\n{}", shown(60, height)));
    insta::assert_snapshot!(at_heights.join("\n"));
    for height in 1..10 {
        let lines = shown(60, height).lines().count();
        assert!(lines <= usize::from(height), "{height}: {lines}");
    }
}
