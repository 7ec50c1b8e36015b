// Every action of the page, with the mouse and with the keyboard alone: what it sends, and why it is
// disabled where it is not allowed.
import assert from "node:assert/strict";
import { accessibleInBoth, between, card, open, patience, picture, tabTo } from "./harness.mjs";
import { Script, snapshot, sourceOf } from "./between.mjs";

/** An image of one pixel. */
const DOT = "R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw==";

const MODELS = { items: [{ id: "house", agents: ["main"], selectable: false }, { id: "strong", agents: [], selectable: true }] };

const AGENTS = { runs: "main", items: ["main", "planner"].map((id) => ({ id, description: "", runnable: true, spawnable: false })) };

/** Plays a session to which events are added while it is watched; returns what adds them. */
function grow(id, events, fields = {}) {
  let isMore = () => undefined;
  between.sessions.set(id, {
    fleet: snapshot(0, 0),
    ...fields,
    async *events(after) {
      for (let next = 0; ; next += 1) {
        while (next >= events.length) await new Promise((done) => (isMore = done));
        if (events[next].seq > after) yield events[next];
      }
    },
  });
  return (...added) => {
    events.push(...added);
    isMore();
  };
}

const TASK = { taskId: "task-1" };

/** The leading agent, a running child with a child below it, one that has ended, and one in the background. */
function fleet(script = new Script()) {
  const below = { source: sourceOf(4, { of: 1 }) };
  return [script.start(0), script.start(1), script.start(2), script.event(0, "TASK_UPDATED", { taskId: "task-1", from: "pending", to: "running" }), script.start(3, "go", { source: sourceOf(3, TASK) }), script.start(4, "go", below), script.end(2)];
}

/** Questions of three calls, and two calls that the caller runs. */
function questions(script = new Script()) {
  const call = (id) => ({ id, name: "write_file", arguments: '{"file":"a.txt"}' });
  const ask = (n) => script.event(1, "REQUIRE_USER_CONFIRM", { confirmId: `ask-${n}`, toolCalls: [call(`call-${n}`)] });
  return [...fleet(script), ...[1, 2, 3].map(ask), script.event(1, "REQUIRE_EXTERNAL_EXECUTION", { toolCalls: [call("call-4"), call("call-5")] })];
}

/** What a person does with a mouse. */
const mouse = {
  press: (_, button) => button.click(),
  write: (_, field, text) => field.fill(text),
  // The list of a select is drawn by the system.
  choose: (_, select, label) => select.selectOption({ label }),
  show: (page, name) => page.locator("[role=treeitem]", { hasText: name }).click(),
  async attach(page, file) {
    const [chooser] = await Promise.all([page.waitForEvent("filechooser"), page.locator("label.attach").click()]);
    await chooser.setFiles(file);
  },
  send: (_, __, button) => button.click(),
};

/** What a person does with the keyboard alone. */
const keyboard = {
  async press(page, button) {
    await tabTo(page, button);
    await page.keyboard.press("Space");
  },
  async write(page, field, text) {
    await tabTo(page, field);
    await page.keyboard.press("Control+A");
    await page.keyboard.type(text);
  },
  async choose(page, select, label) {
    const labels = await select.locator("option").allTextContents();
    await tabTo(page, select);
    await page.keyboard.press("Home");
    for (let step = 0; step < labels.indexOf(label); step += 1) await page.keyboard.press("ArrowDown");
  },
  async show(page, name) {
    await tabTo(page, page.locator("[role=treeitem][tabindex='0']"));
    await page.keyboard.press("Home");
    const row = () => page.evaluate(() => document.activeElement.querySelector(".who").textContent);
    for (let step = 0; step < 10 && (await row()) !== name; step += 1) await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
  },
  async attach(page, file) {
    const chooser = page.waitForEvent("filechooser");
    await tabTo(page, page.locator("input[type=file]"));
    await page.keyboard.press("Space");
    await (await chooser).setFiles(file);
  },
  /** Enter in the field sends. */
  async send(page, field) {
    await tabTo(page, field);
    await page.keyboard.press("Enter");
  },
};

/** Opens a played session; an action is not done before the last event is shown. */
async function watch(id, events = []) {
  between.posted.length = 0;
  const page = await open("page/icon.svg");
  await page.route(`${between.url}v1/agents`, (route) => route.fulfill({ json: AGENTS }));
  await page.route(`${between.url}v1/models`, (route) => route.fulfill({ json: MODELS }));
  await page.goto(`${between.url}#${id}`);
  await isShown(page, events.at(-1)?.seq ?? 0);
  return page;
}

const isShown = (page, seq) => page.waitForFunction((last) => document.querySelector(".replay output")?.textContent.startsWith(`${last} of ${last}`), seq, patience);

/** Waits until something was sent, and returns it; nothing else was sent. */
async function posted() {
  for (let time = 0; between.posted.length === 0; time += 1) {
    assert.ok(time < 1000, "nothing was sent");
    await new Promise((done) => setTimeout(done, 10));
  }
  assert.equal(between.posted.length, 1, JSON.stringify(between.posted));
  return between.posted.shift();
}

/** Waits until a notice is shown, and closes it, so that it is not taken for the next one. */
async function noticed(page, text, hand) {
  await page.locator(".notice", { hasText: text }).waitFor(patience);
  await hand.press(page, page.getByRole("button", { name: "close the message" }));
  await page.locator(".notice").waitFor({ ...patience, state: "detached" });
}

export const isSteeredByMouse = () => isSteered("mouse", mouse);
export const isSteeredByKeyboard = () => isSteered("keyboard", keyboard);

async function isSteered(name, hand) {
  await startsARun(`${name}-start`, hand);
  await sendsMessages(`${name}-messages`, hand);
  await answersQuestions(`${name}-questions`, hand);
  await cancels(`${name}-cancels`, hand);
  await goesOn(`${name}-goes-on`, hand);
}

/** A run with an agent, an attachment, and tools that are asked for. */
async function startsARun(id, hand) {
  grow(id, []);
  const page = await watch(id);
  await page.locator(".empty").waitFor(patience);
  const task = page.getByLabel("Task", { exact: true });
  await hand.write(page, task, "Review the change");
  await hand.choose(page, page.locator(".composer").getByLabel("Agent"), "planner");
  const models = page.locator(".composer").getByLabel("Model");
  assert.deepEqual(await models.locator("option").allTextContents(), ["default", "strong"]);
  await hand.choose(page, models, "strong");
  await hand.write(page, page.getByLabel("Ask me before"), "read_diff, run_*");
  await hand.attach(page, { name: "dot.gif", mimeType: "image/gif", buffer: Buffer.from(DOT, "base64") });
  await page.locator("label.attach", { hasText: "dot.gif" }).waitFor();
  await hand.press(page, page.getByRole("button", { name: "Start the run" }));
  const content = [{ type: "text", text: "Review the change" }, { type: "data", mediaType: "image/gif", source: { base64: DOT } }];
  assert.deepEqual(await posted(), [`sessions/${id}/runs`, { input: { role: "user", content }, agent: "planner", model: "strong", options: { permissions: [{ ask: ["read_diff", "run_*"] }] } }]);
  await noticed(page, "The run begins.", hand);
  assert.equal(await task.inputValue(), "", "the task was sent");
  // The other choices stay; a task without them is sent as its text.
  await hand.choose(page, page.locator(".composer").getByLabel("Agent"), "main");
  await hand.choose(page, models, "default");
  await hand.write(page, page.getByLabel("Ask me before"), " ");
  await hand.write(page, task, "Again");
  await hand.send(page, task, page.getByRole("button", { name: "Start the run" }));
  assert.deepEqual(await posted(), [`sessions/${id}/runs`, { input: "Again" }]);
  await page.context().close();
}

/** Messages to a running child, to the leading agent, and to a child that has ended. */
async function sendsMessages(id, hand) {
  const script = new Script();
  const events = fleet(script);
  const add = grow(id, events);
  const page = await watch(id, events);
  const send = async (to, text, how) => {
    const field = page.getByRole("textbox", { name: `Message to ${to}` });
    if (how) await hand.choose(page, page.getByLabel("It reads this"), how);
    await hand.write(page, field, text);
    await hand.send(page, field, page.getByRole("button", { name: "Send" }));
    const sent = await posted();
    await noticed(page, "The message is sent.", hand);
    assert.equal(await field.inputValue(), "");
    return sent;
  };
  const to = (key) => `sessions/${id}/agents/${key}/messages`;
  await hand.show(page, "main");
  assert.deepEqual(await send("main", "a further run", "as a further run"), [`sessions/${id}/runs`, { input: "a further run", queue: true }]);
  assert.deepEqual(await send("main", "soon", "before its next model call"), [to("root"), { content: "soon", mode: "steer" }]);
  assert.deepEqual(await send("main", "now", "at once"), [to("root"), { content: "now", mode: "interrupt" }]);
  await hand.show(page, "worker 1");
  assert.deepEqual(await send("worker 1", "later", "after this turn"), [to("agent:worker:1"), { content: "later", mode: "queue" }]);
  assert.deepEqual(await send("worker 1", "soon", "before its next model call"), [to("agent:worker:1"), { content: "soon", mode: "steer" }]);
  assert.deepEqual(await send("worker 1", "now", "at once"), [to("agent:worker:1"), { content: "now", mode: "interrupt" }]);
  // One that has ended reads it at once: there is nothing to choose.
  await hand.show(page, "worker 2");
  assert.ok(await page.getByLabel("It reads this").isDisabled());
  await chip(page.locator(".crumbs"), "done").waitFor(patience);
  assert.deepEqual(await send("worker 2", "once more"), [to("agent:worker:2"), { content: "once more", mode: "queue" }]);
  add(script.start(2, "once more", { source: sourceOf(2, { turn: 2 }), replyId: "reply-2-2" }));
  await chip(page.locator(".crumbs"), "starting").waitFor(patience);
  await card(page, "worker 2").getByText("turn 2").waitFor(patience);
  await page.context().close();
}

/** Calls are allowed, denied, and allowed with other arguments; results of others are typed in. */
async function answersQuestions(id, hand) {
  const script = new Script();
  const events = questions(script);
  const add = grow(id, events);
  const page = await watch(id, events);
  const ask = page.locator("article.ask").first();
  const answered = async (n) => {
    const left = await page.locator("article.ask").count();
    add(script.event(1, "USER_CONFIRM_RESULT", { confirmId: `ask-${n}`, confirmResults: [] }));
    await page.waitForFunction((count) => document.querySelectorAll("article.ask").length === count, left - 1, patience);
  };
  const to = (n) => `sessions/${id}/confirmations/ask-${n}`;
  await page.getByRole("heading", { name: "Needs you (5)" }).waitFor(patience);
  await hand.press(page, ask.getByRole("button", { name: "Allow" }));
  assert.deepEqual(await posted(), [to(1), { decision: "allow" }]);
  await noticed(page, "Allowed.", hand);
  await answered(1);

  await hand.write(page, ask.getByLabel("reason for the agent"), "not this file");
  await hand.press(page, ask.getByRole("button", { name: "Deny" }));
  assert.deepEqual(await posted(), [to(2), { decision: "deny", reason: "not this file" }]);
  await noticed(page, "Denied.", hand);
  await answered(2);

  await hand.write(page, ask.getByLabel("arguments"), "{");
  await isDisabled(page, ask.getByRole("button", { name: "Allow as changed" }), "the arguments are not JSON");
  await hand.write(page, ask.getByLabel("arguments"), '{ "file": "b.txt" }');
  await hand.press(page, ask.getByRole("button", { name: "Allow as changed" }));
  assert.deepEqual(await posted(), [to(3), { decision: "allow", arguments: { file: "b.txt" } }]);
  await noticed(page, "Allowed.", hand);
  await answered(3);

  // The results of two calls: one has an answer, the other one failed.
  for (const [n, button, isError] of [["4", "Send the result", false], ["5", "It failed", true]]) {
    await isDisabled(page, ask.getByRole("button", { name: button }), "write the result first");
    await hand.write(page, ask.getByLabel("result", { exact: true }), `answer ${n}`);
    await hand.press(page, ask.getByRole("button", { name: button }));
    assert.deepEqual(await posted(), [`sessions/${id}/calls/call-${n}/result`, { content: `answer ${n}`, is_error: isError }]);
    await noticed(page, "The result is sent.", hand);
    add(script.event(1, "EXTERNAL_EXECUTION_RESULT", { toolResults: [{ toolCallId: `call-${n}`, content: [], state: "success" }] }));
    if (n === "4") await page.getByRole("heading", { name: "Needs you (1)" }).waitFor(patience);
  }
  await page.getByText("Nothing waits for you.").waitFor(patience);
  await page.context().close();
}

/** The state of an agent or a task: a sign and this word. */
const chip = (within, word) => within.locator(".chip", { hasText: new RegExp(`^\\S ${word}$`) });

/** What an agent is in the tree. */
const word = (page, name) => page.locator("[role=treeitem]", { hasText: name }).locator(".last");

/** A task, a subtree and the run: each is shown as being cancelled until it ends. */
async function cancels(id, hand) {
  const script = new Script();
  const call = { id: "call-1", name: "write_file", arguments: "{}" };
  const events = [...fleet(script), script.event(4, "REQUIRE_EXTERNAL_EXECUTION", { toolCalls: [call], source: sourceOf(4, { of: 1 }) })];
  const add = grow(id, events);
  const page = await watch(id, events);
  await page.locator("article.ask").waitFor(patience);
  const task = page.locator("article.task-row");
  await hand.press(page, page.getByRole("button", { name: "Cancel the task of worker 3" }));
  assert.deepEqual(await posted(), ["tasks/task-1/cancel"]);
  await noticed(page, "The task is being cancelled.", hand);
  await chip(task, "being cancelled").waitFor(patience);
  await isDisabled(page, task.getByRole("button", { name: "Cancel" }), "it is being cancelled");
  add(script.end(3, "cancelled", { source: sourceOf(3, TASK) }), script.event(0, "TASK_UPDATED", { taskId: "task-1", from: "running", to: "cancelled" }));
  await chip(task, "cancelled").waitFor(patience);
  await isDisabled(page, task.getByRole("button", { name: "Cancel" }), "it has ended");

  await hand.show(page, "worker 1");
  const cancel = page.getByRole("button", { name: "Cancel worker 1" });
  await hand.press(page, cancel);
  assert.deepEqual(await posted(), [`sessions/${id}/agents/agent:worker:1/cancel`]);
  await noticed(page, "It is being cancelled.", hand);
  await chip(page.locator(".crumbs"), "being cancelled").waitFor(patience);
  await word(page, "worker 4").getByText("being cancelled").waitFor(patience);
  assert.match(await word(page, "worker 2").textContent(), /^done/, "another agent is not cancelled");
  await isDisabled(page, cancel, "it is being cancelled");
  add(script.end(4, "cancelled", { source: sourceOf(4, { of: 1 }) }), script.end(1, "cancelled"));
  await chip(page.locator(".crumbs"), "cancelled").waitFor(patience);
  await isDisabled(page, cancel, "it has ended");
  await page.locator("article.ask").waitFor({ ...patience, state: "detached" });
  // A further turn of it is not being cancelled.
  add(script.start(1, "once more", { source: sourceOf(1, { turn: 2 }), replyId: "reply-1-2" }));
  await chip(page.locator(".crumbs"), "starting").waitFor(patience);

  await hand.show(page, "main");
  await hand.press(page, page.getByRole("button", { name: "Cancel the run" }));
  assert.deepEqual(await posted(), ["runs/run-1/cancel"]);
  await noticed(page, "It is being cancelled.", hand);
  await page.locator(".head .chip", { hasText: "cancelling" }).waitFor(patience);
  await word(page, "worker 1").getByText("being cancelled").waitFor(patience);
  await isDisabled(page, page.getByRole("button", { name: "Cancel the run" }), "it is being cancelled");
  if (hand === mouse) await accessibleInBoth(page, "cancelling");
  await picture(page, "cancelling");
  add(script.end(1, "cancelled"), script.end(0, "cancelled"));
  await page.locator(".head .chip", { hasText: "idle" }).waitFor(patience);
  await page.locator(".composer[aria-label='start a run']").waitFor(patience);
  await page.context().close();
}

/** A turn that was cut is resumed, and the conversation is compacted. */
async function goesOn(id, hand) {
  const script = new Script();
  const events = [script.start(0), script.end(0, "cancelled")];
  grow(id, events);
  const page = await watch(id, events);
  await hand.press(page, page.getByRole("button", { name: "Resume" }));
  assert.deepEqual(await posted(), [`sessions/${id}/runs`, { resume: true }]);
  await noticed(page, "The last turn is resumed.", hand);
  await hand.press(page, page.getByRole("button", { name: "Compact" }));
  assert.deepEqual(await posted(), [`sessions/${id}/runs`, { compact: true }]);
  await noticed(page, "The conversation is being compacted.", hand);
  await page.context().close();
}

/** A button has a reason, which a mouse and a screen reader show; it is told when the button is pressed, and nothing is sent. */
async function isDisabled(page, button, reason) {
  await button.and(page.locator(`[title="${reason}"]`)).waitFor(patience);
  assert.equal(await button.getAttribute("aria-disabled"), "true");
  const described = await button.evaluate((element) => document.getElementById(element.getAttribute("aria-describedby"))?.textContent);
  assert.equal(described, reason);
  await tabTo(page, button);
  await page.keyboard.press("Enter");
  await page.locator(".notices[role=alert] .notice", { hasText: reason }).waitFor(patience);
  assert.deepEqual(between.posted, []);
  await keyboard.press(page, page.getByRole("button", { name: "close the message" }));
}

/** Each button that sends something while agents run. */
const actions = (page) => [
  page.getByRole("button", { name: "Send", exact: true }),
  page.getByRole("button", { name: "Cancel the run" }),
  page.getByRole("button", { name: "Cancel the task of worker 3" }),
  ...["Allow", "Deny"].map((name) => page.locator("article.ask").first().getByRole("button", { name })),
  ...["Send the result", "It failed"].map((name) => page.locator("article.ask").last().getByRole("button", { name })),
];

/** Nothing is sent by any button, nor by Enter in a field that has a text. */
async function isAllDisabled(page, reason) {
  for (const button of actions(page)) await isDisabled(page, button, reason);
  const field = page.getByRole("textbox", { name: "Message to main" });
  await keyboard.write(page, field, "hello");
  await page.keyboard.press("Enter");
  await page.locator(".notice", { hasText: reason }).waitFor(patience);
  assert.equal(await field.inputValue(), "hello", "what was written stays");
  assert.deepEqual(between.posted, []);
}

/** While a replay is shown, the connection is lost, or the session is read with a link. */
export async function nothingIsSentWhereItMayNot() {
  const events = questions();
  grow("disabled", events);
  const page = await watch("disabled", events);
  for (const button of actions(page).slice(1, 5)) assert.equal(await button.getAttribute("aria-disabled"), "false");
  await tabTo(page, page.getByLabel("event", { exact: true }));
  await page.keyboard.press("ArrowLeft");
  await page.keyboard.press("ArrowRight");
  await page.locator(".banner", { hasText: "REPLAY" }).waitFor(patience);
  await isAllDisabled(page, "this is a replay; go back to live first");
  await keyboard.press(page, page.getByRole("button", { name: "Back to live" }));
  await page.locator(".banner").waitFor({ ...patience, state: "detached" });
  await page.getByRole("button", { name: "Cancel the run" }).and(page.locator("[aria-disabled=false]")).waitFor(patience);

  await page.route(`${between.url}v1/sessions/disabled/events`, (route) => route.abort());
  between.drop("disabled");
  await page.locator(".banner", { hasText: "The connection is lost" }).waitFor(patience);
  await isAllDisabled(page, "the connection is lost");
  await page.context().close();

  // With a link there are no actions, and the page says that it is read only.
  const link = { id: "link-1", session_id: "disabled", created_at: "2026-11-26T18:00:00Z", expires_at: "2126-11-26T18:00:00Z" };
  const reader = await open("page/icon.svg");
  await reader.route(`${between.url}v1/link`, (route) => route.fulfill({ json: link }));
  await reader.goto(`${between.url}#disabled?link=msl${"0".repeat(64)}`);
  await isShown(reader, events.at(-1).seq);
  await reader.locator(".banner", { hasText: "read only" }).waitFor(patience);
  assert.equal(await reader.locator("form, article.ask, textarea").count(), 0);
  assert.equal(await reader.getByRole("button", { name: /Cancel|Send|Allow|Deny|Start|Resume|Compact/ }).count(), 0);
  await reader.context().close();
}

/** Where nothing has run, after the end, and for an agent that is closed. */
export async function actionsSayWhyTheyAreDisabled() {
  grow("not-begun", []);
  const empty = await watch("not-begun");
  for (const name of ["Compact", "Resume"]) await isDisabled(empty, empty.getByRole("button", { name }), "nothing has run yet");
  await isDisabled(empty, empty.getByRole("button", { name: "Start the run" }), "write a task first");
  await empty.context().close();

  const script = new Script();
  const events = [...fleet(script), script.event(0, "AGENT_CLOSED", { agentKey: "agent:worker:2" })];
  const add = grow("closed", events);
  const page = await watch("closed", events);
  await isDisabled(page, page.getByRole("button", { name: "Send" }), "write a message first");
  await keyboard.show(page, "worker 2");
  const closed = "this agent is closed and accepts no messages";
  for (const name of ["Send", "Cancel worker 2"]) await isDisabled(page, page.getByRole("button", { name }), closed);

  const ends = [script.end(1), script.end(3, "success", { source: sourceOf(3, TASK) }), script.event(0, "TASK_UPDATED", { taskId: "task-1", from: "running", to: "completed" }), script.end(0)];
  add(...ends);
  await isShown(page, script.seq);
  await keyboard.show(page, "worker 1");
  for (const name of ["Cancel worker 1", "Cancel the task of worker 3"]) await isDisabled(page, page.getByRole("button", { name }), "it has ended");
  await keyboard.show(page, "main");
  await isDisabled(page, page.getByRole("button", { name: "Resume" }), "the last turn is complete");
  assert.equal(await page.getByRole("button", { name: "Compact" }).getAttribute("aria-disabled"), "false");
  await page.context().close();

  // A run that the server lost can be resumed, though its record has no end.
  grow("unfinished", [], { view: { state: "unfinished" } });
  const lost = await watch("unfinished");
  await lost.getByRole("button", { name: "Resume" }).and(lost.locator("[aria-disabled=false]")).waitFor(patience);
  await lost.context().close();
}

/** What the server refuses is told with its reason, and what was written stays; Enter twice sends once. */
export async function refusalsAreTold() {
  const events = fleet();
  let answer = () => ({ status: 409, body: { code: "agent_closed", detail: "the agent is closed" } });
  grow("refused", events, { answer: () => answer() });
  const page = await watch("refused", events);
  const field = page.getByRole("textbox", { name: "Message to main" });
  await keyboard.write(page, field, "hello");
  await page.keyboard.press("Enter");
  await page.locator(".notices[role=alert] .notice", { hasText: "the agent is closed (agent_closed)" }).waitFor(patience);
  assert.equal(await field.inputValue(), "hello");
  await keyboard.show(page, "worker 1");
  await keyboard.press(page, page.getByRole("button", { name: "Cancel worker 1" }));
  await page.locator(".notice.error", { hasText: "the agent is closed" }).waitFor(patience);
  assert.equal(await page.getByText("being cancelled").count(), 0, "a cancel that was refused is not shown");

  await keyboard.show(page, "main");
  between.posted.length = 0;
  let accept;
  answer = () => new Promise((done) => (accept = () => done({})));
  await keyboard.write(page, field, "only once");
  await page.keyboard.press("Enter");
  await page.keyboard.press("Enter");
  await page.waitForTimeout(200);
  accept();
  await page.locator(".notice", { hasText: "The message is sent." }).waitFor(patience);
  assert.equal(between.posted.length, 1);
  await page.context().close();
}
