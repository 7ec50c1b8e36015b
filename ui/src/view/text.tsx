// Foreign text on the page: always as text nodes. Control characters that could hide or reorder it
// are shown as escapes.
import type { ComponentChildren } from "preact";
import { lexer, type Token, type Tokens } from "marked";

/** A longer text is shown as it is: to read it as markdown would take too long. */
const MOST_MARKDOWN = 40_000;

const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g;

/** Shows control characters and changes of the writing direction as escapes. */
export function visible(text: string): string {
  return text.replace(/\r\n/g, "\n").replace(CONTROLS, (unit) => `\\u{${unit.charCodeAt(0).toString(16)}}`);
}

/** The same in the form of JSON's escapes. */
export const escaped = (json: string): string =>
  json.replace(CONTROLS, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);

/** The first line of a text, cut. */
export function firstLine(text: string, most = 120): string {
  const line = visible(text.trimStart().split("\n", 1)[0]!.slice(0, most + 1));
  return line.length > most ? `${line.slice(0, most)}…` : line;
}

export function Markdown({ text }: { text: string }) {
  const clean = visible(text);
  if (clean.length > MOST_MARKDOWN) return <pre class="plain" dir="auto">{clean}</pre>;
  return <div class="markdown" dir="auto">{blocks(lexer(clean))}</div>;
}

const blocks = (tokens: Token[]): ComponentChildren => tokens.map((token, n) => <Block key={n} token={token} />);

function Block({ token }: { token: Token }) {
  switch (token.type) {
    case "space":
    case "def":
      return null;
    case "heading":
      // The page's own headings come first in its outline.
      return <p class={`heading h${token.depth}`}>{inlines(token)}</p>;
    case "paragraph":
      return <p>{inlines(token)}</p>;
    case "code":
      return <pre class="code"><code>{token.text}</code></pre>;
    case "blockquote":
      return <blockquote>{blocks(token.tokens ?? [])}</blockquote>;
    case "hr":
      return <hr />;
    case "list":
      return <List list={token as Tokens.List} />;
    case "table":
      return <Table table={token as Tokens.Table} />;
    case "text":
      return <>{inlines(token)}</>;
    default:
      return <p>{token.raw}</p>;
  }
}

function List({ list }: { list: Tokens.List }) {
  const items = list.items.map((item, n) => (
    <li key={n}>{item.task && (item.checked ? "☑ " : "☐ ")}{blocks(item.tokens.filter((token) => token.type !== "checkbox"))}</li>
  ));
  return list.ordered ? <ol start={Number(list.start) || 1}>{items}</ol> : <ul>{items}</ul>;
}

function Table({ table }: { table: Tokens.Table }) {
  const cells = (row: Tokens.TableCell[], Cell: "th" | "td") => <tr>{row.map((cell, n) => <Cell key={n}>{inlines(cell)}</Cell>)}</tr>;
  return (
    <table>
      <thead>{cells(table.header, "th")}</thead>
      <tbody>{table.rows.map((row) => cells(row, "td"))}</tbody>
    </table>
  );
}

const inlines = (token: { tokens?: Token[]; text?: string }): ComponentChildren =>
  token.tokens ? token.tokens.map((inner, n) => <Inline key={n} token={inner} />) : token.text;

function Inline({ token }: { token: Token }) {
  switch (token.type) {
    case "strong":
      return <strong>{inlines(token as Tokens.Strong)}</strong>;
    case "em":
      return <em>{inlines(token as Tokens.Em)}</em>;
    case "del":
      return <del>{inlines(token as Tokens.Del)}</del>;
    case "codespan":
      return <code>{token.text}</code>;
    case "br":
      return <br />;
    case "link":
      return <Link href={token.href}>{inlines(token as Tokens.Link)}</Link>;
    case "image":
      // An image would be a request to another host, so it is a link.
      return <Link href={token.href}>{token.text || token.href}</Link>;
    case "escape":
      return <>{token.text}</>;
    case "text":
      return <>{inlines(token as Tokens.Text)}</>;
    default:
      return <>{token.raw}</>;
  }
}

/** A link to another site shows its address, and tells that site nothing. */
function Link({ href, children }: { href: string; children: ComponentChildren }) {
  if (!/^(https?|mailto):/i.test(href)) return <>{children} ({href})</>;
  return <a href={href} title={href} target="_blank" rel="noopener noreferrer nofollow">{children}</a>;
}

/** The output of a tool: a diff, a table of objects, or the text as it is. */
export function Output({ text }: { text: string }) {
  const clean = visible(text);
  if (/^(---|\+\+\+|@@) /m.test(clean) && /^@@ /m.test(clean)) return <Diff text={clean} />;
  const rows = rowsOf(text);
  return rows ? <Rows rows={rows} /> : <pre class="plain" dir="auto">{clean}</pre>;
}

function Diff({ text }: { text: string }) {
  const lines = text.split("\n");
  const kinds = diffKinds(lines);
  return <pre class="plain diff">{lines.map((line, n) => <span key={n} class={kinds[n]}>{`${line}\n`}</span>)}</pre>;
}

const KINDS: Record<string, string> = { "+": "plus", "-": "minus" };

/**
 * The kind of each line of a diff. The head of a hunk has the numbers of its lines: within them,
 * `---` is a removed line.
 */
export function diffKinds(lines: readonly string[]): string[] {
  let [before, after] = [0, 0];
  return lines.map((line) => {
    const head = /^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@/.exec(line);
    if (head) [before, after] = [Number(head[1] ?? 1), Number(head[2] ?? 1)];
    if (line.startsWith("@@") || (before <= 0 && after <= 0 && /^(\+\+\+|---)/.test(line))) return "place";
    const kind = KINDS[line[0]!] ?? "same";
    if (kind !== "plus" && line[0] !== "\\") before -= 1;
    if (kind !== "minus" && line[0] !== "\\") after -= 1;
    return kind;
  });
}

type Row = Record<string, unknown>;

const MOST_ROWS = 200;

/** The rows of a JSON array of objects without inner objects. */
function rowsOf(text: string): Row[] | undefined {
  if (!text.trimStart().startsWith("[{") && !/^\s*\[\s*\{/.test(text.slice(0, 100))) return undefined;
  try {
    const rows: unknown = JSON.parse(text);
    const isFlat = (row: unknown): row is Row =>
      typeof row === "object" && row !== null && Object.values(row).every((value) => typeof value !== "object" || value === null);
    return Array.isArray(rows) && rows.length > 0 && rows.every(isFlat) ? rows : undefined;
  } catch {
    return undefined;
  }
}

function Rows({ rows }: { rows: Row[] }) {
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))].slice(0, 20);
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="table">
      <table>
        <thead><tr>{names.map((name) => <th key={name}>{visible(name)}</th>)}</tr></thead>
        <tbody>
          {rows.slice(0, MOST_ROWS).map((row, n) => <tr key={n}>{names.map((name) => <td key={name}>{visible(String(row[name] ?? ""))}</td>)}</tr>)}
        </tbody>
      </table>
      {rows.length > MOST_ROWS && <p class="muted">{rows.length - MOST_ROWS} further rows</p>}
    </div>
  );
}
