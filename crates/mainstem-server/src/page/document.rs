//! A document that shows a record on the page, without a server. `docs/book/src/page.md` has the
//! contract, which `ui/src/document.ts` writes, too.

use std::io::{self, Write};

use mainstem::event::AgentEvent;

use super::{INDEX, SCRIPT, STYLE};

/// Writes a document that shows recorded events on the page, and opens without a server or a
/// network. The [`open`](Self::open) document takes [`event`](Self::event)s in their order;
/// [`close`](Self::close) completes it.
///
/// ```
/// # fn example(events: &[mainstem::event::AgentEvent]) -> std::io::Result<()> {
/// use mainstem_server::PageDocument;
///
/// let mut document = PageDocument::open(std::fs::File::create("session.html")?)?;
/// for event in events {
///     document.event(event)?;
/// }
/// document.close()?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct PageDocument<W>(W);

impl<W: Write> PageDocument<W> {
    /// Begins a document.
    ///
    /// # Errors
    /// It can't be written.
    pub fn open(mut out: W) -> io::Result<Self> {
        let (script, style) = (hash_of("page-script"), hash_of("page-style"));
        write!(
            out,
            "<!doctype html>
<html lang=\"en\">
<head>
<meta charset=\"utf-8\">
<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src '{script}'; \
             style-src '{style}'; img-src data:; base-uri 'none'; form-action 'none'; \
             require-trusted-types-for 'script'; trusted-types 'none'\">
<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">
<meta name=\"color-scheme\" content=\"light dark\">
<title>Mainstem</title>
<link rel=\"icon\" href=\"data:,\">
<style id=\"page-style\" data-hash=\"{style}\">{}</style>
</head>
<body>
<div id=\"page\"></div>
<noscript>This page needs JavaScript.</noscript>
<script type=\"application/x-ndjson\" id=\"record\">",
            STYLE.text()
        )?;
        Ok(Self(out))
    }

    /// Writes the next event, without the prompts of the operator.
    ///
    /// # Errors
    /// It can't be written.
    pub fn event(&mut self, event: &AgentEvent) -> io::Result<()> {
        writeln!(self.0, "{}", escaped(&event.without_spec().to_json()))
    }

    /// Completes the document; returns what it was written to.
    ///
    /// # Errors
    /// It can't be written.
    pub fn close(mut self) -> io::Result<W> {
        let hash = hash_of("page-script");
        write!(
            self.0,
            "</script>\n<script type=\"module\" id=\"page-script\" data-hash=\"{hash}\">{}</script>
</body>
</html>
",
            SCRIPT.text()
        )?;
        self.0.flush()?;
        Ok(self.0)
    }
}

/// Returns the hash that the page has for one of its files.
fn hash_of(id: &str) -> &'static str {
    let element =
        INDEX.split('<').find(|element| element.contains(&format!("id=\"{id}\""))).unwrap_or_default();
    element.split("integrity=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or_default()
}

/// Escapes what could end the element. All of it can only be in strings of the JSON.
fn escaped(json: &str) -> String {
    json.replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}

#[cfg(test)]
mod tests {
    //! The document against its contract.

    use base64::{Engine as _, prelude::BASE64_STANDARD};
    use mainstem::event::EventKind;
    use sha2::{Digest as _, Sha256};

    use super::*;

    #[test]
    fn a_document_has_the_page_and_its_hashes() {
        for (id, content) in [("page-script", SCRIPT), ("page-style", STYLE)] {
            let hash = hash_of(id);
            assert_eq!(
                hash,
                format!("sha256-{}", BASE64_STANDARD.encode(Sha256::digest(content.text()))),
                "{id}"
            );
        }
    }

    #[test]
    fn no_text_ends_the_element() {
        let log = mainstem::event::SessionLog::new("s".parse().unwrap());
        let value = serde_json::json!("</script><!-- \u{2028} \u{2029}");
        log.emit(EventKind::Custom { name: "step".into(), value });
        let event = log.recent_from(1).try_next().unwrap();
        let mut document = PageDocument::open(Vec::new()).unwrap();
        document.event(&event).unwrap();
        let text = String::from_utf8(document.close().unwrap()).unwrap();
        let record = text.split("id=\"record\">").nth(1).unwrap().split("</script>").next().unwrap();
        assert!(!record.contains(['<', '\u{2028}', '\u{2029}']), "{record}");
        assert_eq!(serde_json::from_str::<AgentEvent>(record).unwrap(), event);
    }
}
