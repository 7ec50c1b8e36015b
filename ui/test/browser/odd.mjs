// Sessions that no server should have: hostile, cut at their beginning, forgotten.
import assert from "node:assert/strict";
import { between, card, open, patience, picture } from "./harness.mjs";
import { Script, snapshot } from "./between.mjs";

/** HTML, scripts, escapes, changes of direction, long lines and thousands of tools are text. */
export async function showsHostileText() {
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
  between.posted.length = 0;
  await page.getByRole("button", { name: "Allow" }).click();
  await page.getByLabel("result", { exact: true }).fill("42");
  await page.getByRole("button", { name: "Send the result" }).click();
  await page.locator(".notice", { hasText: "The result is sent." }).waitFor();
  assert.deepEqual(between.posted, [["sessions/hostile/confirmations/c", { decision: "allow" }], ["sessions/hostile/calls/call-2/result", { content: "42", is_error: false }]]);
  await page.close();
}

/** Where the beginning of a record is lost, the page begins at the snapshot. */
export async function beginsWhereTheRecordDoes() {
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
export async function forgetsWhatTheServerHasForgotten() {
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

/** The list has the first page of the server's sessions; the server finds the others. */
export async function findsSessionsOfLaterPages() {
  const page = await open("#hostile");
  const view = (id) => ({ id, state: "idle", runs: 1, created_at: "", updated_at: "", last_run_at: "", first_seq: 1, last_seq: 1, active_run: null, queued_runs: [] });
  await page.route(/\/v1\/sessions(\?.*)?$/, (route) => {
    const search = new URL(route.request().url()).searchParams.get("search");
    const items = search ? [view(`old-${search}`)] : [view("new-1"), view("new-2")];
    return route.fulfill({ json: search ? { items } : { items, next: "1.new-2" } });
  });
  const list = page.getByRole("list", { name: "sessions" });
  const more = page.getByText("There are more: find them by id.");
  await list.getByText("new-2").waitFor(patience);
  await more.waitFor();
  await page.getByLabel("find a session").fill("a&b");
  await list.getByText("old-a&b").waitFor(patience);
  assert.equal(await list.getByRole("listitem").count(), 1);
  assert.equal(await more.count(), 0);
  await page.close();
}
