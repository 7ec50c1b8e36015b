// The main states of the page at every width, in light and dark: as they were accepted, without
// overflow, and accessible.
//
// With `ACCEPT_SCREENS=1` those that differ are written to `test/screens`, to be looked at.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { accessible, between, folder, open, patience, pictures, saved, timeline, watched } from "./harness.mjs";
import { decode, differing, encode } from "./png.mjs";
import { Script, snapshot } from "./between.mjs";
import { play } from "./saved.mjs";
import { withRetry } from "../retry.mjs";

const ACCEPTED = path.resolve(import.meta.dirname, "../screens");
const SIZES = [[1440, 900], [1000, 800], [390, 844]];
/** The time where a state has no events. */
const AT = "2026-11-26T18:00:00Z";
/** So large a part of the pixels may differ in a channel by more than `CHANNEL` of 255. */
const CHANNEL = 40;
const MOST = 0.0002;

const AGENTS = { runs: "main", items: [
  { id: "main", description: "Reviews a change with the help of others.", runnable: true, spawnable: false },
  { id: "reviewer", description: "Reviews one aspect of a diff.", runnable: false, spawnable: true },
] };

const until = (events, isLast) => events.slice(0, events.findIndex(isLast) + 1);

/** A run in which a child fails, and then the leading agent. */
function failed() {
  const events = timeline("demo").slice(0, 230);
  const start = (label) => events.find(({ source, type }) => type === "AGENT_START" && source?.label === label);
  const end = (label, message) => {
    const { seq, createdAt } = events.at(-1);
    const usage = { own: {}, inclusive: {} };
    events.push({ ...start(label), type: "AGENT_END", seq: seq + 1, createdAt, outcome: "error", durationMs: 6000, usage, error: { code: "provider_error", message } });
  };
  end("tests", "the model could not be reached: connection refused");
  end(undefined, "a child failed: tester");
  return events;
}

/** Events after those of a played session, at the time of its last one. */
function then(events, ...more) {
  const { createdAt, seq } = events.at(-1);
  return [...events, ...more.map((event, place) => ({ ...event, createdAt, seq: seq + 1 + place }))];
}

/** Two children wait for the limit that all calls of a model share. */
function limited() {
  const events = timeline("demo").slice(0, 60);
  const start = (label) => events.find(({ source, type }) => type === "AGENT_START" && source?.label === label);
  const wait = (label, ahead) => ({ ...start(label), type: "RATE_LIMIT_WAIT", limit: "tokens", ahead, waitMs: 4000, refusal: "rate_limited: api.example.com: too many requests" });
  return then(events, wait("correctness", 0), wait("security", 1));
}

/** Names and texts that try to be markup, to change the direction of what follows, or to be a link. */
function hostile() {
  const attack = "<img src=x onerror=\"window.attacked=1\"><script>window.attacked=1</script>\u001b[31m\u202egnp.exe [a](javascript:attacked=1)";
  const script = new Script();
  return [
    script.start(0, attack),
    script.event(0, "TEXT_BLOCK_START", { blockId: "b1" }),
    script.event(0, "TEXT_BLOCK_DELTA", { blockId: "b1", delta: `${attack} ${"x".repeat(400)}` }),
    script.event(0, "TOOL_CALL_START", { toolCallId: "call-1", toolCallName: attack }),
    script.event(0, "TOOL_RESULT_START", { toolCallId: "call-1", toolCallName: attack, input: { [attack]: attack } }),
    script.event(0, "REQUIRE_USER_CONFIRM", { confirmId: "c", toolCalls: [{ id: "call-1", name: attack, arguments: JSON.stringify({ attack }) }] }),
    script.start(1, attack, { name: attack, label: attack }),
  ];
}

/** The frames of a session that is active: its events without what is streamed in pieces. */
function framesOf(id, events, fields = {}) {
  const frames = events.filter(({ type }) => !type.endsWith("_DELTA")).map((event) => ({ type: "event", tenant: fields.tenant, event: { ...event, sessionId: id } }));
  return [{ type: "session", ...fields, session: { id }, fleet: { ...snapshot(0, 0), sessionId: id } }, ...frames];
}

/** Live sessions of two tenants and two nodes: one asks, two work, one has ended. */
function live() {
  const use = (used, most, by_tenant) => ({ used, most, by_tenant });
  const server = { node: "north-1", runs: use(3, 64, { "": 2, acme: 1 }), sessions: use(12, 1000), readers: use(4, 512) };
  const asked = until(timeline("steered"), ({ type }) => type === "REQUIRE_USER_CONFIRM");
  return [
    { type: "summary", live: 3, shown: 3, server },
    ...framesOf("a discount", timeline("demo").slice(0, 200), { node: "north-1" }),
    ...framesOf("steered", asked, { node: "south-1" }),
    ...framesOf("a discount", timeline("demo").slice(0, 60), { node: "south-1", tenant: "acme" }),
    ...framesOf("an earlier one", timeline("demo"), { node: "north-1" }),
    { type: "left", session_id: "an earlier one" },
  ];
}

const TOKEN = `msl${"0123456789abcdef".repeat(4)}`;

/** A link of a state's session. */
const link = (name, fields) => ({ id: `link-${name}`, session_id: `state-${name}`, created_at: "2026-11-26T18:00:00Z", expires_at: "2026-12-03T18:00:00Z", ...fields });

/** Creates a link, whose address is the same in each run of the tests. */
async function share(page) {
  const links = [link("share", { id: "link-1", created_at: "2026-11-25T09:30:00Z", expires_at: "2026-11-26T21:30:00Z", through: 120 })];
  await page.route(`${between.url}v1/sessions/state-share/links`, (route) => {
    if (route.request().method() !== "POST") return route.fulfill({ json: { items: links } });
    links.push(link("share"));
    return route.fulfill({ status: 201, json: { link: links[1], token: TOKEN } });
  });
  await page.evaluate((origin) => {
    const { get } = Object.getOwnPropertyDescriptor(URL.prototype, "href");
    Object.defineProperty(URL.prototype, "href", { get() { return get.call(this).replace(origin, "https://mainstem.example/"); } });
  }, between.url);
  await page.getByRole("button", { name: "Share", exact: true }).click();
  await page.getByRole("button", { name: "Create link" }).click();
  await page.getByLabel("address of the link").waitFor(patience);
  await page.getByRole("button", { name: "close the message" }).click();
}

/** Cuts the connection; the next one fails, and the one after it is not answered. */
async function disconnect(page) {
  let failures = 1;
  await page.route(`${between.url}v1/sessions/state-reconnecting/events`, (route) => {
    failures -= 1;
    if (failures >= 0) void route.abort();
  });
  between.drop("state-reconnecting");
  await page.locator(".banner", { hasText: "Trying again, attempt 2;" }).waitFor(patience);
}

/** Begins at a snapshot, since the first events of the record are lost. */
function lost() {
  between.sessions.set("state-gap", {
    fleet: { ...snapshot(3, 500), at: AT },
    view: { active_run: "run-1" },
    async *events(after) {
      const script = new Script();
      if (after === 0) yield script.event(0, "GAP", { fromSeq: 1, toSeq: 400, missed: 400, perAgent: {} });
      script.seq = 500;
      if (after === 500) yield { ...script.event(2, "TEXT_BLOCK_START", { blockId: "b" }), createdAt: AT };
      if (after === 500) yield { ...script.event(2, "TEXT_BLOCK_DELTA", { blockId: "b", delta: "What comes after the snapshot is shown." }), createdAt: AT };
      await new Promise(() => undefined);
    },
  });
}

/** A child waits for a result from its caller, and another one runs in the background. */
function suspended() {
  const events = timeline("demo").slice(0, 200);
  const { runId, source, replyId } = events.find(({ source, type }) => type === "AGENT_START" && source?.label === "correctness");
  const of = { runId, source, replyId };
  const toolCalls = [{ id: "call-1", name: "deploy_preview", arguments: '{"branch":"discount"}' }];
  const end = { ...of, type: "AGENT_END", outcome: "suspended", durationMs: 3600, usage: { own: {}, inclusive: {} } };
  return then(events, { ...of, type: "REQUIRE_EXTERNAL_EXECUTION", toolCalls }, end);
}

/** A cancel was accepted, and no agent has ended. */
async function cancel(page) {
  await page.route(`${between.url}v1/runs/*/cancel`, (route) => route.fulfill({ json: {} }));
  await page.getByRole("button", { name: "Cancel the run" }).click();
  await page.locator(".head .chip", { hasText: "cancelling" }).waitFor(patience);
  await page.getByRole("button", { name: "close the message" }).click();
}

/** The session is asked for, and the server does not answer. */
const ask = (page) => page.route(`${between.url}v1/sessions/state-connecting/fleet`, () => undefined);

/** No event has arrived for a while. */
async function wait(page) {
  await page.clock.setFixedTime(Date.parse(timeline("demo")[199].createdAt) + 42_000);
  await page.getByText("no event for 42 s").waitFor(patience);
}

/** Opens the document that the page saves, without a server. */
async function openRecord(page) {
  const { path: file } = await saved(page, page.getByRole("button", { name: "HTML" }));
  const document = path.join(folder, "state-record.html");
  fs.copyFileSync(file, document);
  const record = watched(await page.context().newPage(), pathToFileURL(document).href);
  await record.goto(pathToFileURL(document).href);
  await record.locator(".banner", { hasText: "RECORD at event" }).waitFor(patience);
  return record;
}

/** The server does not accept the token that is typed. */
async function refuseToken(page) {
  await page.getByLabel("Token").fill("a token of another server");
  await page.getByRole("button", { name: "Open" }).click();
  await page.getByRole("alert").waitFor(patience);
}

/**
 * Each state: its events, where the page is, and what is shown once it is there; `link` is what the
 * server answers for the token in the address, `guarded` what it answers for that of the tab,
 * `before` is done before the page is opened, and `act` on the page, which may open another one.
 */
const STATES = {
  empty: { hash: "", shows: ".empty dl" },
  running: { events: () => timeline("demo").slice(0, 200), hash: "", shows: ".card .said.open" },
  "needs-you": { events: () => until(timeline("steered"), ({ type }) => type === "REQUIRE_USER_CONFIRM"), hash: "", shows: "article.ask" },
  login: { guarded: { status: 401, json: { code: "bad_token", detail: "invalid token" } }, hash: "", shows: "#token", act: refuseToken },
  done: { events: () => timeline("demo"), hash: "", shows: ".head .chip:text-is('idle')" },
  reconnecting: { events: () => timeline("demo").slice(0, 200), hash: "", shows: ".card .said.open", act: disconnect },
  failed: { events: failed, hash: "", shows: ".lane > div > .parts > .ended" },
  cancelled: { events: () => until(timeline("steered"), ({ outcome }) => outcome === "cancelled"), hash: "", shows: ".lane .ended" },
  limited: { events: limited, hash: "", shows: ".lane .card.calm" },
  hostile: { events: hostile, hash: "", shows: "article.ask" },
  replay: { events: () => timeline("demo"), hash: "@151", shows: ".chip.replaying" },
  live: { frames: live, shows: ".fleets .card.good" },
  share: { events: () => timeline("demo"), hash: "", shows: ".said", act: share },
  shared: { events: () => timeline("demo").slice(0, 200), hash: `?link=${TOKEN}`, link: { json: link("shared") }, shows: ".card .said.open" },
  frozen: { events: () => timeline("demo").slice(0, 120), isOver: true, hash: `?link=${TOKEN}`, link: { json: link("frozen", { through: 120 }) }, shows: ".head .chip:text-is('over')" },
  ended: { hash: `?link=${TOKEN}`, link: { status: 401, json: { code: "link_over", detail: "this link has ended" } }, shows: "main.login" },
  connecting: { before: ask, hash: "", shows: ".head .chip:text-is('connecting')" },
  idle: { events: () => timeline("demo").slice(0, 200), hash: "", shows: ".card .said.open", act: wait },
  gap: { before: lost, hash: "", shows: ".card .said.open" },
  suspended: { events: suspended, hash: "", shows: ".card .ended" },
  cancelling: { events: () => timeline("demo").slice(0, 200), hash: "", shows: ".card .said.open", act: cancel },
  record: { events: () => timeline("demo"), hash: "", shows: ".head .chip:text-is('idle')", act: openRecord },
  compare: { events: () => withRetry(timeline("demo")), hash: "?compare=", shows: ".lanes .mark" },
};

/** Opens a state with a fixed clock, and with lists that do not depend on the server. */
async function openState(name, look) {
  const { events, isOver, frames, hash, link: answered, guarded, shows, before, act } = STATES[name];
  const record = events?.() ?? [];
  if (events) play(`state-${name}`, record, { isOver });
  const page = await open("page/icon.svg", { locale: "en-GB", timezoneId: "UTC", viewport: { width: 1440, height: 900 }, ...look });
  await page.clock.setFixedTime((frames ? timeline("demo") : record).at(-1)?.createdAt ?? AT);
  const answer = (way, body) => page.route(`${between.url}v1/${way}`, (route) => route.fulfill({ json: body }));
  await page.route(`${between.url}v1/agents`, (route) => route.fulfill(guarded ?? { json: AGENTS }));
  await answer("sessions", { items: [{ id: `state-${name}`, state: "idle", runs: 1, queued_runs: [], updated_at: "2026-11-26T18:00:00Z" }] });
  if (answered) await page.route(`${between.url}v1/link`, (route) => route.fulfill(answered));
  if (frames) between.live = frames();
  await before?.(page);
  await page.goto(`${between.url}#${frames ? "?live" : `state-${name}${hash}`}`);
  await page.locator(shows).first().waitFor({ ...patience, state: "attached" });
  if (record.length > 0 && !hash) await page.waitForFunction((seq) => document.querySelector(".replay output")?.textContent.startsWith(`${seq} of ${seq}`), record.at(-1).seq);
  // It is drawn a little later than the rest.
  if (record.length > 0 && name !== "compare") await page.locator(".timeline .bar").first().waitFor({ ...patience, state: "attached" });
  return (await act?.(page)) ?? page;
}

/** Takes pictures until two are the same: lists and figures follow a little later. */
async function still(page) {
  for (let before, time = 0; time < 20; time += 1) {
    const now = await page.screenshot({ animations: "disabled", caret: "hide" });
    if (before?.equals(now)) return now;
    before = now;
    await page.waitForTimeout(120);
  }
  return assert.fail("the page does not stand still");
}

export async function screensAreAsAccepted() {
  const names = Object.keys(STATES);
  const wrong = [];
  const work = async () => {
    for (let name = names.shift(); name; name = names.shift()) wrong.push(...(await screensOf(name)));
  };
  await Promise.all([work(), work()]);
  if (process.env.ACCEPT_SCREENS === "1") accept(wrong);
  else refuse(wrong);
}

/** Looks at a state at each width in both themes, and returns the pictures that are not as accepted. */
async function screensOf(name) {
  const page = await openState(name, { reducedMotion: "reduce" });
  const wrong = [];
  for (const [width, height] of SIZES) {
    await page.setViewportSize({ width, height });
    for (const colorScheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme });
      const where = `${name}-${colorScheme}-${width}.png`;
      const png = await still(page);
      if (pictures) fs.writeFileSync(path.join(pictures, where), png);
      const file = path.join(ACCEPTED, where);
      const part = fs.existsSync(file) ? differing(decode(png), decode(fs.readFileSync(file)), CHANNEL) : 1;
      if (part > MOST) wrong.push({ where, part, png });
      assert.deepEqual(await page.evaluate(overflowing), [], `${where} overflows`);
      // The colours are the same at each width.
      if (colorScheme === "light" || width === 1440) await accessible(page, where);
      if (width === 390 && name === "replay") await tabsAreAccessible(page, colorScheme);
    }
  }
  await page.context().close();
  if (STATES[name].frames) between.live = undefined;
  return wrong;
}

function accept(wrong) {
  fs.mkdirSync(ACCEPTED, { recursive: true });
  for (const { where, png } of wrong) fs.writeFileSync(path.join(ACCEPTED, where), encode(decode(png)));
  assert.equal(fs.readdirSync(ACCEPTED).length, Object.keys(STATES).length * SIZES.length * 2, "there is one picture for each state, width and theme");
}

function refuse(wrong) {
  if (wrong.length === 0) return;
  const beside = fs.mkdtempSync(path.join(path.dirname(folder), "mainstem-screens-"));
  for (const { where, png } of wrong) fs.writeFileSync(path.join(beside, where), png);
  const list = wrong.map(({ where, part }) => `${where} (${(part * 100).toFixed(2)} %)`).join(", ");
  assert.fail(`other than in ${ACCEPTED}: ${list}; they are in ${beside}, and ACCEPT_SCREENS=1 accepts them`);
}

/** What reaches beyond the right edge of a page that can be moved to it; runs on the page. */
function overflowing() {
  if (document.documentElement.scrollWidth <= innerWidth) return [];
  return [...document.querySelectorAll("*")].filter((element) => element.getBoundingClientRect().right > innerWidth).map((element) => `${element.tagName} ${element.className}`);
}

async function tabsAreAccessible(page, colorScheme) {
  for (const tab of ["Agents", "Timeline", "Needs you", "Lane"]) {
    await page.getByRole("button", { name: tab }).click();
    await accessible(page, `${tab}, ${colorScheme}`);
  }
}

/** A cursor blinks behind a text that is being written, unless motion is reduced. */
export async function movesOnlyWhereItMay() {
  for (const reducedMotion of ["no-preference", "reduce"]) {
    const page = await openState("running", { reducedMotion });
    const animations = await page.evaluate(() => document.getAnimations().length);
    assert.equal(animations > 0, reducedMotion === "no-preference", `${animations} animations with ${reducedMotion}`);
    await page.context().close();
  }
}
