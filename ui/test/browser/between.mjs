// What stands between the browser and the server: it cuts streams of events after some bytes, and
// answers for sessions that no server has, such as a hostile or a very large one.
import fs from "node:fs";
import http from "node:http";
import path from "node:path";

/** A stream is cut after at most this many bytes, in the middle of an event most likely. */
const CUT_AFTER = 40_000;

/** What is sent to a run or a task of a played session, whose ids have a number; those of a server have a UUID. */
const OF_PLAYED = /^\/v1\/(runs\/run|tasks\/task)-\d+\/cancel$/;

/** Random numbers below one, by a seed (mulberry32). */
export function random(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export class Between {
  /** How many streams are still to be cut. */
  cuts = 0;
  #random = random(0);
  /** Sessions that are played instead of the server's. */
  sessions = new Map();
  /** The frames of the live stream that is played instead of the server's. */
  live;
  #liveStreams = new Set();
  /** What was sent to them: the path below `/v1/`, decoded, and the body if there is one. */
  posted = [];
  #server = http.createServer((request, response) => this.#answer(request, response));

  /** Stands before the server at `target`; the page comes from the folder `page`, if there is one. */
  constructor(target, page) {
    this.target = target;
    this.page = page;
  }

  /** Cuts the next streams of events, each after a number of bytes that follows from the seed. */
  cut(times, seed) {
    this.cuts = times;
    this.#random = random(seed);
  }

  /** Cuts the streams of a session that is played. */
  drop(id) {
    for (const stream of this.sessions.get(id).streams ?? []) stream.destroy();
  }

  /** Cuts the live streams that are open. */
  dropLive() {
    for (const stream of this.#liveStreams) stream.destroy();
  }

  async listen() {
    await new Promise((done) => this.#server.listen(0, "127.0.0.1", done));
    this.url = `http://127.0.0.1:${this.#server.address().port}/`;
    return this;
  }

  close() {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  #answer(request, response) {
    const [, id, rest] = /^\/v1\/sessions\/([^/?]+)(\/[a-z]+)?/.exec(request.url) ?? [];
    const session = this.sessions.get(id);
    if (session) return this.#play(session, rest, request, response);
    if (OF_PLAYED.test(request.url)) return this.#record({}, request, response);
    if (request.url.startsWith("/v1/live")) {
      this.#liveStreams.add(response);
      response.on("close", () => this.#liveStreams.delete(response));
      if (this.live) return playLive(this.live, response);
    }
    const { hostname, port } = new URL(this.target);
    const upstream = http.request({ hostname, port, path: request.url, method: request.method, headers: request.headers }, (answer) => {
      if (this.page && /^\/(page\/.*)?$/.test(request.url)) return this.#file(request.url, answer, response);
      response.writeHead(answer.statusCode, answer.headers);
      let left = rest === "/events" && this.cuts > 0 ? Math.ceil(this.#random() * CUT_AFTER) : Infinity;
      answer.on("data", (bytes) => {
        // What was read before the cut still arrives.
        if (answer.destroyed) return;
        // Another stream may have had the last cut.
        if (this.cuts === 0) left = Infinity;
        response.write(bytes.subarray(0, left));
        left -= bytes.length;
        if (left > 0) return;
        this.cuts -= 1;
        answer.destroy();
        setTimeout(() => response.destroy(), 10);
      });
      answer.on("end", () => response.end());
      answer.on("error", () => response.destroy());
    });
    upstream.on("error", () => response.destroy());
    response.on("close", () => upstream.destroy());
    request.pipe(upstream);
  }

  /** Answers with a file of the folder, and with the headers of the server. */
  #file(url, { headers }, response) {
    const { "content-type": type, "content-security-policy": policy } = headers;
    response.writeHead(200, { "content-type": type, "content-security-policy": policy });
    response.end(fs.readFileSync(path.join(this.page, url === "/" ? "index.html" : url)));
  }

  /** Records what was sent, and answers as the session says: by default that it was accepted. */
  async #record(session, request, response) {
    const text = Buffer.concat(await request.toArray()).toString();
    const sent = [decodeURIComponent(request.url.replace("/v1/", "")), ...(text ? [JSON.parse(text)] : [])];
    this.posted.push(sent);
    const { status, body = {} } = (await session.answer?.(...sent)) ?? {};
    json(response, body, status);
  }

  /** Answers with a snapshot, or with events: those that are there, then those that come. */
  async #play(session, rest, request, response) {
    if (request.method === "POST") return this.#record(session, request, response);
    if (rest === "/fleet") return json(response, await session.fleet);
    if (rest === "/events" && request.headers.accept === "application/x-ndjson") return response.end(session.record.map((event) => `${JSON.stringify(event)}\n`).join(""));
    if (rest !== "/events") return json(response, { id: "played", state: "running", queued_runs: [], runs: 1, ...session.view });
    const after = Number(request.headers["last-event-id"] ?? 0);
    // A session that is over has no newer events.
    if (session.end !== undefined && after >= session.end) return response.writeHead(204).end();
    (session.streams ??= new Set()).add(response);
    response.on("close", () => session.streams.delete(response));
    response.setMaxListeners(0).writeHead(200, { "content-type": "text/event-stream" });
    // As a server does, before the first event.
    response.flushHeaders();
    for await (const event of session.events(after)) {
      if (response.destroyed) return;
      if (!response.write(`id: ${event.seq}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)) await new Promise((done) => response.once("drain", done).once("close", done));
    }
    response.end();
  }
}

/** Sends the frames of a live stream, which stays open. */
function playLive(frames, response) {
  response.writeHead(200, { "content-type": "text/event-stream" });
  for (const frame of frames) response.write(`event: ${frame.type}\ndata: ${JSON.stringify(frame)}\n\n`);
}

function json(response, value, status = 200) {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(value));
}

const NO_USAGE = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 };

/** Numbers the events of a played session, with the fields that all of them have. */
export class Script {
  seq = 0;

  event(agent, type, fields = {}) {
    this.seq += 1;
    const createdAt = new Date(Date.UTC(2026, 10, 26) + this.seq * 3).toISOString();
    const source = agent === 0 ? {} : { source: sourceOf(agent, fields) };
    return { type, seq: this.seq, sessionId: "played", runId: "run-1", createdAt, replyId: `reply-${agent}`, ...source, ...fields };
  }

  start(agent, text = "go", fields = {}) {
    return this.event(agent, "AGENT_START", { name: agent === 0 ? "main" : `worker ${agent}`, role: "assistant", input: [{ role: "user", content: [{ type: "text", text }] }], ...fields });
  }

  end(agent, outcome = "success", fields = {}) {
    return this.event(agent, "AGENT_END", { outcome, durationMs: 1000, usage: { own: {}, inclusive: {} }, ...fields });
  }
}

/** The source of a child; `of` is its parent, if that is not the leading agent. */
export function sourceOf(agent, { parentToolCallId, label, taskId, of = 0, turn = 1 }) {
  return { agentKey: `agent:worker:${agent}`, agentId: "worker", label, sessionId: `sub-${agent}`, parentSessionId: of === 0 ? "played" : `sub-${of}`, depth: of === 0 ? 1 : 2, path: "played/worker", taskId, turn, streamId: agent, parentToolCallId };
}

/** A snapshot with some agents, at an event. */
export function snapshot(agents, seq) {
  const at = "2026-11-26T10:00:00.000000Z";
  const agent = (number) => ({
    source: number === 0 ? undefined : sourceOf(number, {}), name: number === 0 ? "main" : `worker ${number}`, replyId: `reply-${number}`,
    phase: "speaking", tools: [], lastLine: "a line", usage: NO_USAGE, iterations: 1, startedAt: at,
  });
  const list = Array.from({ length: agents }, (_, number) => agent(number));
  return { seq, at, sessionId: "played", agents: list, tasks: {}, confirmations: {}, usage: NO_USAGE, missed: 0 };
}
