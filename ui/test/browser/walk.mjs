// A newcomer's walk through the page, timed: from `mainstem serve -m demo` to a run that was
// approved, messaged, cancelled in part and scrubbed back, and to the file of its test.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { binary, browser, card, folder, patience, picture, saved, watched } from "./harness.mjs";

/** Starts a server as a newcomer does, and returns the address that it prints, with a token. */
async function start() {
  const args = ["serve", "-m", "demo", "--bind", "127.0.0.1:0", "--log", "off", "--journal", path.join(folder, "walk.db")];
  const child = spawn(binary, args, { cwd: folder, stdio: ["ignore", "pipe", "pipe"] });
  const printed = new Promise((done, failed) => {
    let text = "";
    const read = (bytes) => {
      text += bytes;
      const [address] = /http:\/\/\S+#token=\S+/.exec(text) ?? [];
      if (address) done(address);
    };
    child.stdout.on("data", read);
    child.stderr.on("data", read);
    child.once("exit", () => failed(new Error(`the server printed no address: ${text}`)));
  });
  return { child, address: await printed };
}

export async function isWalkedThrough() {
  const begun = Date.now();
  const steps = [];
  const step = async (name, work) => {
    const from = Date.now();
    await work();
    steps.push(`${name} ${((Date.now() - from) / 1000).toFixed(1)} s`);
  };
  let server, page;
  await step("start", async () => {
    server = await start();
    const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
    page = watched(await context.newPage(), new URL(server.address).origin);
    await page.goto(server.address);
    await page.getByLabel("Task", { exact: true }).waitFor(patience);
  });
  await step("ask", async () => {
    await page.getByLabel("Ask me before").fill("read_diff, run_tests");
    await page.getByLabel("Task", { exact: true }).fill("Review the discount change");
    await page.getByRole("button", { name: "Start the run" }).click();
    await page.locator("article.ask").first().waitFor(patience);
  });
  await step("approve", async () => {
    const ask = page.locator("article.ask").first();
    const asker = (await ask.getAttribute("aria-label")).replace("approval for ", "");
    await ask.getByRole("button", { name: "Allow", exact: true }).click();
    await card(page, asker).locator(".call .chip", { hasText: "done" }).first().waitFor(patience);
  });
  await step("message", async () => {
    await page.locator("[role=treeitem]", { hasText: "security" }).click();
    await page.getByRole("textbox", { name: "Message to reviewer · security" }).fill("Look at empty codes.");
    await page.keyboard.press("Enter");
    await page.locator(".sent", { hasText: "Look at empty codes." }).waitFor(patience);
  });
  await step("cancel", async () => {
    await page.locator("[role=treeitem]", { hasText: "tester" }).click();
    await page.getByRole("button", { name: /^Cancel tester/ }).click();
    await page.locator(".crumbs .chip", { hasText: "cancelled" }).waitFor(patience);
  });
  await step("end", async () => {
    await page.locator(".crumbs button").click();
    const ended = page.locator(".composer[aria-label='start a run']");
    while (!(await ended.isVisible())) {
      const allow = page.locator("article.ask").first().getByRole("button", { name: "Allow", exact: true });
      if (await allow.isVisible()) await allow.click({ timeout: 2000 }).catch(() => undefined);
      await page.waitForTimeout(100);
    }
  });
  await step("scrub", async () => {
    const scrubber = page.getByLabel("event", { exact: true });
    await scrubber.fill("60");
    await page.locator(".replay output", { hasText: /^60 of/ }).waitFor(patience);
    await page.getByRole("button", { name: "Back to live" }).click();
    await page.locator(".replay output", { hasText: /^(\d+) of \1 / }).waitFor(patience);
  });
  await step("export", async () => {
    const { path: file } = await saved(page, page.getByRole("button", { name: "Test", exact: true }));
    assert.match(fs.readFileSync(file, "utf8"), /Recording::parse\(RECORD\)/);
  });
  await picture(page, "walked");
  console.log(`walked in ${((Date.now() - begun) / 1000).toFixed(1)} s: ${steps.join(", ")}`);
  await page.context().close();
  server.child.kill();
}
