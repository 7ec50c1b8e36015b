//! Columns and rows at any size.

use mainstem_event::Outcome;
use ratatui::buffer::CellWidth;

use super::*;

fn row(name: &str, outcome: Option<Outcome>, activity: &str, text: Option<&str>) -> Row {
    let (name, activity, text) = (name.to_owned(), activity.to_owned(), text.map(str::to_owned));
    Row {
        name,
        outcome,
        is_asking: false,
        is_in_background: false,
        time: "8.4s".to_owned(),
        tokens: "5.1k tok".to_owned(),
        activity,
        text,
    }
}

fn rows() -> [Row; 5] {
    [
        row("main › reviewer", Some(Outcome::Success), "done", None),
        row(
            "main › rechercheur-日本",
            None,
            "search \"Paris metro\" (2.1s)",
            Some("…line 14 at 48 stations, so the"),
        ),
        row("main › tester", Some(Outcome::Error), "failed: no key", None),
        Row { is_asking: true, ..row("main › writer", None, "needs input", Some("May I?")) },
        Row { is_in_background: true, ..row("main › digger", None, "writes", None) },
    ]
}

fn shown(width: u16, height: u16) -> String {
    let rows = rows();
    let view = View { glyphs: Glyphs::UNICODE, width, widest: widest(rows.iter()), elapsed: 250 };
    let head = view.head("+", "Compare Paris and Rome", "6 agents · 14.2k tok · 00:12");
    let buffer = buffer(&view.frame(head, &rows, height.into()), width);
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
