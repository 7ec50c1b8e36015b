// The page of the example `embed` in Chromium: its EventSource follows a run, loses its connection more than once, goes on behind the last
// event, and stops when there is nothing newer.
//
// `cargo xtask browser` runs it: node check.mjs <address of the example> <picture>
import assert from "node:assert";
import net from "node:net";
import { chromium } from "playwright-core";

const target = new URL(process.argv[2]);

// Between the browser and the server: cuts every stream of events after some bytes, the first few times.
const MOST = 4000;
let streams = 0, cuts = 0;
const between = net.createServer(client => {
  const server = net.connect(Number(target.port), target.hostname);
  let isStream = false, sent = 0;
  client.on("data", bytes => {
    if (bytes.toString().includes("/events?run=")) { isStream = true; streams += 1; sent = 0; }
    server.write(bytes);
  });
  server.on("data", bytes => {
    const room = isStream && cuts < 3 ? MOST - sent : Infinity;
    sent += bytes.length;
    if (bytes.length <= room) return client.write(bytes);
    cuts += 1;
    server.destroy();
    // In the middle of an event, most likely.
    client.write(bytes.subarray(0, room), () => client.destroy());
  });
  for (const socket of [client, server]) socket.on("error", () => {});
  client.on("close", () => server.destroy());
  server.on("close", () => client.end());
});
await new Promise(done => between.listen(0, "127.0.0.1", done));

const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
try {
  const page = await browser.newPage({ viewport: { width: 900, height: 700 } });
  const trouble = [];
  page.on("pageerror", error => trouble.push(String(error)));
  // Every event that EventSource hands to the page, whatever the page makes of it.
  await page.addInitScript(() => {
    window.seen = [];
    window.opened = [];
    const Source = window.EventSource;
    window.EventSource = class extends Source {
      constructor(url) { super(url); window.opened.push(this); }
      addEventListener(kind, heard) {
        super.addEventListener(kind, message => { if (kind !== "end") window.seen.push(Number(message.lastEventId)); heard(message); });
      }
    };
  });
  await page.goto(`http://127.0.0.1:${between.address().port}/`);
  assert.equal(await page.textContent("#state"), "ready");
  await page.click("button");
  await page.waitForFunction(() => document.getElementById("state").textContent.startsWith("the connection is lost"), null, { timeout: 30000 });
  await page.waitForFunction(() => document.getElementById("state").textContent === "done, and closed", null, { timeout: 60000 });
  assert.equal(cuts, 3, "the connection was cut three times");
  // Three times anew, and once more to hear that there is nothing newer.
  assert.equal(streams, 5);
  assert.equal(await page.evaluate(() => window.opened[0].readyState), 2, "closed by the browser itself");
  await page.waitForTimeout(3000);
  assert.equal(streams, 5, "it does not come back");

  const run = (await (await fetch(`${target.origin}/v1/sessions`)).json()).items[0];
  const whole = await (await fetch(`${target.origin}/v1/sessions/${run.id}/events?follow=false`, { headers: { accept: "application/x-ndjson" } })).text();
  const events = whole.trim().split("\n").map(line => JSON.parse(line));
  const kinds = ["AGENT_START", "TEXT_BLOCK_DELTA", "TOOL_CALL_START", "AGENT_END"];
  const wanted = events.filter(event => kinds.includes(event.type)).map(event => event.seq);
  assert.deepEqual(await page.evaluate(() => window.seen), wanted, "every event once, in order");
  const panels = await page.$$eval("section", boxes => boxes.map(box => [box.querySelector("h2").textContent, box.className, box.querySelector("pre").textContent]));
  assert.deepEqual(panels.map(panel => panel[0]), ["coordinator", "researcher", "researcher", "guide"].map((id, n) => n ? id : "main"));
  assert.ok(panels.every(panel => panel[1] === "over"), JSON.stringify(panels));
  assert.ok(panels[0][2].endsWith("Paris is larger, Rome is older."), panels[0][2]);
  assert.deepEqual(trouble, []);
  if (process.argv[3]) await page.screenshot({ path: process.argv[3] });
  console.log(`browser: ${wanted.length} events shown once each, over ${streams} connections of which ${cuts} were cut`);
} finally {
  await browser.close();
  between.close();
  between.closeAllConnections?.();
}
process.exit(0);
