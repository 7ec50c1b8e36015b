// Filters by agent, subtree, depth and kind: in the middle, in the timeline and in the address.
import assert from "node:assert/strict";
import { accessibleInBoth, open, patience, picture, tabTo, timeline } from "./harness.mjs";
import { play } from "./saved.mjs";

/** What the middle and the timeline show. */
async function shown(page) {
  const labels = (list) => list.map((element) => element.getAttribute("aria-label")?.replace("agent ", "") ?? element.textContent);
  return {
    cards: await page.locator(".lane section.card").evaluateAll(labels),
    bars: await page.locator(".bar .who").evaluateAll(labels),
    kinds: [...new Set(await page.locator(".lane .parts > *").evaluateAll((list) => list.map((element) => element.className.split(" ")[0])))].sort(),
  };
}

/** Each filter by keyboard; the address has it, also for another tab; Escape removes it. */
export async function isFiltered() {
  play("filtered", timeline("demo"));
  const page = await open("#filtered");
  await page.locator(".lane .said", { hasText: "keep each once" }).waitFor(patience);
  await page.waitForFunction(() => document.querySelectorAll(".bar").length === 6);
  const all = await shown(page);
  assert.deepEqual(all.bars, ["main", "reviewer · correctness", "reviewer · security", "tester · tests", "reviewer · promises", "runner"]);
  assert.equal(all.cards.length, 5);
  const group = page.getByRole("group", { name: "filter", exact: true });
  const parameters = () => page.evaluate(() => Object.fromEntries(new URLSearchParams(location.hash.split("?")[1])));

  // By id: typed into the list, as a keyboard's user does.
  await tabTo(page, group.getByLabel("Agents"));
  await page.keyboard.type("runner");
  await page.waitForFunction(() => document.querySelectorAll(".bar").length === 1);
  assert.deepEqual((await shown(page)).cards, ["tester · tests", "runner"], "the way to the agent stays");
  assert.deepEqual(await parameters(), { id: "runner" });
  assert.equal(await page.locator('section.card[aria-label="agent tester · tests"] > .body > div > .parts > :not(.children)').count(), 0, "of an agent on the way only the head is shown");
  await group.getByText("1 of 6 agents").waitFor();
  await accessibleInBoth(page, "filter");
  await picture(page, "filter");
  await page.keyboard.press("Escape");
  await page.waitForFunction(() => document.querySelectorAll(".bar").length === 6);
  assert.deepEqual(await parameters(), {});

  // By depth.
  await tabTo(page, group.getByLabel("Depth"));
  await page.keyboard.type("depth ≤ 1");
  await page.waitForFunction(() => document.querySelectorAll(".bar").length === 5);
  assert.ok(!(await shown(page)).cards.includes("runner"));

  // By kind, together with the depth; then all of it from the address, in another tab.
  const tools = group.getByRole("button", { name: "tools" });
  await tabTo(page, tools);
  await page.keyboard.press("Space");
  await page.waitForFunction(() => document.querySelectorAll(".lane .said").length === 0);
  const chosen = await shown(page);
  assert.deepEqual(chosen.kinds, ["call", "children"]);
  assert.equal(await tools.getAttribute("aria-pressed"), "true");
  assert.deepEqual(await parameters(), { depth: "1", kind: "tools" });
  assert.equal(await page.locator(".bar svg .model").count(), 0);
  const other = await open(new URL(page.url()).hash);
  await other.waitForFunction(() => document.querySelectorAll(".bar").length === 5);
  assert.deepEqual(await shown(other), chosen);
  await other.close();
  await tabTo(page, group.getByRole("button", { name: "Clear the filter" }));
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelectorAll(".bar").length === 6);
  assert.deepEqual(await shown(page), all);

  // The subtree of the selected agent stays chosen while another agent is looked at.
  await page.locator("[role=treeitem]", { hasText: "tester" }).click();
  await tabTo(page, group.getByRole("button", { name: "subtree of tester · tests" }));
  await page.keyboard.press("Enter");
  await page.locator("[role=treeitem]", { hasText: "main" }).click();
  await page.waitForFunction(() => document.querySelectorAll(".bar").length === 2);
  assert.deepEqual((await shown(page)).bars, ["tester · tests", "runner"]);
  assert.deepEqual((await shown(page)).cards, ["tester · tests", "runner"]);
  await page.close();
}
