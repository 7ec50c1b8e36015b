// The server's API over `fetch`: JSON answers, problems as errors, and streams of server-sent
// events that continue behind their last event after a cut. `EventSource` sends no token, so it is
// not used.
import { EventSourceParserStream } from "eventsource-parser/stream";
import type { Problem as ProblemBody, StoredData } from "./api";
import type { AgentEvent } from "./fleet/event";
import { recordOf } from "./fleet/excerpt";

/** Why the server refused a request, or why it can't be reached. */
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    detail: string,
  ) {
    super(detail);
  }
}

/** Returns bytes as base64. */
export const base64Of = (bytes: Blob): Promise<string> => new Promise((done, failed) => {
  const reader = new FileReader();
  reader.onload = () => done(String(reader.result).split(",")[1] ?? "");
  reader.onerror = () => failed(reader.error);
  reader.readAsDataURL(bytes);
});

/** One frame of a stream. */
export interface Frame {
  id?: string;
  event?: string;
  data: string;
}

interface Request {
  method?: string;
  accept?: string;
  after?: number;
  body?: unknown;
  bytes?: Blob;
  signal?: AbortSignal | undefined;
}

/** Sends a request of the API, by its path below `v1/`. */
type Send = (path: string, request: Request) => Promise<Response>;

export class Server {
  readonly #send: Send;

  private constructor(
    send: Send,
    /** The tenant as which the operator's token sends requests. */
    readonly tenant?: string,
  ) {
    this.#send = send;
  }

  /** A server at an address; the token is read for each request. */
  static at(base: URL, token: () => string | null, tenant?: string): Server {
    return new Server((path, request) => send(new URL(`v1/${path}`, base), { token: token(), tenant }, request), tenant);
  }

  /** Stands for the server where there is none: every request fails. */
  static readonly NONE = new Server(() => Promise.reject(new Problem(0, "no_server", "this page has no server")));

  get<T>(path: string, signal?: AbortSignal): Promise<T> {
    return this.#json<T>(path, { signal });
  }

  post<T>(path: string, body?: unknown): Promise<T> {
    return this.#json<T>(path, { method: "POST", body });
  }

  /** Stores data of a session's messages, which then refer to it. */
  store(session: string, bytes: Blob): Promise<StoredData> {
    return this.#json(`sessions/${encodeURIComponent(session)}/data`, { method: "POST", bytes });
  }

  /** Reads the data that a message refers to. */
  async data(session: string, { sha256 }: StoredData, signal?: AbortSignal): Promise<Blob> {
    const path = `sessions/${encodeURIComponent(session)}/data/${encodeURIComponent(sha256)}`;
    return (await this.#send(path, { accept: "*/*", signal })).blob();
  }

  async delete(path: string): Promise<void> {
    await this.#send(path, { method: "DELETE" });
  }

  async #json<T>(path: string, request: Request): Promise<T> {
    const text = await (await this.#send(path, request)).text();
    return (text ? JSON.parse(text) : undefined) as T;
  }

  /**
   * Opens the stream of a session's events after one of them; undefined if it is over and has no
   * newer ones.
   */
  async events(session: string, after: number, signal: AbortSignal): Promise<ReadableStream<Frame> | undefined> {
    const response = await this.#send(`sessions/${encodeURIComponent(session)}/events`, { accept: "text/event-stream", after, signal });
    return response.status === 204 ? undefined : framesOf(response);
  }

  /** Opens a stream that has no cursor. */
  async stream(path: string, signal: AbortSignal): Promise<ReadableStream<Frame>> {
    return framesOf(await this.#send(path, { accept: "text/event-stream", signal }));
  }

  /** Reads the events that a session has so far. */
  async record(session: string, signal: AbortSignal): Promise<AgentEvent[]> {
    const path = `sessions/${encodeURIComponent(session)}/events?follow=false`;
    const response = await this.#send(path, { accept: "application/x-ndjson", signal });
    return recordOf(await response.text());
  }
}

function framesOf({ body }: Response): ReadableStream<Frame> {
  if (!body) throw new Problem(0, "cut", "the stream was cut");
  return body.pipeThrough(new TextDecoderStream() as never).pipeThrough(new EventSourceParserStream());
}

/** Who sends a request. */
interface Caller {
  token: string | null;
  tenant: string | undefined;
}

async function send(url: URL, { token, tenant }: Caller, { method = "GET", accept = "application/json", after = 0, body, bytes, signal }: Request): Promise<Response> {
  const headers: Record<string, string> = { accept };
  if (after > 0) headers["last-event-id"] = String(after);
  if (token) headers.authorization = `Bearer ${token}`;
  if (tenant) headers["mainstem-tenant"] = tenant;
  if (body !== undefined) headers["content-type"] = "application/json";
  if (bytes) headers["content-type"] = "application/octet-stream";
  const request: RequestInit = { method, headers, cache: "no-store" };
  if (signal) request.signal = signal;
  if (body !== undefined) request.body = JSON.stringify(body);
  if (bytes) request.body = bytes;
  const response = await fetch(url, request).catch((error: unknown) => {
    throw signal?.aborted ? error : new Problem(0, "unreachable", "the server can't be reached");
  });
  if (!response.ok) throw await problemOf(response);
  return response;
}

async function problemOf(response: Response): Promise<Problem> {
  const body = (await response.json().catch(() => undefined)) as ProblemBody | undefined;
  return new Problem(response.status, body?.code ?? "unknown", body?.detail ?? `the server answered ${response.status}`);
}
