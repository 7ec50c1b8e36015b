// The page in Chromium, against `mainstem serve -m demo`: watched, steered by keyboard, replayed,
// cut off, attacked.
//
// `cargo xtask ui` runs it: node page.mjs <the binary `mainstem`> [<a folder for pictures>]
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";
import { Between, Script, snapshot } from "./between.mjs";

const [binary, pictures] = process.argv.slice(2);
const AXE = fs.readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const TOKEN = "a-token-of-the-test-with-enough-characters";
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "mainstem-page-"));
const patience = { timeout: 30_000 };

fs.writeFileSync(path.join(folder, "tokens"), `${TOKEN}\n`);

/** Starts the server with a record, and returns its address. */
async function serve(port) {
  const journal = path.join(folder, "journal.db");
  const args = ["serve", "-m", "demo", "--bind", `127.0.0.1:${port}`, "--token-file", path.join(folder, "tokens"), "--journal", journal, "--log", "off"];
  const child = spawn(binary, args, { cwd: folder, stdio: ["ignore", "pipe", "inherit"] });
  const line = await new Promise((done, failed) => {
    child.stdout.once("data", (bytes) => done(String(bytes)));
    child.once("exit", (code) => failed(new Error(`the server ended with ${code}`)));
  });
  return { child, url: line.trim().split("\n")[0] };
}

const api = async (url, way, method = "GET", body) => {
  const headers = { authorization: `Bearer ${TOKEN}`, "content-type": "application/json", accept: "application/json" };
  const response = await fetch(`${url}/v1/${way}`, { method, headers, body: body && JSON.stringify(body) });
  assert.ok(response.ok, `${method} ${way}: ${response.status} ${await response.clone().text()}`);
  return response.json();
};

let server = await serve(0);
const between = await new Between(server.url).listen();
const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu", "--enable-precise-memory-info"] });
const trouble = [];

/** Opens the page at a moment; `look` is a part of the browser's settings. */
async function open(hash, look = {}) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...look });
  const page = await context.newPage();
  page.setDefaultTimeout(patience.timeout);
  page.on("pageerror", (error) => trouble.push(String(error)));
  page.on("console", (message) => /Content Security Policy|Trusted/i.test(message.text()) && trouble.push(message.text()));
  page.on("request", (request) => !/^(blob:|data:)/.test(request.url()) && !request.url().startsWith(between.url) && trouble.push(`a request to ${request.url()}`));
  await page.addInitScript((token) => sessionStorage.setItem("mainstem-token", token), TOKEN);
  await page.goto(between.url + hash);
  return page;
}

/** Fails on anything that axe finds; scripts of the test are not under the page's policy. */
async function accessible(page, where) {
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => window.axe.run());
  assert.deepEqual(violations.map(({ id, nodes }) => [id, nodes.map((node) => node.html.slice(0, 160))]), [], where);
}

const picture = async (page, name) => pictures && page.screenshot({ path: path.join(pictures, `${name}.png`) });
const card = (page, name) => page.locator(`section.card[aria-label="agent ${name}"]`);

async function asksForAToken() {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  const page = await context.newPage();
  await page.goto(between.url);
  await page.fill("#token", "wrong");
  await page.keyboard.press("Enter");
  await page.waitForSelector("[role=alert]");
  await accessible(page, "login");
  await picture(page, "login");
  await page.fill("#token", TOKEN);
  await page.keyboard.press("Enter");
  await page.waitForSelector(".desk");
  const linked = await context.newPage();
  await linked.goto(`${between.url}#token=${TOKEN}`);
  await linked.waitForSelector(".desk");
  assert.ok(!linked.url().includes(TOKEN), "the token leaves the address");
  await context.close();
}

/** An image of one pixel. */
const DOT = Buffer.from("R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw==", "base64");

/** A run from its start to its end, steered without a mouse. */
async function isWatchedAndSteered() {
  const page = await open("#steered");
  await page.waitForSelector(".empty");
  await accessible(page, "empty");
  await picture(page, "empty");
  // Disabled with a reason, which the keyboard gets to.
  const resume = page.getByRole("button", { name: "Resume" });
  assert.equal(await resume.getAttribute("aria-disabled"), "true");
  assert.equal(await resume.getAttribute("title"), "nothing has run yet");

  await page.getByLabel("Ask me before").fill("read_diff, run_tests");
  await page.locator("input[type=file]").setInputFiles({ name: "dot.gif", mimeType: "image/gif", buffer: DOT });
  await page.getByLabel("Task", { exact: true }).fill("Review the **discount** change");
  await page.keyboard.press("Enter");
  await card(page, "reviewer · correctness").waitFor(patience);
  assert.equal(await page.locator(".sent strong").textContent(), "discount");
  assert.ok(await page.locator(".sent img").evaluate((image) => image.complete && image.naturalWidth === 1), "the attachment is shown");

  // An approval, with the arguments changed.
  const first = page.locator("article.ask").first();
  await first.waitFor(patience);
  assert.ok((await page.title()).startsWith("("), "the title counts");
  await accessible(page, "needs you");
  await picture(page, "needs-you");
  const asker = (await first.getAttribute("aria-label")).replace("approval for ", "");
  await first.getByLabel("arguments").fill("{ not JSON");
  assert.equal(await first.getByRole("button", { name: "Allow as changed" }).getAttribute("title"), "the arguments are not JSON");
  await first.getByLabel("arguments").fill('{ "file": "src/discount.rs" }');
  await first.getByRole("button", { name: "Allow as changed" }).focus();
  await page.keyboard.press("Enter");
  await card(page, asker).locator(".call", { hasText: "src/discount.rs" }).first().waitFor(patience);

  // A message to a child, which is chosen in the tree.
  await page.locator("[role=treeitem][tabindex='0']").focus();
  const name = () => page.evaluate(() => document.activeElement.querySelector(".who")?.textContent);
  for (let row = 0; row < 10 && (await name()) !== "reviewer · security"; row += 1) await page.keyboard.press("ArrowDown");
  assert.equal(await name(), "reviewer · security");
  await page.keyboard.press("Enter");
  await page.getByRole("textbox", { name: "Message to reviewer · security" }).fill("Look at *empty* codes.");
  await page.keyboard.press("Enter");
  await page.locator(".sent em", { hasText: "empty" }).waitFor(patience);

  // A cancel of a subtree, by keyboard.
  await page.locator("[role=treeitem]", { hasText: "tester" }).click();
  await page.getByRole("button", { name: /^Cancel tester/ }).focus();
  await page.keyboard.press("Enter");
  await page.locator(".crumbs .chip", { hasText: "cancelled" }).waitFor(patience);
  await page.locator(".crumbs button").click();

  // What else is asked: the first is denied, the rest is allowed.
  let isDenied = false;
  const ended = page.locator(".composer[aria-label='start a run']");
  while (!(await ended.isVisible())) {
    const ask = page.locator("article.ask").first();
    const button = ask.getByRole("button", { name: isDenied ? /^Allow/ : "Deny" });
    if (!(await button.isVisible())) { await page.waitForTimeout(50); continue; }
    if (!isDenied) await ask.getByLabel("reason for the agent").fill("not this one");
    await button.click({ timeout: 2000 }).catch(() => undefined);
    isDenied = true;
    await page.waitForTimeout(150);
  }
  assert.ok((await page.locator(".call .chip", { hasText: "denied" }).count()) > 0, "the refusal is shown");
  await page.close();
}

/**
 * Text of a child before the child ends; a connection that is cut loses and doubles nothing; then
 * the film.
 */
async function survivesCutsAndIsReplayed() {
  between.cuts = 3;
  await api(server.url, "sessions/cut/runs", "POST", { input: "Review the discount change" });
  const page = await open("#cut");
  const child = card(page, "reviewer · correctness");
  await child.locator(".said", { hasText: "Nothing keeps" }).waitFor(patience);
  const state = (await api(server.url, "sessions/cut/fleet")).agents.find((agent) => agent.source?.label === "correctness");
  assert.equal(state.outcome, undefined, "the child has text on the page before it ends");
  await accessible(page, "running");
  await picture(page, "running");
  await page.locator(".lane > div > .parts > .said", { hasText: "keep each once" }).waitFor(patience);
  const last = await lastOfIdle("cut");
  await page.waitForFunction((seq) => document.querySelector(".replay output").textContent.startsWith(`${seq} of ${seq}`), last);
  assert.equal(between.cuts, 0, "the connection was cut three times");
  await sameAsTheRecord(page);

  // The film: at every moment the same as the fold of the record up to there.
  const live = await page.locator(".lane").innerText();
  const scrubber = page.getByLabel("event", { exact: true });
  await scrubber.focus();
  await page.keyboard.press("Home");
  await page.locator(".banner", { hasText: "REPLAY" }).waitFor();
  await page.waitForFunction(() => document.querySelectorAll("[role=treeitem]").length === 0);
  await scrubber.fill("150");
  await page.keyboard.press("ArrowRight");
  await page.waitForFunction(() => document.querySelector(".replay output").textContent.startsWith("151 of"));
  assert.equal(await page.getByRole("button", { name: "Send" }).getAttribute("title"), "this is a replay; go back to live first");
  assert.match(await child.innerText(), /Nothing keeps/);
  assert.doesNotMatch(await child.innerText(), /cap them at the sum/);
  await accessible(page, "replay");
  await picture(page, "replay");
  await page.getByRole("button", { name: "Link" }).click();
  const address = page.url();
  await page.getByRole("button", { name: "Back to live" }).click();
  await page.waitForFunction((text) => document.querySelector(".lane").innerText === text, live);

  const linked = await open(address.slice(address.indexOf("#")));
  await linked.locator(".banner", { hasText: "REPLAY at event 151" }).waitFor();
  assert.equal(await linked.locator(".lane").innerText(), await page.evaluate(async () => {
    const range = document.querySelector("input[type=range]");
    range.value = 151;
    range.dispatchEvent(new Event("input", { bubbles: true }));
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    return document.querySelector(".lane").innerText;
  }));
  await linked.close();
  await page.getByRole("button", { name: "Back to live" }).click();
  return page;
}

/** The last event of a session, once no further one comes by itself. */
async function lastOfIdle(session) {
  for (;;) {
    const view = await api(server.url, `sessions/${session}`);
    if (view.state === "idle") return view.last_seq;
    await new Promise((done) => setTimeout(done, 50));
  }
}

/** What the page saves is the record, and each answer is in its agent's card, once. */
async function sameAsTheRecord(page) {
  const headers = { authorization: `Bearer ${TOKEN}`, accept: "application/x-ndjson" };
  const text = await (await fetch(`${server.url}/v1/sessions/cut/events?follow=false`, { headers })).text();
  const events = text.trim().split("\n").map((line) => JSON.parse(line));
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "NDJSON" }).click()]);
  const saved = fs.readFileSync(await download.path(), "utf8").trim().split("\n").map((line) => JSON.parse(line));
  assert.deepEqual(saved, events, "nothing is lost or doubled");
  const replayed = spawnSync(binary, ["replay", await download.path(), "--speed", "max", "--progress", "quiet"], { encoding: "utf8" });
  assert.match(replayed.stdout, /keep each once/, replayed.stderr);
  const results = events.filter((event) => event.type === "AGENT_RESULT" && event.source);
  assert.ok(results.length >= 5);
  for (const { source, result } of results) {
    const expected = result.content.at(-1).text.split("\n")[0];
    const shown = await page.locator(`section.card[data-agent="${source.agentKey}"]`).innerText();
    assert.equal(shown.split(expected).length - 1, 1, `${expected} in ${shown}`);
  }
}

/**
 * The server is killed and started again: the page goes on by itself, and the cut turn can be
 * resumed.
 */
async function survivesARestart(page) {
  await page.evaluate(() => (location.hash = "#restarted"));
  await page.getByLabel("Task", { exact: true }).fill("Review the discount change");
  await page.keyboard.press("Enter");
  await card(page, "tester · tests").waitFor(patience);
  server.child.kill("SIGKILL");
  await page.locator(".banner", { hasText: "The connection is lost" }).waitFor(patience);
  assert.equal(await page.getByRole("button", { name: "Send" }).getAttribute("title"), "the connection is lost");
  await accessible(page, "reconnecting");
  await picture(page, "reconnecting");
  server = await serve(new URL(server.url).port);
  await page.locator(".chip", { hasText: "idle" }).waitFor(patience);
  await page.getByRole("button", { name: "Resume" }).and(page.locator("[aria-disabled=false]")).click();
  await page.locator(".chip", { hasText: "LIVE" }).waitFor(patience);
  await page.getByRole("button", { name: "Cancel the run" }).click();
  await page.locator(".lane .ended", { hasText: "cancelled" }).waitFor(patience);
  await picture(page, "cancelled");
  await page.close();
}

/** HTML, scripts, escapes, changes of direction, long lines and thousands of tools are text. */
async function showsHostileText() {
  const attack = "<img src=x onerror=\"window.attacked=1\"><script>window.attacked=1</script>\u001b[31m\u202egnp.exe [a](javascript:attacked=1) ![b](http://elsewhere.example/b.png) [c](data:text/html,x)";
  between.sessions.set("hostile", {
    fleet: snapshot(0, 0),
    async *events() {
      const script = new Script();
      yield script.start(0, attack);
      yield script.event(0, "TEXT_BLOCK_START", { blockId: "b1" });
      yield script.event(0, "TEXT_BLOCK_DELTA", { blockId: "b1", delta: attack });
      yield script.event(0, "TEXT_BLOCK_START", { blockId: "b2" });
      yield script.event(0, "TEXT_BLOCK_DELTA", { blockId: "b2", delta: "x".repeat(10 << 20) });
      yield script.event(0, "TEXT_BLOCK_START", { blockId: "b3" });
      yield script.event(0, "TEXT_BLOCK_DELTA", { blockId: "b3", delta: `${"[".repeat(20_000)}${"> ".repeat(5000)}` });
      for (let call = 0; call < 10_000; call += 1) {
        yield script.event(0, "TOOL_CALL_START", { toolCallId: `call-${call}`, toolCallName: attack });
        yield script.event(0, "TOOL_RESULT_START", { toolCallId: `call-${call}`, toolCallName: attack, input: { [attack]: attack } });
        yield script.event(0, "TOOL_RESULT_TEXT_DELTA", { toolCallId: `call-${call}`, delta: attack });
      }
      yield script.event(0, "REQUIRE_USER_CONFIRM", { confirmId: "c", toolCalls: [{ id: "call-1", name: attack, arguments: JSON.stringify({ attack }) }] });
      yield script.event(0, "REQUIRE_EXTERNAL_EXECUTION", { toolCalls: [{ id: "call-2", name: attack, arguments: attack }] });
      yield script.event(0, "TEXT_BLOCK_START", { blockId: "b4" });
      yield script.event(0, "TEXT_BLOCK_DELTA", { blockId: "b4", delta: attack });
      yield script.start(1, attack, { name: attack, label: attack });
      await new Promise(() => undefined);
    },
  });
  const page = await open("#hostile");
  await page.locator(".said", { hasText: "gnp.exe" }).last().waitFor(patience);
  await page.locator("article.ask").last().waitFor(patience);
  const shown = await page.locator(".said").last().textContent();
  assert.ok(shown.includes('<img src=x onerror="window.attacked=1">') && shown.includes("\\u{202e}gnp.exe") && shown.includes("\\u{1b}[31m"), shown);
  assert.equal(await page.evaluate(() => window.attacked), undefined);
  assert.equal(await page.locator(".lane img, .lane script, a[href^='javascript'], a[href^='data']").count(), 0);
  assert.ok(!/[\u202a-\u202e\u2066-\u2069\u001b]/.test(await page.locator("body").innerText()), "no character changes the direction");
  await picture(page, "hostile");
  // Arguments are escaped, so that a person sees what is allowed; they are sent as they were.
  const shownArguments = await page.getByLabel("arguments").inputValue();
  assert.ok(shownArguments.includes("\\u202egnp.exe") && JSON.parse(shownArguments).attack === attack, shownArguments);
  await page.getByRole("button", { name: "Allow" }).click();
  await page.getByLabel("result", { exact: true }).fill("42");
  await page.getByRole("button", { name: "Send the result" }).click();
  await page.locator(".notice", { hasText: "The result is sent." }).waitFor();
  assert.deepEqual(between.posted, [["/confirmations", { decision: "allow" }], ["/calls", { content: "42", is_error: false }]]);
  await page.close();
}

/** Where the beginning of a record is lost, the page begins at the snapshot. */
async function beginsWhereTheRecordDoes() {
  between.sessions.set("lost", {
    fleet: snapshot(3, 500),
    async *events(after) {
      const script = new Script();
      if (after === 0) yield script.event(0, "GAP", { fromSeq: 1, toSeq: 400, missed: 400, perAgent: {} });
      script.seq = 500;
      if (after === 500) yield script.event(2, "TEXT_BLOCK_START", { blockId: "b" });
      if (after === 500) yield script.event(2, "TEXT_BLOCK_DELTA", { blockId: "b", delta: "behind the snapshot" });
      await new Promise(() => undefined);
    },
  });
  const page = await open("#lost");
  await page.locator(".banner", { hasText: "The record before event 500 is not shown" }).waitFor(patience);
  await card(page, "worker 2").locator(".said", { hasText: "behind the snapshot" }).waitFor(patience);
  assert.equal(await page.locator("[role=treeitem]").count(), 3);
  await page.close();
}

/** A session that the server no longer has is shown as a new one. */
async function forgetsWhatTheServerHasForgotten() {
  const gone = new AbortController();
  between.sessions.set("forgotten", {
    fleet: snapshot(2, 0),
    async *events() {
      yield new Script().start(0, "remember this");
      await new Promise((done) => gone.signal.addEventListener("abort", done));
      between.sessions.delete("forgotten");
    },
  });
  const page = await open("#forgotten");
  await page.locator(".sent", { hasText: "remember this" }).waitFor(patience);
  gone.abort();
  await page.locator(".empty").waitFor(patience);
  await page.locator(".chip", { hasText: "new" }).waitFor(patience);
  await page.close();
}

/** Fifty agents with a hundred words a second each. */
async function keepsUpWithFiftyAgents() {
  const seconds = Number(process.env.STORM_SECONDS ?? 6);
  const script = new Script();
  between.sessions.set("storm", { fleet: snapshot(0, 0), events: () => storm(script, seconds) });
  const page = await open("about:blank");
  await page.addInitScript(() => {
    window.frames = [];
    const draw = window.requestAnimationFrame;
    window.requestAnimationFrame = (work) => draw((time) => {
      const begun = performance.now();
      work(time);
      // Components are drawn in a microtask that `work` has queued, so before this one.
      queueMicrotask(() => window.frames.push(performance.now() - begun));
    });
  });
  await page.goto(`${between.url}#storm`);
  await page.reload();
  await page.waitForFunction(() => document.querySelectorAll("[role=treeitem]").length === 51);
  const memory = [];
  for (let second = 0; second < seconds; second += 1) {
    await page.waitForTimeout(1000);
    memory.push(await page.evaluate(() => Math.round(performance.memory.usedJSHeapSize / 1e6)));
  }
  await picture(page, "storm");
  const frames = (await page.evaluate(() => window.frames)).sort((a, b) => a - b);
  const p95 = frames[Math.floor(frames.length * 0.95)];
  const seq = Number(/^(\d+)/.exec(await page.locator(".replay output").innerText())[1]);
  console.log(`50 agents: ${seq} events, ${frames.length} frames, scripting p50 ${frames[frames.length >> 1].toFixed(1)} ms, p95 ${p95.toFixed(1)} ms; heap ${memory.slice(0, 3)} … ${memory.slice(-3)} MB`);
  assert.ok(seq > seconds * 2500, `${seq} events were shown`);
  await page.close();
  return p95;
}

async function* storm(script, seconds) {
  yield script.start(0);
  for (let agent = 1; agent <= 50; agent += 1) {
    yield script.start(agent);
    yield script.event(agent, "TEXT_BLOCK_START", { blockId: `b${agent}` });
  }
  const begun = Date.now();
  for (let word = 0; Date.now() - begun < seconds * 1000 + 2000; word += 1) {
    // A block of a hundred words, then the next.
    for (let agent = 1; agent <= 50; agent += 1) {
      const block = (number) => ({ blockId: `b${agent}${number === 0 ? "" : `-${number}`}` });
      const { blockId } = block(Math.floor(word / 100));
      if (word > 0 && word % 100 === 0) {
        yield script.event(agent, "TEXT_BLOCK_END", block(word / 100 - 1));
        yield script.event(agent, "TEXT_BLOCK_START", { blockId });
      }
      yield script.event(agent, "TEXT_BLOCK_DELTA", { blockId, delta: word % 12 === 11 ? "**word**.\n\n" : "word " });
    }
    const ahead = begun + (word + 1) * 10 - Date.now();
    if (ahead > 0) await new Promise((done) => setTimeout(done, ahead));
  }
}

/**
 * A session of a thousand agents and a million events opens at once, and a long record is sought
 * in.
 */
async function opensLargeSessions() {
  between.sessions.set("million", { fleet: snapshot(1000, 1_000_000), events: () => idle() });
  const page = await open("#million");
  await page.waitForFunction(() => document.querySelectorAll("[role=treeitem]").length === 1000);
  await page.reload();
  const began = Date.now();
  await page.waitForFunction(() => document.querySelectorAll("[role=treeitem]").length === 1000);
  const opened = Date.now() - began;

  between.sessions.set("long", { fleet: snapshot(0, 0), events: () => long(new Script(), 40_000) });
  await page.evaluate(() => (location.hash = "#long"));
  await page.waitForFunction(() => document.querySelector(".replay output")?.textContent.startsWith("40000 of 40000"));
  const sought = await page.evaluate(async () => {
    const range = document.querySelector("input[type=range]");
    const times = [];
    for (let n = 1; n <= 20; n += 1) {
      const begun = performance.now();
      range.value = (n * 17_321) % 40_000;
      range.dispatchEvent(new Event("input", { bubbles: true }));
      await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
      times.push(performance.now() - begun);
    }
    return Math.max(...times);
  });
  console.log(`large sessions: 1000 agents at event 1000000 open in ${opened} ms; 20 seeks in 40000 events take at most ${sought.toFixed(0)} ms`);
  await page.close();
  return [opened, sought];
}

async function* idle() {
  await new Promise(() => undefined);
}

async function* long(script, count) {
  yield script.start(0);
  yield script.event(0, "TEXT_BLOCK_START", { blockId: "b" });
  while (script.seq < count) yield script.event(0, "TEXT_BLOCK_DELTA", { blockId: "b", delta: script.seq % 50 === 0 ? "\n\n" : "word " });
  await new Promise(() => undefined);
}

/** Every width in light and in dark. */
async function fitsEveryScreen() {
  for (const colorScheme of ["light", "dark"]) {
    for (const [width, height] of [[1440, 900], [1000, 800], [390, 844]]) {
      const page = await open("#cut", { viewport: { width, height }, colorScheme, reducedMotion: "reduce" });
      await page.locator(".said", { hasText: "keep each once" }).first().waitFor(patience);
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${width} px do not overflow`);
      await page.waitForFunction(() => { const lane = document.querySelector(".lane"); return lane.scrollHeight - lane.scrollTop - lane.clientHeight < 2; });
      await accessible(page, `${colorScheme}, ${width} px`);
      await picture(page, `done-${colorScheme}-${width}`);
      if (width === 390) await tabs(page, colorScheme);
      await page.close();
    }
  }
}

async function tabs(page, colorScheme) {
  for (const tab of ["Agents", "Timeline", "Needs you"]) {
    await page.getByRole("button", { name: tab }).click();
    await accessible(page, `${tab}, ${colorScheme}`);
    await picture(page, `${tab.toLowerCase().replace(" ", "-")}-${colorScheme}-390`);
  }
}

async function timed(work, ...args) {
  const begun = Date.now();
  const result = await work(...args);
  console.log(`${work.name}: ok in ${((Date.now() - begun) / 1000).toFixed(1)} s`);
  return result;
}

try {
  const [page] = await Promise.all([
    timed(survivesCutsAndIsReplayed),
    timed(asksForAToken).then(() => timed(isWatchedAndSteered)),
  ]);
  await timed(fitsEveryScreen);
  await timed(survivesARestart, page);
  await timed(showsHostileText);
  await timed(beginsWhereTheRecordDoes);
  await timed(forgetsWhatTheServerHasForgotten);
  // Other programs of the machine take time from a frame, too, so one of three times is enough.
  let p95 = Infinity;
  for (let time = 0; time < 3 && p95 > 16; time += 1) p95 = await timed(keepsUpWithFiftyAgents);
  const [opened, sought] = await timed(opensLargeSessions);
  assert.ok(p95 <= 16, `scripting takes ${p95} ms a frame`);
  assert.ok(opened <= 1000 && sought <= 200, `opened in ${opened} ms, sought in ${sought} ms`);
  assert.deepEqual(trouble, []);
} finally {
  await browser.close();
  between.close();
  server.child.kill();
  fs.rmSync(folder, { recursive: true, force: true });
}
process.exit(0);
