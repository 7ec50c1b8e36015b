// A newcomer's walk through the page, timed: from `mainstem serve -m demo` to a run that was
// approved, messaged, cancelled in part and scrubbed back, and to a test that passes.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { binary, browser, card, folder, isSlow, patience, picture, saved, watched } from "./harness.mjs";

const CRATES = fileURLToPath(new URL("../../../crates", import.meta.url));

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

/** Runs the test in a project of its own, as its comment says. */
function passes(file) {
  const project = path.join(folder, "walked");
  fs.mkdirSync(path.join(project, "tests"), { recursive: true });
  fs.mkdirSync(path.join(project, "src"));
  fs.writeFileSync(path.join(project, "src/lib.rs"), "");
  fs.copyFileSync(file, path.join(project, "tests/walk.rs"));
  fs.copyFileSync(path.join(CRATES, "../Cargo.lock"), path.join(project, "Cargo.lock"));
  const manifest = `[package]
name = "walked"
version = "0.0.0"
edition = "2024"

[dev-dependencies]
mainstem-testing = { path = "${CRATES}/mainstem-testing", features = ["recording"] }
tokio = { version = "1", features = ["macros", "rt", "test-util"] }

[workspace]
`;
  fs.writeFileSync(path.join(project, "Cargo.toml"), manifest);
  const printed = execFileSync("cargo", ["test", "--test", "walk"], { cwd: project, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });
  assert.match(printed, /test result: ok\. 1 passed/);
}

export async function isWalkedThrough() {
  const begun = Date.now();
  const steps = [];
  const step = async (name, work) => {
    const from = Date.now();
    await work();
    steps.push(`${name} ${((Date.now() - from) / 1000).toFixed(1)} s`);
  };
  let server, page, file;
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
    file = (await saved(page, page.getByRole("button", { name: "Test", exact: true }))).path;
    assert.match(fs.readFileSync(file, "utf8"), /Recording::parse\(RECORD\)/);
  });
  await picture(page, "walked");
  console.log(`walked in ${((Date.now() - begun) / 1000).toFixed(1)} s: ${steps.join(", ")}`);
  // Half of it is the run of the demo.
  assert.ok(Date.now() - begun < 60_000, steps.join(", "));
  if (isSlow) passes(file);
  await page.context().close();
  server.child.kill();
}
