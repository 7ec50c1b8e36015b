// What the tests in the browser share: a server with the demo model, a proxy before it, Chromium, and
// what goes wrong on any page.
//
// `MAINSTEM_PAGE` names a folder with a built page, which is then served instead of the server's.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";
import { Between } from "./between.mjs";

export const [binary, pictures] = process.argv.slice(2);
export const AXE = fs.readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
/** The operator's token. */
export const TOKEN = "a-token-of-the-test-with-enough-characters";
export const TOKEN_OF_ACME = "a-token-of-the-tenant-acme";
export const folder = fs.mkdtempSync(path.join(os.tmpdir(), "mainstem-page-"));
export const patience = { timeout: 30_000 };
/** What is random follows from it; `SEED` repeats a run. */
export const seed = Number(process.env.SEED ?? Date.now() % 1_000_000);
console.log(`seed ${seed}`);
/** Long tests run only where they are asked for. */
export const isSlow = process.env.RUN_SLOW_TESTS === "1";

fs.writeFileSync(path.join(folder, "tokens"), `${TOKEN}\nacme ${TOKEN_OF_ACME}\n`);

/** Starts the server with a record, and returns its address. */
export async function serve(port, { record = "journal.db", model = "demo", env = {} } = {}) {
  const journal = path.join(folder, record);
  const args = ["serve", "-m", model, "--bind", `127.0.0.1:${port}`, "--token-file", path.join(folder, "tokens"), "--journal", journal, "--log", "off"];
  const child = spawn(binary, args, { cwd: folder, stdio: ["ignore", "pipe", "inherit"], env: { ...process.env, ...env } });
  const line = await new Promise((done, failed) => {
    child.stdout.once("data", (bytes) => done(String(bytes)));
    child.once("exit", (code) => failed(new Error(`the server ended with ${code}`)));
  });
  return { child, url: line.trim().split("\n")[0] };
}

/** Asks the server itself. */
export const api = async (way, method = "GET", body, token = TOKEN) => {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json", accept: "application/json" };
  const response = await fetch(`${stage.server.url}/v1/${way}`, { method, headers, body: body && JSON.stringify(body) });
  assert.ok(response.ok, `${method} ${way}: ${response.status} ${await response.clone().text()}`);
  return response.json();
};

const server = await serve(0);

/** The server can be started again. */
export const stage = { server };
export const between = await new Between(server.url, process.env.MAINSTEM_PAGE).listen();
const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
export const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu", "--enable-precise-memory-info"] });
/** What no page may do: errors, violations of the policy, requests to others. */
export const trouble = [];

/** Records what a page does wrong; its requests begin with one of these addresses. */
export function watched(page, ...allowed) {
  page.setDefaultTimeout(patience.timeout);
  page.on("pageerror", (error) => trouble.push(String(error)));
  page.on("console", (message) => /Content Security Policy|Trusted/i.test(message.text()) && trouble.push(message.text()));
  page.on("request", (request) => ![...allowed, "blob:", "data:"].some((start) => request.url().startsWith(start)) && trouble.push(`a request to ${request.url()}`));
  return page;
}

/** Opens the page at a moment; `look` is a part of the browser's settings. */
export async function open(hash, look = {}) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...look });
  const page = watched(await context.newPage(), between.url);
  await page.addInitScript((token) => sessionStorage.setItem("mainstem-token", token), TOKEN);
  await page.goto(between.url + hash);
  return page;
}

/** Fails on anything that axe finds; scripts of the test are not under the page's policy. */
export async function accessible(page, where) {
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => window.axe.run());
  assert.deepEqual(violations.map(({ id, nodes }) => [id, nodes.map((node) => node.html.slice(0, 160))]), [], where);
}

/** The same in light and in dark. */
export async function accessibleInBoth(page, where) {
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    await accessible(page, `${where}, ${colorScheme}`);
  }
  await page.emulateMedia({ colorScheme: "light" });
}

/** Presses Tab until an element has the focus, as a keyboard's user does. */
export async function tabTo(page, locator) {
  const isFocused = () => locator.evaluate((element) => element === (element.getRootNode()).activeElement);
  for (let step = 0; step < 200; step += 1) {
    if (await isFocused()) return;
    await page.keyboard.press("Tab");
  }
  assert.fail(`no Tab leads to ${locator}`);
}

/** What a page saves by a button, as a path. */
export async function saved(page, button) {
  const [download] = await Promise.all([page.waitForEvent("download"), button.press("Enter")]);
  return { name: download.suggestedFilename(), path: await download.path() };
}

export const linesIn = (file) => fs.readFileSync(file, "utf8").trim().split("\n").map((line) => JSON.parse(line));

/** The events of a golden timeline. */
export const timeline = (name) =>
  linesIn(new URL(`../../../crates/mainstem-event/tests/timelines/${name}.ndjson`, import.meta.url));

export const picture = async (page, name) => pictures && page.screenshot({ path: path.join(pictures, `${name}.png`) });
export const card = (page, name) => page.locator(`section.card[aria-label="agent ${name}"]`);

const only = process.env.ONLY?.split(",");

/** Runs a test, if it is chosen. */
export async function timed(work) {
  if (only && !only.includes(work.name)) return;
  const begun = Date.now();
  await work();
  console.log(`${work.name}: ok in ${((Date.now() - begun) / 1000).toFixed(1)} s`);
}

export async function close() {
  await browser.close();
  between.close();
  stage.server.child.kill();
  fs.rmSync(folder, { recursive: true, force: true });
}
