// Two runs beside one another: what differs is marked, at every width, and by keyboard.
import assert from "node:assert/strict";
import { accessibleInBoth, open, patience, picture, tabTo, timeline } from "./harness.mjs";
import { play } from "./saved.mjs";
import { withRetry } from "../retry.mjs";

const EXPECTED = [
  ["main", "≠ tokens"],
  ["reviewer · correctness", "≠ calls"],
  ["reviewer · security", "≠ time"],
  ["tester · tests", "≠ texts"],
  ["runner", "≠ results"],
  ["reviewer · promises", "≠ in one run only"],
];

/** Waits until the whole record has arrived, and compares. */
async function hasRows(page, expected) {
  const last = expected.map(([, difference]) => difference).join();
  await page.waitForFunction((text) => [...document.querySelectorAll(".compare tbody tr")].map((row) => row.children[1].innerText).join() === text, last)
    .catch(async () => assert.deepEqual(await rows(page), expected));
  assert.deepEqual(await rows(page), expected);
}

const rows = (page) => page.locator(".compare tbody tr").evaluateAll((list) => list.map((row) => [row.querySelector("th").innerText, row.children[1].innerText]));

export async function runsAreCompared() {
  const events = timeline("demo");
  play("retried", withRetry(events));
  play("first", events);
  const page = await open("#retried");
  const button = page.getByRole("button", { name: "Compare runs" });
  await button.waitFor(patience);
  await tabTo(page, button);
  await page.keyboard.press("Enter");
  await page.getByText("6 of 6 agents differ.").waitFor(patience);
  await hasRows(page, EXPECTED);
  assert.equal(await page.locator(".compare td.differs").count(), 4, "two figures of both runs");

  // The first agent with a difference is open; others are by keyboard.
  const marks = () => page.locator(".lanes .mark").evaluateAll((list) => list.map((mark) => `${mark.parentElement.className[0]}: ${mark.textContent}`));
  await page.getByRole("heading", { name: "Run A · reviewer · correctness" }).waitFor();
  assert.deepEqual(await marks(), ["a: ≠ differs", "b: ≠ differs"]);
  await tabTo(page, page.getByRole("button", { name: "runner" }));
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Run B · runner" }).waitFor();
  assert.deepEqual(await marks(), ["a: ≠ the result differs", "b: ≠ the result differs"]);
  await accessibleInBoth(page, "compare");
  await picture(page, "compare");
  await page.getByRole("button", { name: "promises" }).press("Enter");
  await page.getByRole("heading", { name: "Run A · reviewer · promises" }).waitFor();
  assert.ok((await marks()).every((mark) => mark === "a: ≠ in this run only"));

  // The pair is in the address; run A with itself has no difference.
  await page.getByLabel("Run B", { exact: true }).focus();
  await page.keyboard.press("ArrowUp");
  await page.getByText("No agent differs.").waitFor();
  await hasRows(page, EXPECTED.map(([name]) => [name, "—"]));
  const other = await open(new URL(page.url()).hash);
  await other.getByText("No agent differs.").waitFor(patience);
  await other.close();
  await tabTo(page, page.getByRole("button", { name: "Close the comparison" }));
  await page.keyboard.press("Enter");
  await page.locator(".composer").waitFor();
  await page.close();
}

/** The run of another session, which is read once; and one that can't be read. */
export async function runsOfOtherSessionsAreCompared() {
  const events = timeline("demo");
  play("retried", withRetry(events));
  play("first", events);
  const page = await open("#retried?compare=&of=first");
  await page.getByText("6 of 6 agents differ.").waitFor(patience);
  await hasRows(page, EXPECTED);
  const lost = await open("#retried?compare=&of=nowhere");
  await lost.getByText("The other session can't be read").waitFor(patience);
  await Promise.all([page.close(), lost.close()]);
}

/** Below 640 pixels, the table and both lanes are tabs. */
export async function runsAreTabsOnSmallScreens() {
  play("retried", withRetry(timeline("demo")));
  const page = await open("#retried?compare=", { viewport: { width: 390, height: 844 } });
  await page.getByText("6 of 6 agents differ.").waitFor(patience);
  const sides = () => page.locator(".lanes > h2").evaluateAll((list) => list.filter((head) => head.checkVisibility()).map((head) => head.className));
  assert.deepEqual(await sides(), []);
  for (const [tab, side] of [["Run A", "a"], ["Run B", "b"]]) {
    await tabTo(page, page.getByRole("navigation", { name: "parts of the comparison" }).getByRole("button", { name: tab }));
    await page.keyboard.press("Enter");
    assert.deepEqual(await sides(), [side]);
    await accessibleInBoth(page, `compare, ${tab}`);
    await picture(page, `compare-${side}`);
  }
  await page.close();
}
