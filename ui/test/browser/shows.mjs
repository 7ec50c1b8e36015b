// What the page shows of a session while it runs: outputs, figures, tasks, limits and the timeline.
import assert from "node:assert/strict";
import { accessibleInBoth, between, card, open, patience, picture, tabTo } from "./harness.mjs";
import { Script, snapshot, sourceOf } from "./between.mjs";
import { play } from "./saved.mjs";

/** An image of one pixel. */
const DOT = "R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw==";

/** The time of an event, in seconds from the start. */
const at = (seconds) => ({ createdAt: new Date(Date.UTC(2026, 10, 26) + seconds * 1000).toISOString() });

/** A call with its result in one piece. */
function called(script, agent, id, name, result, fields = {}) {
  const call = { toolCallId: id, toolCallName: name, ...fields };
  return [
    script.event(agent, "TOOL_CALL_START", call),
    script.event(agent, "TOOL_RESULT_START", { ...call, input: { file: "a.txt" } }),
    ...[result].flat().map((part) => (typeof part === "string" ? script.event(agent, "TOOL_RESULT_TEXT_DELTA", { ...call, delta: part }) : script.event(agent, "TOOL_RESULT_DATA_DELTA", { ...call, data: part }))),
    script.event(agent, "TOOL_RESULT_END", { ...call, state: "success", durationMs: 5 }),
  ];
}

/** A text, or a thought, with its beginning and its end. */
const block = (script, agent, kind, blockId, delta) =>
  [["START"], ["DELTA", { delta }], ["END"]].map(([step, fields]) => script.event(agent, `${kind}_BLOCK_${step}`, { blockId, ...fields }));

async function watch(id, events) {
  play(id, events);
  const page = await open(`#${id}`);
  await page.waitForFunction((last) => document.querySelector(".replay output")?.textContent.startsWith(`${last} of ${last}`), events.at(-1).seq, patience);
  return page;
}

/** Opens a call by keyboard, and returns it. */
async function opened(page, name) {
  const call = page.locator("details.call", { has: page.locator("summary", { hasText: name }) });
  await tabTo(page, call.locator("summary"));
  await page.keyboard.press("Enter");
  await call.and(page.locator("[open]")).waitFor(patience);
  return call;
}

const cells = (table) => table.locator("tr").evaluateAll((rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent)));

const DIFF = `diff --git a/a.sql b/a.sql
--- a/a.sql
+++ b/a.sql
@@ -1,3 +1,3 @@ create
 same
--- an old comment
++++ a new line
 last
--- a/b.sql
+++ b/b.sql
@@ -9 +9 @@
-<b>old</b>
+<b>new</b>
`;

/** Diffs, tables and pictures of tools and models; thinking that is folded until it is opened. */
export async function outputsAreShownAsWhatTheyAre() {
  const script = new Script();
  const events = [
    script.start(0),
    ...block(script, 0, "THINKING", "b1", "First the **diff**.\n\nThen the tests."),
    ...called(script, 0, "call-1", "git_diff", [DIFF.slice(0, 60), DIFF.slice(60)]),
    ...called(script, 0, "call-2", "list_files", JSON.stringify([{ name: "a.sql", bytes: 12 }, { name: "<i>b</i>", isNew: true }])),
    ...called(script, 0, "call-3", "nested", '[{"inner":{"a":1}}]'),
    ...called(script, 0, "call-4", "screenshot", [
      { type: "data", mediaType: "image/gif", source: { base64: DOT } },
      { type: "data", mediaType: "image/svg+xml", source: { base64: btoa("<svg onload='attacked=1'/>") } },
      { type: "data", mediaType: "image/png", source: { url: "http://elsewhere.example/a.png" } },
    ]),
    script.event(0, "DATA_BLOCK_START", { blockId: "b2", mediaType: "image/gif" }),
    script.event(0, "DATA_BLOCK_DELTA", { blockId: "b2", delta: DOT }),
    script.event(0, "DATA_BLOCK_END", { blockId: "b2" }),
    script.event(0, "DATA_BLOCK_START", { blockId: "b3", mediaType: "audio/wav" }),
    script.event(0, "DATA_BLOCK_DELTA", { blockId: "b3", delta: "AAAAAAAA" }),
    script.event(0, "DATA_BLOCK_END", { blockId: "b3" }),
    ...block(script, 0, "TEXT", "b4", "| file | *lines* |\n|---|---|\n| a.sql | **3** |\n| `b.sql` | 1 |"),
    script.event(0, "THINKING_BLOCK_START", { blockId: "b5" }),
    script.event(0, "THINKING_BLOCK_DELTA", { blockId: "b5", delta: "Not yet" }),
  ];
  const page = await watch("outputs", events);

  const thought = page.locator("details.thought").first();
  assert.equal(await thought.locator("summary").textContent(), "thought First the **diff**.");
  assert.ok(!(await thought.getByText("Then the tests.").isVisible()), "a thought is folded");
  await tabTo(page, thought.locator("summary"));
  await page.keyboard.press("Enter");
  await thought.getByText("Then the tests.").waitFor(patience);
  assert.equal(await thought.locator("strong").textContent(), "diff");
  await page.keyboard.press("Space");
  await thought.getByText("Then the tests.").waitFor({ ...patience, state: "hidden" });
  assert.match(await page.locator("details.thought").last().locator("summary").textContent(), /^thinking… /);

  const diff = (await opened(page, "git_diff")).locator("pre.diff");
  const linesOf = (kind) => diff.locator(`.${kind}`).allTextContents();
  assert.equal(await diff.textContent(), `${DIFF}\n`);
  assert.deepEqual(await linesOf("plus"), ["++++ a new line\n", "+<b>new</b>\n"]);
  assert.deepEqual(await linesOf("minus"), ["--- an old comment\n", "-<b>old</b>\n"]);
  assert.equal((await linesOf("place")).length, 6);
  const colours = await Promise.all(["plus", "minus", "same"].map((kind) => diff.locator(`.${kind}`).first().evaluate((line) => getComputedStyle(line).color)));
  assert.equal(new Set(colours).size, 3, "added and removed lines have colours of their own");

  const rows = await cells((await opened(page, "list_files")).locator("table"));
  assert.deepEqual(rows, [["name", "bytes", "isNew"], ["a.sql", "12", ""], ["<i>b</i>", "", "true"]]);
  const nested = await opened(page, "nested");
  assert.equal(await nested.locator("table").count(), 0, "objects in objects are no table");
  assert.equal(await nested.locator("pre").last().textContent(), '[{"inner":{"a":1}}]');
  const said = page.locator(".said table");
  assert.deepEqual(await cells(said), [["file", "lines"], ["a.sql", "3"], ["b.sql", "1"]]);
  assert.deepEqual(await said.locator("em, strong, code").allTextContents(), ["lines", "3", "b.sql"]);

  const shot = await opened(page, "screenshot");
  const isDrawn = (image) => image.evaluate((element) => element.complete && element.naturalWidth === 1);
  assert.equal(await shot.locator("img").count(), 1);
  assert.ok(await isDrawn(shot.locator("img")));
  assert.equal(await shot.locator("img").getAttribute("alt"), "image/gif from a model or a tool");
  await shot.getByText("image/svg+xml, 27 bytes").waitFor(patience);
  await shot.getByText("image/png at http://elsewhere.example/a.png").waitFor(patience);
  assert.ok(await isDrawn(page.locator(".parts > img")));
  await page.locator(".parts > p", { hasText: "audio/wav, 6 bytes" }).waitFor(patience);
  await accessibleInBoth(page, "outputs");
  await picture(page, "outputs");
  await page.context().close();
}

const usage = (inputTokens, outputTokens) => ({ inputTokens, outputTokens, cacheReadTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 });
const model = { modelName: "words-1", contextWindow: 2000 };
const TASK = { taskId: "task-1" };
const LIMITS = { requests: { remaining: 9, limit: 50 }, tokens: { remaining: 1200 } };

/**
 * Ten seconds of a leading agent with a child that has ended, one that waits for a rate limit, and
 * two tasks in the background, of which one has not begun.
 */
function busy() {
  const script = new Script();
  const spawn = { toolCallId: "spawn-1", toolCallName: "agent_spawn" };
  const run = { toolCallId: "run-2", toolCallName: "run_tests" };
  const [one, two, three] = [sourceOf(1, { parentToolCallId: "spawn-1" }), sourceOf(2, { parentToolCallId: "spawn-1" }), sourceOf(3, TASK)];
  const rollup = { own: usage(100, 50), inclusive: usage(100, 50), ownCost: 1500, inclusiveCost: 1500 };
  const events = [
    script.start(0, "go", at(0)),
    script.event(0, "MODEL_CALL_START", { ...model, ...at(0) }),
    script.event(0, "TEXT_BLOCK_START", { blockId: "b1", ...at(0.4) }),
    script.event(0, "TEXT_BLOCK_DELTA", { blockId: "b1", delta: "Three agents.", ...at(0.5) }),
    script.event(0, "TOOL_CALL_START", { ...spawn, ...at(0.6) }),
    script.event(0, "MODEL_CALL_END", { usage: usage(400, 100), stopReason: "tool_calls", durationMs: 1000, rateLimits: LIMITS, ...at(1) }),
    script.event(0, "TOOL_RESULT_START", { ...spawn, input: {}, ...at(1) }),
    script.start(1, "go", { source: one, ...at(1) }),
    script.start(2, "go", { source: two, ...at(1) }),
    script.event(0, "TASK_UPDATED", { taskId: "task-1", from: "pending", to: "running", ...at(2) }),
    script.start(3, "go", { source: three, ...at(2) }),
    script.event(0, "TASK_UPDATED", { taskId: "task-2", from: "pending", to: "pending", ...at(2) }),
    script.event(1, "MODEL_CALL_START", { ...model, source: one, ...at(2) }),
    script.event(1, "TEXT_BLOCK_START", { blockId: "b2", source: one, ...at(4.5) }),
    script.event(1, "MODEL_CALL_END", { usage: usage(100, 50), stopReason: "tool_calls", durationMs: 3000, source: one, ...at(5) }),
    script.event(1, "TOOL_CALL_START", { ...run, source: one, ...at(5) }),
    script.event(1, "TOOL_RESULT_START", { ...run, input: {}, source: one, ...at(5) }),
    script.event(1, "TOOL_RESULT_END", { ...run, state: "success", durationMs: 2000, source: one, ...at(7) }),
    script.event(2, "MODEL_CALL_START", { ...model, source: two, ...at(6) }),
    script.event(2, "RATE_LIMIT_WAIT", { limit: "input_tokens", ahead: 2, waitMs: 4000, refusal: { code: "rate_limited", message: "too many requests" }, source: two, ...at(6) }),
    script.end(1, "success", { usage: rollup, source: one, ...at(8) }),
    script.event(3, "MODEL_CALL_START", { ...model, source: three, ...at(10) }),
  ];
  return { script, events };
}

/** The figures of the selected agent. */
const figures = (page) => page.getByRole("region", { name: "figures", exact: true }).locator("dl > div").evaluateAll((rows) => Object.fromEntries(rows.map((row) => [row.children[0].textContent, row.children[1].textContent])));

async function select(page, name) {
  await page.locator("[role=treeitem]", { hasText: name }).click();
  await page.getByRole("region", { name: "figures", exact: true }).getByRole("heading", { name }).waitFor(patience);
}

/** Tokens and money of an agent and with its children, its context, its limits and its times. */
export async function figuresOfEachAgentAreShown() {
  const { script, events } = busy();
  const page = await watch("figures", events);
  assert.deepEqual(await figures(page), {
    State: "runs tools", Model: "words-1", "Model calls": "1", Tokens: "500 tok", Context: "500 of 2000 (25 %)",
    "First word after": "400 ms", "Longest silence": "1.0 s", "Limit of requests": "9 of 50 left", "Limit of tokens": "1200 left",
  });
  const head = card(page, "worker 1").locator("> header .figures span");
  assert.deepEqual(await head.allTextContents(), ["7.0 s", "150 tok", "$0.0015", "8 % context"]);
  await page.locator(".head", { hasText: "650 tok" }).waitFor(patience);
  await select(page, "worker 1");
  const { "Longest silence": silence, ...child } = await figures(page);
  assert.equal(silence, "2.5 s");
  assert.deepEqual(child, {
    State: "done", Model: "words-1", "Model calls": "1", Tokens: "150 tok", "With children": "150 tok", Cost: "$0.0015", "Cost with children": "$0.0015",
    Context: "150 of 2000 (8 %)", "First word after": "2.5 s", "Limit of requests": "9 of 50 left", "Limit of tokens": "1200 left",
  });
  await page.context().close();

  // The leading agent's sums are known once it ends.
  const rollup = { own: usage(400, 100), inclusive: usage(500, 150), ownCost: 20_000, inclusiveCost: 21_500 };
  const ended = await watch("figures-ended", [...events, script.end(0, "success", { usage: rollup, ...at(12) })]);
  const { Tokens, "With children": all, Cost, "Cost with children": sum } = await figures(ended);
  assert.deepEqual([Tokens, all, Cost, sum], ["500 tok", "650 tok", "$0.0200", "$0.0215"]);
  await ended.locator(".head", { hasText: "$0.0215" }).waitFor(patience);
  await ended.context().close();
}

/** Tasks in the background, agents that wait for a limit, and runs that wait for the present one. */
export async function whatWaitsIsShown() {
  const { script, events } = busy();
  let add;
  const more = new Promise((done) => (add = done));
  between.sessions.set("waiting", {
    fleet: snapshot(0, 0),
    view: { queued_runs: ["run-2", "run-3"] },
    async *events(after) {
      yield* events.filter((event) => event.seq > after);
      yield await more;
      await new Promise(() => undefined);
    },
  });
  const page = await open("#waiting");
  const limited = card(page, "worker 2");
  await limited.locator(".chip", { hasText: "waits for a rate limit" }).waitFor(patience);
  await page.locator(".head").getByText("2 queued").waitFor(patience);
  assert.match(await limited.getAttribute("class"), /calm/);
  await page.locator("[role=treeitem]", { hasText: "worker 2" }).getByText("waits for a rate limit").waitFor(patience);

  const background = page.getByRole("region", { name: "background" });
  await background.getByRole("heading", { name: "Background (2)" }).waitFor(patience);
  const row = (name) => background.getByRole("article", { name: `task of ${name}` });
  await row("worker 3").getByText("running").waitFor(patience);
  await row("task-2").getByText("pending").waitFor(patience);
  await card(page, "worker 3").getByText("in the background").waitFor(patience);
  await row("worker 3").getByRole("button", { name: "worker 3", exact: true }).press("Enter");
  await page.getByRole("textbox", { name: "Message to worker 3" }).waitFor(patience);

  await select(page, "worker 2");
  assert.match(await page.locator(".sent").textContent(), /^task/, "a child has its task from its parent");
  assert.equal((await figures(page))["Waits for"], "input tokens · 2 calls ahead · next in 4.0 s · too many requests");
  await accessibleInBoth(page, "waiting");
  await picture(page, "waiting");
  add(script.event(2, "RATE_LIMIT_PASSED", { waitedMs: 5000, source: sourceOf(2, {}), ...at(11) }));
  await page.locator(".crumbs .chip", { hasText: "waits for the model" }).waitFor(patience);
  await page.getByRole("region", { name: "figures", exact: true }).getByText("Waits for", { exact: true }).waitFor({ ...patience, state: "detached" });
  await page.context().close();
}

/** One bar for each agent, with what it spent its time on; and the same in a table. */
export async function theTimelineHasATwin() {
  const { events } = busy();
  const page = await watch("spans", events);
  await page.waitForFunction(() => document.querySelectorAll(".bar").length === 4, undefined, patience);
  const legend = await page.locator(".legend > span:has(.key)").allTextContents();
  assert.deepEqual(legend.map((text) => text.trim()), ["model", "tools", "waits for children", "waits for a rate limit"]);
  // Each span with its kind, and the seconds in which it begins and ends: the ten seconds are 1000 wide.
  const bars = await page.locator(".bar").evaluateAll((list) => Object.fromEntries(list.map((bar) => [
    bar.querySelector(".who").textContent,
    [...bar.querySelectorAll("rect")].map((rect) => [rect.classList.value, ...[rect.x, rect.width].map(({ baseVal }) => Math.round(baseVal.value) / 100)]),
  ])));
  assert.deepEqual(bars, {
    main: [["life", 0, 10], ["model", 0, 1], ["children", 1, 9]],
    "worker 1": [["life", 1, 7], ["model", 2, 3], ["tool", 5, 2]],
    "worker 2": [["life", 1, 9], ["model", 6, 4], ["queued", 6, 4]],
    "worker 3": [["life", 2, 8], ["model", 10, 0.01]],
  });
  const colours = await page.locator(".bar rect").evaluateAll((list) => list.map((rect) => `${rect.classList.value} ${getComputedStyle(rect).fill}`));
  assert.equal(new Set(colours).size, 5, "each kind has one colour of its own");
  assert.equal(new Set([...new Set(colours)].map((one) => one.split(" ").slice(1).join(" "))).size, 5);
  const twin = page.locator("details.twin");
  await tabTo(page, twin.locator("summary"));
  await page.keyboard.press("Enter");
  await twin.locator("table").waitFor(patience);
  assert.deepEqual(await cells(twin.locator("table")), [
    ["agent", "model", "tools", "waits for children", "waits for a rate limit"],
    ["main", "1.0 s", "0 ms", "9.0 s", "0 ms"],
    ["worker 1", "3.0 s", "2.0 s", "0 ms", "0 ms"],
    ["worker 2", "0 ms", "0 ms", "0 ms", "4.0 s"],
    ["worker 3", "0 ms", "0 ms", "0 ms", "0 ms"],
  ]);
  await accessibleInBoth(page, "twin");
  await picture(page, "twin");
  await page.context().close();
}
