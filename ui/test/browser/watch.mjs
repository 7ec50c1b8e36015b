// Watched, steered by keyboard, cut off, replayed, and screens of every size.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { accessible, api, between, binary, browser, card, isSlow, linesIn, open, patience, picture, saved, seed, serve, stage, TOKEN } from "./harness.mjs";

export async function asksForAToken() {
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
export async function isWatchedAndSteered() {
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
export async function survivesCutsAndIsReplayed() {
  between.cut(3, seed);
  await api("sessions/cut/runs", "POST", { input: "Review the discount change" });
  const page = await open("#cut");
  const child = card(page, "reviewer · correctness");
  await child.locator(".said", { hasText: "Nothing keeps" }).waitFor(patience);
  const state = (await api("sessions/cut/fleet")).agents.find((agent) => agent.source?.label === "correctness");
  assert.equal(state.outcome, undefined, "the child has text on the page before it ends");
  await accessible(page, "running");
  await picture(page, "running");
  await page.locator(".lane > div > .parts > .said", { hasText: "keep each once" }).waitFor(patience);
  const last = await lastOfIdle("cut");
  await page.waitForFunction((seq) => document.querySelector(".replay output").textContent.startsWith(`${seq} of ${seq}`), last);
  assert.equal(between.cuts, 0, "the connection was cut three times");
  const record = await sameAsTheRecord(page);
  const moment = record.find((event) => event.type === "TEXT_BLOCK_END" && event.source?.label === "correctness").seq;

  // The film: at every moment the same as the fold of the record up to there.
  const live = await page.locator(".lane").innerText();
  const scrubber = page.getByLabel("event", { exact: true });
  await scrubber.focus();
  await page.keyboard.press("Home");
  await page.locator(".banner", { hasText: "REPLAY" }).waitFor();
  await page.waitForFunction(() => document.querySelectorAll("[role=treeitem]").length === 0);
  await scrubber.fill(String(moment - 1));
  await page.keyboard.press("ArrowRight");
  await page.waitForFunction((seq) => document.querySelector(".replay output").textContent.startsWith(`${seq} of`), moment);
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
  await linked.locator(".banner", { hasText: `REPLAY at event ${moment}` }).waitFor();
  assert.equal(await linked.locator(".lane").innerText(), await page.evaluate(async (seq) => {
    const range = document.querySelector("input[type=range]");
    range.value = seq;
    range.dispatchEvent(new Event("input", { bubbles: true }));
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    return document.querySelector(".lane").innerText;
  }, moment));
  await linked.close();
  await page.close();
}

/** A page that reads a record over cut connections has each event once, for any seed. */
export async function survivesRandomCuts() {
  for (let n = 1; n <= (isSlow ? 25 : 1); n += 1) {
    between.cut(4, seed + n);
    const page = await open("#cut");
    const last = await lastOfIdle("cut");
    await page.waitForFunction((seq) => document.querySelector(".replay output")?.textContent.startsWith(`${seq} of ${seq}`), last);
    await sameAsTheRecord(page).catch((error) => assert.fail(`with the seed ${seed + n}: ${error.message}`));
    await page.close();
  }
}

/** The last event of a session, once no further one comes by itself. */
async function lastOfIdle(session) {
  for (;;) {
    const view = await api(`sessions/${session}`);
    if (view.state === "idle") return view.last_seq;
    await new Promise((done) => setTimeout(done, 50));
  }
}

/** What the page saves is the record, and each answer is in its agent's card, once. Returns the record. */
async function sameAsTheRecord(page) {
  const headers = { authorization: `Bearer ${TOKEN}`, accept: "application/x-ndjson" };
  const text = await (await fetch(`${stage.server.url}/v1/sessions/cut/events?follow=false`, { headers })).text();
  const events = text.trim().split("\n").map((line) => JSON.parse(line));
  const file = await saved(page, page.getByRole("button", { name: "NDJSON" }));
  const lines = linesIn(file.path);
  assert.deepEqual(lines, events, "nothing is lost or doubled");
  const replayed = spawnSync(binary, ["replay", file.path, "--speed", "max", "--progress", "quiet"], { encoding: "utf8" });
  assert.match(replayed.stdout, /keep each once/, replayed.stderr);
  const results = events.filter((event) => event.type === "AGENT_RESULT" && event.source);
  assert.ok(results.length >= 5);
  for (const { source, result } of results) {
    const expected = result.content.at(-1).text.split("\n")[0];
    const shown = await page.locator(`section.card[data-agent="${source.agentKey}"]`).innerText();
    assert.equal(shown.split(expected).length - 1, 1, `${expected} in ${shown}`);
  }
  return events;
}

/**
 * The server is killed and started again: the page goes on by itself, and the cut turn can be
 * resumed.
 */
export async function survivesARestart() {
  const page = await open("#restarted");
  await page.locator(".chip", { hasText: "new" }).waitFor(patience);
  await page.getByLabel("Task", { exact: true }).fill("Review the discount change");
  await page.keyboard.press("Enter");
  await card(page, "tester · tests").waitFor(patience);
  stage.server.child.kill("SIGKILL");
  await page.locator(".banner", { hasText: "The connection is lost" }).waitFor(patience);
  assert.equal(await page.getByRole("button", { name: "Send" }).getAttribute("title"), "the connection is lost");
  await accessible(page, "reconnecting");
  await picture(page, "reconnecting");
  stage.server = await serve(new URL(stage.server.url).port);
  await page.locator(".chip", { hasText: "idle" }).waitFor(patience);
  await page.getByRole("button", { name: "Resume" }).and(page.locator("[aria-disabled=false]")).click();
  await page.locator(".chip", { hasText: "LIVE" }).waitFor(patience);
  await page.getByRole("button", { name: "Cancel the run" }).click();
  await page.locator(".lane .ended", { hasText: "cancelled" }).waitFor(patience);
  await picture(page, "cancelled");
  await page.close();
}
