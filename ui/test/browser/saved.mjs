// What the page saves: a document that opens without a server, and excerpts.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { accessibleInBoth, api, between, binary, browser, card, folder, linesIn, open, patience, picture, saved, tabTo, timeline, watched } from "./harness.mjs";
import { Script, snapshot } from "./between.mjs";

/** Text that would end a script, or begin a comment in which nothing ends it. */
const ATTACK = "</script><script>window.attacked=1</script><!--<script> \u2028\u2029 ]]> <img src=x onerror=\"window.attacked=1\"> </textarea></style>\u0000\ud800";

function hostile() {
  const script = new Script();
  const events = [
    script.start(0, ATTACK),
    script.event(0, "TOOL_CALL_START", { toolCallId: "call-1", toolCallName: ATTACK }),
    script.event(0, "TOOL_RESULT_START", { toolCallId: "call-1", toolCallName: ATTACK, input: { [ATTACK]: ATTACK } }),
    script.event(0, "TEXT_BLOCK_START", { blockId: "b1" }),
    script.event(0, "TEXT_BLOCK_DELTA", { blockId: "b1", delta: `first ${ATTACK}` }),
    script.start(1, ATTACK, { name: ATTACK, label: ATTACK }),
    script.event(0, "TEXT_BLOCK_START", { blockId: "b2" }),
    script.event(0, "TEXT_BLOCK_DELTA", { blockId: "b2", delta: "the last text" }),
  ];
  return events;
}

/** Plays events as a session of a server, which stays open unless it is over. */
export function play(id, events, { isOver = false } = {}) {
  between.sessions.set(id, {
    fleet: snapshot(0, 0),
    record: events,
    end: isOver ? events.at(-1).seq : undefined,
    async *events(after) {
      yield* events.filter((event) => event.seq > after);
      if (!isOver) await new Promise(() => undefined);
    },
  });
}

/** What a document has around its record. */
const frameOf = (document) => [document.slice(0, document.indexOf('id="record">')), document.slice(document.indexOf("</script>"))];

/** The binary writes the same document, by the contract. */
async function isWrittenByTheBinary(document) {
  await api("sessions/exported/runs", "POST", { input: "Review the discount change" });
  const written = execFileSync(binary, ["sessions", "export", "exported", "--html", "--journal", path.join(folder, "journal.db")], { encoding: "utf8" });
  // A page that is served instead of the binary's own is another one.
  if (!process.env.MAINSTEM_PAGE) assert.deepEqual(frameOf(written), frameOf(document));
  const file = path.join(folder, "exported.html");
  fs.writeFileSync(file, written);
  const page = await openFile(file);
  await page.locator(".banner", { hasText: "Nothing can be sent to it." }).waitFor(patience);
  await page.getByText("Review the discount change").first().waitFor(patience);
  await page.close();
}

/** Opens a file without a network; every request but that for the file itself is trouble. */
async function openFile(file) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, offline: true });
  const page = watched(await context.newPage(), pathToFileURL(file).href);
  await page.goto(pathToFileURL(file).href);
  return page;
}

/** A record is saved as one document, which opens from the disk without a network, and is only read. */
export async function opensWithoutAServer() {
  const events = hostile();
  play("hostile-record", events);
  const page = await open("#hostile-record");
  await page.locator(".said", { hasText: "the last text" }).waitFor(patience);
  const button = page.getByRole("button", { name: "HTML" });
  await tabTo(page, button);
  const { name, path: download } = await saved(page, button);
  await page.close();
  assert.equal(name, "hostile-record.html");
  const file = path.join(folder, name);
  fs.copyFileSync(download, file);
  const text = fs.readFileSync(file, "utf8");
  assert.equal(text.split("</script>").length - 1, 2, "no text of the record ends an element");
  assert.ok(!/[\u2028\u2029]/.test(text));
  assert.match(text, /content="default-src 'none'; script-src 'sha256-[^' ]+'; style-src 'sha256-[^' ]+'; img-src data:;/);
  await isWrittenByTheBinary(text);

  const opened = await openFile(file);
  await opened.locator(".said", { hasText: "the last text" }).waitFor(patience);
  await opened.locator(".banner", { hasText: `RECORD at event ${events.length}. Nothing can be sent to it.` }).waitFor();
  assert.equal(await opened.evaluate(() => window.attacked), undefined);
  assert.equal(await opened.locator("script").count(), 2, "only the page's own script, and the record");
  assert.ok((await opened.locator(".said", { hasText: "first" }).textContent()).includes("</script><script>window.attacked=1</script><!--<script>"));
  assert.equal(await opened.locator("[role=treeitem]").count(), 2);
  // Nothing can be sent, and the reason is said.
  const reason = "this is a recorded session; nothing can be sent to it";
  const buttons = opened.locator(".composer button");
  assert.ok((await buttons.count()) > 1);
  for (const one of await buttons.all()) assert.equal(await one.getAttribute("title"), reason);
  assert.equal(await opened.getByRole("button", { name: "Back to live" }).count(), 0);
  await accessibleInBoth(opened, "a record");
  await picture(opened, "record");
  // It is replayed like any other record, and its moments have addresses.
  await opened.getByLabel("event", { exact: true }).focus();
  await opened.keyboard.press("Home");
  await opened.keyboard.press("ArrowRight");
  await opened.locator(".banner", { hasText: "RECORD at event 1." }).waitFor();
  await opened.getByRole("button", { name: "Link" }).press("Enter");
  assert.match(opened.url(), /#played\/root@1$/);
  await opened.getByLabel("event", { exact: true }).focus();
  await opened.keyboard.press("End");
  // The document can write itself again, and it is the same.
  const again = await saved(opened, opened.getByRole("button", { name: "HTML" }));
  assert.equal(fs.readFileSync(again.path, "utf8"), text);
  const lines = await saved(opened, opened.getByRole("button", { name: "NDJSON" }));
  assert.deepEqual(linesIn(lines.path), JSON.parse(JSON.stringify(events)));
  await opened.context().close();
  await isUnderItsPolicy(file);
  await isNamedByItsContract(text, events);
}

/** What a record could bring along is refused: scripts, and requests. */
async function isUnderItsPolicy(file) {
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(pathToFileURL(file).href);
  const script = () => {
    const element = document.createElement("script");
    element.textContent = "window.attacked = 2";
    document.body.append(element);
  };
  await assert.rejects(page.evaluate(script), /TrustedScript/);
  // Markup that the parser finds is not under trusted types, but under the hashes.
  const added = path.join(path.dirname(file), "added.html");
  fs.writeFileSync(added, `${fs.readFileSync(file, "utf8")}<script>window.attacked = 2</script>`);
  await page.goto(pathToFileURL(added).href);
  await page.locator(".said", { hasText: "the last text" }).waitFor(patience);
  assert.equal(await page.evaluate(() => window.attacked), undefined);
  assert.equal(await page.evaluate(() => fetch("http://127.0.0.1:9/").then(() => "sent", (error) => String(error))), "TypeError: Failed to fetch");
  await context.close();
}

/** A document that was written by another program, by the contract in `src/document.ts`. */
async function isNamedByItsContract(text, events) {
  const lines = events.map((event) => `${JSON.stringify(event)}\n`).join("").replace(/</g, "\\u003c");
  const written = text.replace(/(<script type="application\/x-ndjson" id="record">)[^<]*(?=<\/script>)/, (_, tag) => tag + lines);
  const file = path.join(folder, "written.html");
  fs.writeFileSync(file, written);
  const opened = await openFile(file);
  await opened.locator(".said", { hasText: "the last text" }).waitFor(patience);
  await opened.context().close();
}

/** A range, and the subtree of an agent; both are said to be excerpts, also where they are opened. */
export async function savesExcerpts() {
  const events = timeline("demo");
  play("excerpt", events);
  const page = await open("#excerpt");
  await page.waitForFunction((count) => document.querySelector(".replay output")?.textContent.startsWith(`${count} of`), events.length);
  const test = await saved(page, page.getByRole("button", { name: "Test", exact: true }));
  assert.equal(test.name, "excerpt.rs");
  assert.match(fs.readFileSync(test.path, "utf8"), /async fn session_excerpt\(\) \{[^]*const RECORD: &str = r#"\n\{"type":"AGENT_START"/);
  const toggle = page.getByRole("button", { name: "Excerpt" });
  await tabTo(page, toggle);
  await page.keyboard.press("Enter");
  const group = page.getByRole("group", { name: "excerpt" });
  await group.getByText("An excerpt is not a whole record").waitFor();
  await accessibleInBoth(page, "excerpt");
  await picture(page, "excerpt");
  const scrubber = page.getByLabel("event", { exact: true });
  await scrubber.fill("100");
  await group.getByRole("button", { name: "From event: the one shown, 100" }).press("Enter");
  await group.getByLabel("to event", { exact: true }).fill("180");
  const save = group.getByRole("button", { name: "Save the excerpt" });
  const range = await saved(page, save);
  assert.equal(range.name, "excerpt.excerpt-100-180.ndjson");
  assert.deepEqual(linesIn(range.path), events.slice(99, 180));
  await group.getByLabel("to event", { exact: true }).fill("50");
  assert.equal(await save.getAttribute("title"), "the first event is behind the last one");

  // A subtree: the tester, with the runner below it.
  await scrubber.fill(String(events.length));
  await page.locator("[role=treeitem]", { hasText: "tester" }).click();
  await group.getByLabel("From event", { exact: true }).fill("1");
  await group.getByLabel("to event", { exact: true }).fill(String(events.length));
  await group.getByLabel("agents of the excerpt").selectOption({ label: "tester · tests and below" });
  const subtree = await saved(page, save);
  const expected = events.filter(({ source }) => ["tester", "runner"].includes(source?.agentId));
  assert.ok(new Set(expected.map(({ source }) => source.agentId)).size === 2);
  assert.deepEqual(linesIn(subtree.path), expected);
  await page.close();

  // Opened, the excerpt says what it is.
  play("cut-out", events.slice(99, 180));
  const other = await open("#cut-out");
  await other.waitForFunction(() => document.querySelector(".replay output")?.textContent.startsWith("180 of"));
  const { path: file } = await saved(other, other.getByRole("button", { name: "HTML" }));
  await other.close();
  const copy = path.join(folder, "cut-out.html");
  fs.copyFileSync(file, copy);
  const opened = await openFile(copy);
  await opened.locator(".banner", { hasText: "This is an excerpt: it begins at event 100." }).waitFor(patience);
  await opened.context().close();
}
