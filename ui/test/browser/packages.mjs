// The packages as another project has them: packed, installed, and used.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { accessibleInBoth, between, browser, folder, patience, picture, timeline, TOKEN, watched } from "./harness.mjs";
import { play } from "./saved.mjs";

const UI = path.resolve(import.meta.dirname, "../..");
const TIMELINES = path.resolve(UI, "../crates/mainstem-event/tests");
const project = path.join(folder, "project");

const run = (program, args, cwd = project) => execFileSync(program, args, { cwd, encoding: "utf8" });

/** The packages have the version of the crates: a release publishes both. */
function haveTheVersion() {
  const [, version] = /^version = "(.+)"/m.exec(fs.readFileSync(path.resolve(UI, "../Cargo.toml"), "utf8"));
  for (const name of ["reducer", "fleet"]) {
    const about = JSON.parse(fs.readFileSync(path.join(UI, "packages", name, "package.json"), "utf8"));
    assert.equal(about.version, version, name);
  }
}

/** Both packages are packed, and installed into an empty project without a network. */
function install() {
  fs.mkdirSync(project);
  fs.writeFileSync(path.join(project, "package.json"), '{ "type": "module", "private": true }');
  run("npm", ["run", "--silent", "packages"], UI);
  const packed = ["reducer", "fleet"].map((name) => run("npm", ["pack", "--silent", "--pack-destination", project], path.join(UI, "packages", name)).trim());
  run("npm", ["install", "--offline", "--silent", "--no-audit", "--no-fund", ...packed.map((file) => `./${file}`)]);
  const sizes = packed.map((file) => `${file} ${(fs.statSync(path.join(project, file)).size / 1000).toFixed(0)} kB`);
  console.log(`packed: ${sizes.join(", ")}`);
}

/** The reducer in Node, with its types; its state is Rust's. */
function reduces() {
  fs.writeFileSync(path.join(project, "reduce.mjs"), `
    import { readFileSync } from "node:fs";
    import { apply, Film, indexed, NO_FLEET, NO_VIEW, recordOf } from "mainstem-reducer";
    const events = recordOf(readFileSync(process.argv[2], "utf8"));
    const places = indexed([]);
    const film = new Film(NO_VIEW);
    events.forEach((event) => film.push(event));
    const fleet = events.reduce((state, event) => apply(state, event, places), NO_FLEET);
    console.log(JSON.stringify([fleet, film.now.fleet, film.at(100).fleet.seq]));
  `);
  const [fleet, filmed, sought] = JSON.parse(run("node", ["reduce.mjs", path.join(TIMELINES, "timelines/demo.ndjson")]));
  const snapshot = fs.readFileSync(path.join(TIMELINES, "snapshots/timelines__a_recorded_run.snap"), "utf8");
  const expected = JSON.parse(snapshot.slice(snapshot.indexOf("\n{")));
  assert.deepEqual(fleet, expected);
  assert.deepEqual(filmed, expected);
  assert.equal(sought, 100);
}

/** The types are found as Node finds modules, and are the right ones. */
function hasTypes() {
  fs.writeFileSync(path.join(project, "use.ts"), `
    import "mainstem-fleet";
    import { recordOf, type FleetState, NO_FLEET } from "mainstem-reducer";
    const fleet: FleetState = NO_FLEET;
    const element = document.createElement("mainstem-fleet");
    element.record = recordOf("");
    // @ts-expect-error: agents are a list.
    const none: string = fleet.agents;
    // @ts-expect-error: a record has events.
    element.record = [none];
  `);
  const options = ["--noEmit", "--strict", "--module", "nodenext", "--target", "es2022", "--lib", "es2023,dom,dom.iterable"];
  run(path.join(UI, "node_modules/.bin/tsc"), [...options, "use.ts"]);
}

const POLICY = "default-src 'self'; img-src 'self' data:; require-trusted-types-for 'script'; trusted-types 'none'";

/** The element on a page of others, under a strict policy. */
async function isAnElement() {
  const events = timeline("demo");
  play("embedded", events);
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  const page = watched(await context.newPage(), between.url);
  const file = (name, type, body) => page.route(between.url + name, (route) => route.fulfill({ headers: { "content-type": type, "content-security-policy": POLICY }, body }));
  const element = fs.readFileSync(path.join(project, "node_modules/mainstem-fleet/dist/index.js"), "utf8");
  await file("app/element.js", "text/javascript", element);
  await file("app/", "text/html", `<!doctype html><html lang="en"><title>An application</title>
    <link rel="stylesheet" href="app.css"><script type="module" src="element.js"></script>
    <main><h1>An application</h1><div class="box"><mainstem-fleet session="embedded" server="../" token="${TOKEN}"></mainstem-fleet></div></main>`);
  await file("app/app.css", "text/css", "h1 { font: 40px serif } .box { width: 600px; height: 700px; border: 1px solid }");
  await page.goto(`${between.url}app/#own`);
  const fleet = page.locator("mainstem-fleet");
  await fleet.locator(".said", { hasText: "keep each once" }).first().waitFor(patience);
  // Its layout is that of its own width, and neither side's style is the other's.
  await fleet.getByRole("button", { name: "Timeline" }).waitFor();
  assert.equal(await fleet.locator("h1").evaluate((head) => getComputedStyle(head).fontSize), "15px");
  assert.equal(await page.locator("main > h1").evaluate((head) => getComputedStyle(head).fontSize), "40px");
  assert.deepEqual(await fleet.boundingBox().then(({ width, height }) => [width, height]), [600, 700]);
  await accessibleInBoth(page, "an element");
  await picture(page, "element");
  // It steers, selects without the address of its document, and is asked with its own token.
  between.posted.length = 0;
  await fleet.getByLabel("Task", { exact: true }).fill("Once more");
  await page.keyboard.press("Enter");
  await fleet.locator(".notice", { hasText: "The run begins." }).waitFor(patience);
  assert.deepEqual(between.posted, [["sessions/embedded/runs", { input: "Once more" }]]);
  await fleet.getByRole("button", { name: "Agents" }).click();
  await fleet.locator("[role=treeitem]", { hasText: "runner" }).click();
  await fleet.getByRole("button", { name: "↑ tester · tests" }).waitFor();
  assert.equal(new URL(page.url()).hash, "#own");
  assert.equal(await page.title(), "An application");

  // A record instead of a server; then another session's; then nothing.
  await fleet.evaluate((element, record) => (element.record = record), events.slice(0, 150));
  await fleet.locator(".banner", { hasText: "RECORD at event 150" }).waitFor(patience);
  await fleet.evaluate((element) => (element.record = undefined));
  await page.waitForFunction(() => document.querySelector("mainstem-fleet").shadowRoot.querySelector(".replay output")?.textContent.startsWith("366 of 366"));
  const closed = page.waitForEvent("requestfailed", { predicate: (request) => request.url().endsWith("embedded/events"), ...patience });
  await fleet.evaluate((element) => element.remove());
  await closed;
  await context.close();
}

export async function isInstalledAndUsed() {
  haveTheVersion();
  install();
  reduces();
  hasTypes();
  await isAnElement();
}
