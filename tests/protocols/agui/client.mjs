// The official AG-UI clients, unchanged: each scenario prints what its client has understood.
//
// node client.mjs http://127.0.0.1:1234#scenario TOKEN

import { HttpAgent, buildResumeArray } from "@ag-ui/client";
import { EventSchema, RunAgentInputSchema } from "@ag-ui/core/schemas";
import { HttpAgent as OldAgent } from "ag-ui-client-before-subagents";

const [, , address, token] = process.argv;
const [url, scenario] = address.split("#");

// The clients take what they do not know out of an event, and warn.
const complaints = [];
console.warn = (...args) => complaints.push(args.join(" "));
console.error = (...args) => complaints.push(args.join(" "));

function client(Agent, threadId, query = "", path = "/ag-ui") {
  const agent = new Agent({ url: url + path + query, threadId, headers: { Authorization: `Bearer ${token}` } });
  agent.seen = [];
  agent.subscribe({ onEvent: ({ event }) => void agent.seen.push(event) });
  return agent;
}

const say = (agent, text, id = crypto.randomUUID()) => agent.addMessage({ id, role: "user", content: text });
const of = (agent, type) => agent.seen.filter((event) => event.type === type);
const line = (value) => (typeof value === "string" ? value : JSON.stringify(value).replaceAll('"', ""));
const print = (value) => (Array.isArray(value) ? value : [value]).forEach((one) => console.log(line(one)));
const failure = (promise) => promise.then(() => "no error", (error) => error.message);

/** The subagents of a client: the name of each, that of its parent, and how it ended. */
function subagents(agent) {
  const names = {};
  for (const { subagentRunId, name } of of(agent, "SUBAGENT_STARTED")) names[subagentRunId] = name;
  return of(agent, "SUBAGENT_STARTED").map((start) => {
    const end = agent.seen.find((event) => event.subagentRunId === start.subagentRunId
      && ["SUBAGENT_FINISHED", "SUBAGENT_ERROR"].includes(event.type));
    const caused = agent.messages.some((one) => one.toolCalls?.some((call) => call.id === start.parentToolCallId));
    const below = start.parentSubagentRunId ? names[start.parentSubagentRunId] : "root";
    const how = end.type === "SUBAGENT_ERROR" ? `error: ${end.message}` : `${end.outcome.type}${end.result ? `, ${end.result}` : ""}`;
    const detached = end.metadata.mainstem.detached ? " (detached)" : "";
    const path = start.metadata.mainstem.source.path.split("/").slice(1).join("/");
    const turn = start.subagentRunId.split("#")[1];
    return `${path}#${turn}, ${caused ? "called by" : "below"} ${below}: ${how}${detached}`;
  });
}

/** The texts of a conversation, with the agents that wrote them. */
function texts(agent) {
  const names = {};
  for (const { subagentRunId, name } of of(agent, "SUBAGENT_STARTED")) names[subagentRunId] = name;
  return agent.messages.filter((one) => one.content).map((one) => {
    const who = one.subagentRunId ? names[one.subagentRunId] : (one.name ?? "");
    return `${one.role} ${who}: ${typeof one.content === "string" ? one.content.split("\n")[0] : "parts"}`.replace(/agent:\S+|task-\S+/g, "…");
  });
}

const byTool = (interrupts) => interrupts.toSorted((one, other) => one.message.localeCompare(other.message));
const contents = (agent) => agent.messages.map((one) => `${one.id} ${line(one.content ?? one.toolCalls)}`).sort();
const fleet = (agent) => Object.values(agent.state.fleet.agents).map((one) => `${one.name} ${one.phase} ${one.outcome ?? ""}`);
const outcome = (agent) => of(agent, "RUN_FINISHED").map((event) => event.outcome);

const scenarios = {
  async children() {
    const agent = client(HttpAgent, "t-children");
    agent.setState({ theirs: { kept: true } });
    say(agent, "go");
    await agent.runAgent({ runId: "r1" });
    print(subagents(agent).sort());
    print(texts(agent).sort());
    print({ outcome: outcome(agent), theirs: agent.state.theirs, fleet: fleet(agent) });
    // Everything of a child is marked as the child's.
    const attributable = agent.seen.filter((event) => event.metadata?.mainstem?.source && event.type !== "SUBAGENT_STARTED");
    print({ unmarked: attributable.filter((event) => !event.subagentRunId).length, marked: attributable.length > 20 });
    // The same ids again: the run is not begun again, and the client has each message once.
    const before = contents(agent);
    await agent.runAgent({ runId: "r1" });
    const after = contents(agent);
    print({ isSame: before.join() === after.join() });
  },

  async old() {
    const agent = client(OldAgent, "t-old");
    say(agent, "go");
    await agent.runAgent({ runId: "r1" });
    print(texts(agent).sort());
    const types = new Set(agent.seen.map((event) => event.type));
    print({ subagents: [...types].filter((type) => type.startsWith("SUBAGENT")), outcome: outcome(agent), fleet: fleet(agent) });
    print({ tagged: agent.seen.filter((event) => "subagentRunId" in event).length });
    const hidden = client(HttpAgent, "t-hidden", "?children=hide");
    say(hidden, "go");
    await hidden.runAgent();
    print(texts(hidden));
  },

  async approval() {
    const agent = client(HttpAgent, "t-approval");
    say(agent, "go");
    await agent.runAgent({ runId: "r1" });
    print(byTool(agent.pendingInterrupts).map(({ reason, message, toolCallId, subagentRunId, responseSchema }) => ({
      reason, message,
      call: agent.messages.some((one) => one.toolCalls?.some((call) => call.id === toolCallId)),
      subagent: of(agent, "SUBAGENT_STARTED").find((start) => start.subagentRunId === subagentRunId)?.name,
      answer: responseSchema.required,
    })));
    print(subagents(agent).sort());
    print({ suspended: of(agent, "SUBAGENT_FINISHED").map((event) => event.outcome.interruptIds?.length) });
    const [first, second] = byTool(agent.pendingInterrupts);
    // A request of another thread, which has no such question, and one that lacks the answer.
    const other = client(HttpAgent, "t-other");
    print(await failure(other.runAgent({ resume: [{ interruptId: first.id, status: "cancelled" }] })));
    const foreign = client(HttpAgent, "t-foreign");
    say(foreign, "go");
    await foreign.runAgent();
    foreign.pendingInterrupts = [];
    print((await failure(foreign.runAgent({ resume: [{ interruptId: first.id, status: "cancelled" }] }))).slice(0, 8));
    const incomplete = [{ interruptId: first.id, status: "resolved" }, { interruptId: second.id, status: "cancelled" }];
    print((await failure(agent.runAgent({ resume: incomplete }))).slice(0, 8));
    // A frontend that lost the questions reads them again; the run is where it was.
    const reloaded = client(HttpAgent, "t-approval");
    await reloaded.runAgent();
    print({ again: reloaded.pendingInterrupts.length === 2 });
    const resume = buildResumeArray(agent.pendingInterrupts, {
      [first.id]: { status: "resolved", payload: { approved: true, editedArgs: { at: "edited" } } },
      [second.id]: { status: "resolved", payload: { approved: false, reason: "not that" } },
    });
    agent.seen.length = 0;
    await agent.runAgent({ runId: "r2", resume });
    print({ outcome: outcome(agent), pending: agent.pendingInterrupts.length });
    print(subagents(agent).sort());
    print(texts(agent).sort());
    // Repeated, it changes nothing.
    const repeated = client(HttpAgent, "t-approval");
    await repeated.runAgent({ runId: "r2", resume });
    print({ repeated: outcome(repeated) });
  },

  async tool() {
    const tools = [{ name: "locate", description: "Where the user is", parameters: { type: "object", properties: { exact: { type: "boolean" } } } }];
    const agent = client(HttpAgent, "t-tool");
    say(agent, "where am I?");
    await agent.runAgent({ runId: "r1", tools });
    const [pending] = outcome(agent)[0].pendingToolCallIds;
    const call = agent.messages.flatMap((one) => one.toolCalls ?? []).find((call) => call.id === pending);
    print({ outcome: outcome(agent)[0].type, call: call.function });
    agent.addMessage({ id: "result-1", role: "tool", toolCallId: pending, content: "in Paris" });
    await agent.runAgent({ runId: "r2", tools });
    print(texts(agent));
    print({ results: agent.messages.filter((one) => one.role === "tool").length, outcome: outcome(agent)[1] });
    // A tool that the agent has already, and a result that nothing waits for.
    const taken = client(HttpAgent, "t-taken");
    say(taken, "go");
    await taken.runAgent({ tools: [{ name: "poke", description: "" }] });
    print(of(taken, "RUN_ERROR").map(({ code, message }) => ({ code, message })));
    print((await failure(taken.runAgent({ tools: [{ name: "a", description: "" }, { name: "a", description: "" }] }))).slice(0, 8));
    agent.addMessage({ id: "result-2", role: "tool", toolCallId: "unknown", content: "?" });
    agent.messages = agent.messages.filter((one) => one.id !== "result-1");
    print((await failure(agent.runAgent())).slice(0, 8));
  },

  async abort() {
    const agent = client(HttpAgent, "t-abort");
    agent.subscribe({ onTextMessageContentEvent: () => agent.abortRun() });
    say(agent, "go");
    await agent.runAgent({ runId: "r1" });
    print({ texts: texts(agent), ended: outcome(agent).length });
  },

  async reconnect() {
    const agent = client(HttpAgent, "t-reconnect", "?on_disconnect=continue");
    const { unsubscribe } = agent.subscribe({ onTextMessageContentEvent: () => agent.abortRun() });
    say(agent, "go");
    await agent.runAgent({ runId: "r1" });
    unsubscribe();
    print(texts(agent));
    await agent.runAgent({ runId: "r1" });
    print(texts(agent));
    print(outcome(agent));
  },

  async history() {
    const agent = client(HttpAgent, "a thread / with any name ✓");
    agent.setMessages([
      { id: "s", role: "system", content: "Be brief." },
      { id: "u1", role: "user", content: "I am Ada." },
      { id: "a1", role: "assistant", content: "Hello Ada." },
      { id: "u2", role: "user", content: [{ type: "text", text: "Who am I?" }] },
    ]);
    await agent.runAgent({ context: [{ description: "page", value: "settings" }] });
    say(agent, "And now?");
    await agent.runAgent();
    print(texts(agent));
  },

  /** Raw events of files of lines, by the official schemas and verifier. */
  async verify() {
    const { verifyEvents } = await import("@ag-ui/client");
    const { from, lastValueFrom } = await import("rxjs");
    const { toArray } = await import("rxjs/operators");
    const { readFileSync } = await import("node:fs");
    const streams = JSON.parse(readFileSync(process.env.AGUI_STREAMS, "utf8"));
    let count = 0;
    for (const [place, stream] of streams.entries()) {
      const events = stream.map((event) => EventSchema.parse(event));
      await lastValueFrom(verifyEvents()(from(events)).pipe(toArray())).catch((error) => {
        throw new Error(`stream ${place}: ${error.message}\n${stream.map((one) => JSON.stringify(one)).join("\n")}`);
      });
      count += events.length;
    }
    RunAgentInputSchema.parse({ threadId: "t", runId: "r", messages: [] });
    print({ streams: streams.length, isMany: count > 1000 });
  },
};

await scenarios[scenario]();
const unexpected = complaints.filter((one) => !one.includes("Agent execution failed"));
if (unexpected.length) print({ complaints: unexpected });
