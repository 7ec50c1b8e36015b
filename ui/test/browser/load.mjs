// How fast the page is: fifty agents, a thousand agents, a long record.
import assert from "node:assert/strict";
import { between, isSlow, open, picture } from "./harness.mjs";
import { Script, snapshot } from "./between.mjs";

/** Fifty agents with a hundred words a second each: at most 16 ms of scripting a frame. */
export async function keepsUpWithFiftyAgents() {
  // Other programs of the machine take time from a frame, too, so one of three times is enough.
  let p95 = Infinity;
  for (let time = 0; time < 3 && p95 > 16; time += 1) p95 = await scriptingTime();
  assert.ok(p95 <= 16, `scripting takes ${p95} ms a frame`);
}

async function scriptingTime() {
  const seconds = Number(process.env.STORM_SECONDS ?? 6);
  const { page, opened } = await openStorm(seconds);
  await page.waitForTimeout(seconds * 1000);
  await picture(page, "storm");
  const { frames, p95 } = await framesOf(page);
  const seq = await shownSeq(page);
  console.log(`50 agents: ${seq} events, ${frames.length} frames, scripting p50 ${frames[frames.length >> 1].toFixed(1)} ms, p95 ${p95.toFixed(1)} ms`);
  const least = (Date.now() - opened) / 1000 * 2500;
  assert.ok(seq > least, `${seq} events were shown`);
  await page.close();
  return p95;
}

/**
 * Opens a session in which fifty agents write for so many seconds, in blocks of so many words, and
 * measures each frame.
 */
async function openStorm(seconds, words = 100) {
  const script = new Script();
  between.sessions.set("storm", { fleet: snapshot(0, 0), events: () => storm(script, seconds, words) });
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
  const opened = Date.now();
  await page.waitForFunction(() => document.querySelectorAll("[role=treeitem]").length === 51);
  return { page, opened };
}

async function framesOf(page) {
  const frames = (await page.evaluate(() => window.frames)).sort((a, b) => a - b);
  return { frames, p95: frames[Math.floor(frames.length * 0.95)] };
}

/** The number of the last event that a page shows. */
const shownSeq = async (page) => Number(/^(\d+)/.exec(await page.locator(".replay output").innerText())[1]);

/** The most megabytes of a page that shows fifty agents, however long: what it retains is bounded. */
const MOST_MEGABYTES = 64;

/**
 * The page needs no more memory after ten minutes than after two: by then it discards events, and
 * parts of each lane. Where tests are to be quick, it is observed for half a minute.
 */
export async function needsNoMoreMemoryWithTime() {
  const { step, steps, words } = isSlow ? { step: 30, steps: 20, words: 20 } : { step: 5, steps: 6, words: 5 };
  const { page, opened } = await openStorm(step * (steps + 1), words);
  const devtools = await page.context().newCDPSession(page);
  const [megabytes, nodes] = [[], []];
  for (let n = 1; n <= steps; n += 1) {
    await page.waitForTimeout(Math.max(0, opened + n * step * 1000 - Date.now()));
    await devtools.send("HeapProfiler.collectGarbage");
    megabytes.push(Math.round((await devtools.send("Runtime.getHeapUsage")).usedSize / 1e6));
    nodes.push((await devtools.send("Memory.getDOMCounters")).nodes);
  }
  const seq = await shownSeq(page);
  console.log(`50 agents for ${step * steps} s: ${seq} events; after each ${step} s: ${megabytes} MB, ${nodes} nodes`);
  await page.close();
  assert.ok(seq > step * steps * 2500, `${seq} events were shown`);
  const most = (values) => Math.max(...values);
  assert.ok(most(megabytes) <= MOST_MEGABYTES, `${megabytes} MB`);
  for (const values of isSlow ? [megabytes, nodes] : [nodes]) {
    assert.ok(most(values.slice(4)) <= most(values.slice(0, 4)) * 1.2, `it grows: ${values}`);
  }
}

async function* storm(script, seconds, words) {
  yield script.start(0);
  for (let agent = 1; agent <= 50; agent += 1) {
    yield script.start(agent);
    yield script.event(agent, "TEXT_BLOCK_START", { blockId: `b${agent}` });
  }
  const begun = Date.now();
  for (let word = 0; Date.now() - begun < seconds * 1000 + 2000; word += 1) {
    for (let agent = 1; agent <= 50; agent += 1) {
      const block = (number) => ({ blockId: `b${agent}${number === 0 ? "" : `-${number}`}` });
      const { blockId } = block(Math.floor(word / words));
      if (word > 0 && word % words === 0) {
        yield script.event(agent, "TEXT_BLOCK_END", block(word / words - 1));
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
export async function opensLargeSessions() {
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
  let sought = Infinity;
  for (let time = 0; time < 3 && sought > 200; time += 1) sought = await page.evaluate(slowestSeek);
  console.log(`large sessions: 1000 agents at event 1000000 open in ${opened} ms; 20 seeks in 40000 events take at most ${sought.toFixed(0)} ms`);
  await page.close();
  assert.ok(opened <= 1000 && sought <= 200, `opened in ${opened} ms, sought in ${sought} ms`);
}

/** The longest of twenty seeks; runs on the page. */
async function slowestSeek() {
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
