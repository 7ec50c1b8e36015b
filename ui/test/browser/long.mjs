// A record that is too long for the page: what it does not have, it reads from the server.
import assert from "node:assert/strict";
import http from "node:http";
import { Between } from "./between.mjs";
import { browser, linesIn, patience, picture, saved, serve, TOKEN, watched } from "./harness.mjs";

/** The runs, and the words of the answer of each. The page reads records of more than 50 000 events in parts. */
const RUNS = 11;
const WORDS = 5_000;

const headers = { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" };

/** Starts a server of OpenAI's chat API, which streams as many words for each question. */
async function model() {
  const server = http.createServer(async (request, response) => {
    await request.toArray();
    response.writeHead(200, { "content-type": "text/event-stream" });
    const send = (delta, finish_reason = null) => response.write(`data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model: "words", choices: [{ index: 0, delta, finish_reason }] })}\n\n`);
    for (let word = 1; word <= WORDS; word += 1) send({ role: "assistant", content: word % 20 === 0 ? `${word}\n\n` : "word " });
    send({}, "stop");
    response.end("data: [DONE]\n\n");
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  return server;
}

/** Runs a model that says much; returns the first event of each run. */
async function record(url) {
  const begins = [];
  for (let seq = 0; begins.length < RUNS; ) {
    begins.push(seq + 1);
    const body = JSON.stringify({ input: `Question ${begins.length}` });
    const run = await fetch(`${url}/v1/sessions/long/runs`, { method: "POST", headers: { ...headers, accept: "text/event-stream" }, body });
    assert.ok((await run.text()).includes("event: AGENT_END"), `run ${begins.length}`);
    const fleet = await fetch(`${url}/v1/sessions/long/fleet`, { headers });
    ({ seq } = await fleet.json());
  }
  return begins;
}

/** Moves the scrubber to an event, and returns how long it took until the page shows it, in milliseconds. */
const seek = (page, seq) => page.evaluate(async (seq) => {
  const [range, output] = [document.querySelector("input[type=range]"), document.querySelector(".replay output")];
  const begun = performance.now();
  range.value = seq;
  range.dispatchEvent(new Event("input", { bubbles: true }));
  const isThere = () => output.textContent.startsWith(`${seq} of`) && !output.textContent.includes("reading");
  do await new Promise((done) => requestAnimationFrame(() => setTimeout(done))); while (!isThere());
  return performance.now() - begun;
}, seq);

const shown = async (page) => Number(/^(\d+)/.exec(await page.locator(".replay output").innerText())[1]);

export async function isReplayedFromTheServer() {
  const words = await model();
  const env = { OPENAI_API_KEY: "none", OPENAI_BASE_URL: `http://127.0.0.1:${words.address().port}/v1` };
  const server = await serve(0, { record: "long.db", model: "openai:words", env });
  const begins = await record(server.url);
  const front = await new Between(server.url, process.env.MAINSTEM_PAGE).listen();
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  const page = watched(await context.newPage(), front.url);
  await page.addInitScript((token) => sessionStorage.setItem("mainstem-token", token), TOKEN);
  // A link to a moment at the beginning.
  await page.goto(`${front.url}#long@${begins[1] + 20}`);
  const question = (number) => page.locator(".lane .sent", { hasText: `Question ${number}` }).first();
  await question(2).waitFor(patience);
  assert.ok((await page.locator(".replay output").innerText()).startsWith(`${begins[1] + 20} of `));
  assert.equal(await question(3).count(), 0, "a later question is shown");
  const fleet = await (await fetch(`${server.url}/v1/sessions/long/fleet?at=${begins[1] + 20}`, { headers })).json();
  assert.equal(await page.locator("[role=treeitem]").count(), fleet.agents.length);
  await picture(page, "long");

  let best = { own: Infinity };
  // Other programs of the machine take time, too.
  for (let time = 0; time < 3 && best.own > 200; time += 1) {
    const times = await seeks(page, server.url, begins, question);
    if (times.own < best.own) best = times;
  }
  console.log(`a record of ${begins.at(-1)} events: a seek takes ${best.own.toFixed(0)} ms and the server's ${best.server.toFixed(0)} ms (p50 of 20)`);
  assert.ok(best.own <= 200, `${best.own} ms`);

  await isPlayed(page, begins[3]);
  await anExcerptIsSaved(page);
  await context.close();
  front.close();
  server.child.kill();
  words.close();
}

/** How long the server of the tests takes for a state, and the page besides, in milliseconds: the middle of twenty seeks. */
async function seeks(page, url, begins, question) {
  const [server, own] = [[], []];
  for (let n = 1; n <= 20; n += 1) {
    const run = (n * 7_919) % begins.length;
    const seq = begins[run] + 30;
    const begun = performance.now();
    await (await fetch(`${url}/v1/sessions/long/fleet?at=${seq}`, { headers })).text();
    server.push(performance.now() - begun);
    own.push((await seek(page, seq)) - server.at(-1));
    assert.ok(await question(run + 1).isVisible(), `question ${run + 1} at event ${seq}`);
  }
  const middle = (times) => times.sort((a, b) => a - b)[10];
  return { server: middle(server), own: middle(own) };
}

/** The record is played on beyond what was read for the first event. */
async function isPlayed(page, from) {
  await seek(page, from);
  await page.getByLabel("Speed").selectOption("16");
  await page.getByRole("button", { name: "play the record" }).click();
  const before = Date.now();
  while ((await shown(page)) < from + 5_000) {
    assert.ok(Date.now() - before < patience.timeout, `it stays at ${await shown(page)}`);
    await page.waitForTimeout(100);
  }
  await page.getByRole("button", { name: "pause the replay" }).click();
  const seq = await shown(page);
  await page.waitForTimeout(300);
  assert.equal(await shown(page), seq, "it goes on while it is paused");
}

async function anExcerptIsSaved(page) {
  await page.getByRole("button", { name: "Excerpt", exact: true }).click();
  await page.getByLabel("From event", { exact: true }).fill("100");
  await page.getByLabel("to event", { exact: true }).fill("299");
  const file = await saved(page, page.getByRole("button", { name: "Save the excerpt" }));
  const events = linesIn(file.path);
  assert.deepEqual([events[0].seq, events.length], [100, 200]);
}
