// A document that holds a record, which opens without a server: how the page finds the record in
// its own document, and how it writes such a document.
//
// The contract, by which any program can write one:
//
// 1. The record is the text of `<script type="application/x-ndjson" id="record">`, before the
//    page's own script: one event a line, in the order of `seq`. In it each `<`, U+2028 and U+2029
//    is written as a JSON escape (`\u003c`, …). All of them can only be inside of JSON strings, so
//    that the events are the same, and no text can end the element.
// 2. The page's files are unchanged: `page/page.css` as the text of `<style id="page-style">`, and
//    `page/page.js` as that of `<script type="module" id="page-script">`, in the body behind
//    `<div id="page"></div>` and the record. `cargo xtask ui` checks that neither contains what
//    would end its element.
// 3. Both elements have their hash, `sha256-` and base64, in `data-hash`. The policy is `POLICY`
//    with these hashes, in a `<meta>` in front of everything that it rules. `page/index.html` has
//    the hashes as `integrity` of its links to the files.
//
// A page that finds a record sends no request.
import type { AgentEvent } from "./fleet/event";
import { linesOf, recordOf } from "./fleet/excerpt";

const RECORD = "record";
const SCRIPT = "page-script";
const STYLE = "page-style";

/** The events that this document holds, if it is a record. */
export function embedded(): AgentEvent[] | undefined {
  const text = document.querySelector(`script#${RECORD}[type="application/x-ndjson"]`)?.textContent;
  return text == null ? undefined : recordOf(text);
}

/** A file of the page with its hash. */
export interface Source {
  text: string;
  hash: string;
}

export interface Sources {
  script: Source;
  style: Source;
}

/** Reads the page's files, from this document or from where it links to. */
export async function sources(): Promise<Sources> {
  const [script, style] = await Promise.all([sourceOf(SCRIPT), sourceOf(STYLE)]);
  return { script, style };
}

async function sourceOf(id: string): Promise<Source> {
  const element = document.getElementById(id);
  if (element?.dataset.hash) return { text: element.textContent ?? "", hash: element.dataset.hash };
  const [url, hash] = element instanceof HTMLScriptElement ? [element.src, element.integrity]
    : element instanceof HTMLLinkElement ? [element.href, element.integrity] : ["", ""];
  if (!url || !hash) throw new Error("only the built page can be saved");
  const response = await fetch(url, { integrity: hash }).catch(() => undefined);
  if (!response?.ok) throw new Error("the page's own files can't be read; the server may have another version: reload the page");
  return { text: await response.text(), hash };
}

const policy = ({ script, style }: Sources): string =>
  `default-src 'none'; script-src '${script.hash}'; style-src '${style.hash}'; img-src data:; base-uri 'none'; ` +
  "form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/** An element; its tags are composed here, so that this script does not contain them. */
const element = (name: string, attributes: string, ...content: string[]): string[] =>
  [`<${name} ${attributes}>`, ...content, `</${name}>\n`];

/** Writes the document of a record, in pieces. */
export function documentOf(events: readonly AgentEvent[], { script, style }: Sources): string[] {
  return [
    `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy({ script, style })}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Mainstem</title>
<link rel="icon" href="data:,">
`,
    ...element("style", `id="${STYLE}" data-hash="${style.hash}"`, style.text),
    `</head>
<body>
<div id="page"></div>
<noscript>This page needs JavaScript.</noscript>
`,
    ...element("script", `type="application/x-ndjson" id="${RECORD}"`, ...linesOf(events).map(escaped)),
    ...element("script", `type="module" id="${SCRIPT}" data-hash="${script.hash}"`, script.text),
    "</body>\n</html>\n",
  ];
}

const escaped = (json: string): string => json.replace(/[<\u2028\u2029]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
