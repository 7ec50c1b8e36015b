// The lane of one agent: what a person reads of it (texts, tool calls, notes), and how it spent its
// time.
import type { ContentBlock, Failure, Message, Outcome, Rollup, ToolState } from "../api";
import { timeOf, type AgentEvent, type Of } from "./event";

/** The bounds of a lane, so that a page that stays open for days has a bounded size. */
const MOST_PARTS = 400;
const MOST_SPANS = 400;
const MOST_TEXT = 100_000;

interface Base {
  /** Unique within the lane. */
  id: string;
  seq: number;
}

/** A text of the model, or of its thinking. */
export interface TextPart extends Base {
  kind: "text" | "thinking";
  text: string;
  isOpen: boolean;
}

export interface CallPart extends Base {
  kind: "call";
  name: string;
  /** The arguments as the model writes them, then those that are executed. */
  arguments: string;
  result: string;
  data: ContentBlock[];
  state: "writing" | "waiting" | "running" | ToolState;
  /** Its agent was stopped before a person had answered whether it may run. */
  isWithdrawn?: boolean;
  durationMs?: number;
}

export interface DataPart extends Base {
  kind: "data";
  mediaType: string;
  base64: string;
  isOpen: boolean;
}

/** A message to the agent: the input of a person, the task of its parent, or one that was sent to it. */
export interface MessagePart extends Base {
  kind: "message";
  mode: string;
  message: Message;
}

export interface NotePart extends Base {
  kind: "note";
  title: string;
  text: string;
}

export interface EndPart extends Base {
  kind: "end";
  outcome: Outcome;
  error?: Failure;
  durationMs: number;
}

export type Part = TextPart | CallPart | DataPart | MessagePart | NotePart | EndPart;

/** A time in which an agent did one thing; `to` is absent while it does. */
export interface Span {
  kind: "model" | "tool" | "queued";
  id: string;
  name: string;
  from: number;
  to?: number;
}

export type Wait = Of<"RATE_LIMIT_WAIT">;

export interface Lane {
  parts: readonly Part[];
  spans: readonly Span[];
  /** The parent's call that spawned it. */
  callId?: string;
  /** What its invocations used and cost, with their children. */
  rollups: readonly Rollup[];
  /** What its model call waits for, or waited for last. */
  wait?: Wait;
  /** Milliseconds from the start of its first model call to the first word. */
  firstTokenMs?: number;
  /** The longest time between two events while it ran, in milliseconds. */
  longestGapMs: number;
  lastAt: number;
  isRunning: boolean;
}

export const EMPTY: Lane = { parts: [], spans: [], rollups: [], longestGapMs: 0, lastAt: 0, isRunning: false };

export function applyToLane(lane: Lane, event: AgentEvent): Lane {
  const at = timeOf(event);
  const gap = lane.isRunning ? at - lane.lastAt : 0;
  const longestGapMs = Math.max(lane.longestGapMs, gap);
  return { ...lane, longestGapMs, lastAt: at, ...lanePart(lane, event, at) };
}

function lanePart(lane: Lane, event: AgentEvent, at: number): Partial<Lane> {
  switch (event.type) {
    case "AGENT_START":
      return {
        ...added(lane, ...event.input.map((message, n) => messagePart(event.seq, event.source ? "task" : "input", message, n))),
        callId: lane.callId ?? event.source?.parentToolCallId ?? undefined,
        isRunning: true,
      };
    case "AGENT_END":
      return {
        ...added(lane, { kind: "end", id: `end-${event.seq}`, ...pick(event) }),
        rollups: [...lane.rollups, event.usage],
        spans: lane.spans.map((span) => (span.to === undefined ? { ...span, to: at } : span)),
        isRunning: false,
      };
    case "MODEL_CALL_START":
      return opened(lane, { kind: "model", id: `model-${event.seq}`, name: event.modelName, from: at });
    case "MODEL_CALL_END":
      return closed(lane, (span) => span.kind !== "tool", at);
    case "RATE_LIMIT_WAIT":
      return { ...opened(lane, { kind: "queued", id: `queued-${event.seq}`, name: event.limit, from: at }), wait: event };
    case "RATE_LIMIT_PASSED":
      return closed(lane, (span) => span.kind === "queued", at);
    case "USER_CONFIRM_RESULT": {
      const withdrawn = event.confirmResults.filter((result) => result.withdrawn);
      const marked = (after: Lane, id: string) => ({ ...after, ...changed(after, id, (part) => ({ ...part, isWithdrawn: true })) });
      const { parts } = withdrawn.reduce((after, { toolCall }) => marked(after, toolCall.id), lane);
      return { parts };
    }
    case "TOOL_RESULT_START":
      return {
        ...opened(lane, { kind: "tool", id: event.toolCallId, name: event.toolCallName, from: at }),
        ...changed(lane, event.toolCallId, (part) => ({ ...part, state: "running", arguments: json(event.input, part.arguments) })),
      };
    case "TOOL_RESULT_END":
      return {
        ...closed(lane, (span) => span.kind === "tool" && span.id === event.toolCallId, at),
        ...changed(lane, event.toolCallId, (part) => ({ ...part, state: event.state, durationMs: event.durationMs })),
      };
    case "TEXT_BLOCK_START":
      return { ...added(lane, textPart("text", event)), ...firstToken(lane, at) };
    case "THINKING_BLOCK_START":
      return { ...added(lane, textPart("thinking", event)), ...firstToken(lane, at) };
    case "TEXT_BLOCK_DELTA":
    case "THINKING_BLOCK_DELTA":
      return { parts: replaced(lane.parts, event.blockId, (part) => (isText(part) ? { ...part, text: cut(part.text + event.delta) } : part)) };
    case "TEXT_BLOCK_END":
    case "THINKING_BLOCK_END":
      return { parts: replaced(lane.parts, event.blockId, (part) => (isText(part) ? { ...part, text: joined(part.text), isOpen: false } : part)) };
    case "DATA_BLOCK_START":
      return added(lane, { kind: "data", id: event.blockId, seq: event.seq, mediaType: event.mediaType, base64: "", isOpen: true });
    case "DATA_BLOCK_DELTA":
      return { parts: replaced(lane.parts, event.blockId, (part) => (part.kind === "data" ? { ...part, base64: part.base64 + event.delta } : part)) };
    case "DATA_BLOCK_END":
      return { parts: replaced(lane.parts, event.blockId, (part) => (part.kind === "data" ? { ...part, isOpen: false } : part)) };
    case "TOOL_CALL_START":
      return { ...added(lane, callPart(event)), ...firstToken(lane, at) };
    case "TOOL_CALL_DELTA":
      return changed(lane, event.toolCallId, (part) => ({ ...part, arguments: cut(part.arguments + event.delta) }));
    case "TOOL_CALL_END":
      return changed(lane, event.toolCallId, (part) => ({ ...part, state: "waiting" }));
    case "TOOL_RESULT_TEXT_DELTA":
      return changed(lane, event.toolCallId, (part) => ({ ...part, result: cut(part.result + event.delta) }));
    case "TOOL_RESULT_DATA_DELTA":
      return changed(lane, event.toolCallId, (part) => ({ ...part, data: [...part.data, event.data] }));
    case "EXTERNAL_EXECUTION_RESULT":
      return { parts: event.toolResults.reduce<readonly Part[]>(withResult, lane.parts) };
    default:
      return noted(lane, event);
  }
}

/** Events of which a person reads one line. */
function noted(lane: Lane, event: AgentEvent): Partial<Lane> {
  const note = (title: string, text: string) =>
    added(lane, { kind: "note", id: `note-${event.seq}`, seq: event.seq, title, text });
  switch (event.type) {
    case "MODEL_RETRY":
      return takenBack(lane, event, "the model call is repeated", event.error.message);
    case "MODEL_FALLBACK":
      return takenBack(lane, event, `continues with ${event.to}`, event.reason.message);
    case "HINT_BLOCK":
      return note(`hint from ${event.hintSource}`, event.hint);
    case "EXCEED_MAX_ITERS":
      return note("limit of turns reached", `${event.currentIter} of ${event.maxIters}`);
    case "STREAM_FALLBACK":
      return note("output comes in one piece", event.reason);
    case "ALL_TOOLS_DENIED":
      return note("every call was denied", event.deniedToolCalls.map((call) => call.name).join(", "));
    case "STATE_CHECKPOINT":
      return note("conversation compacted", `${event.messages.length} messages remain`);
    case "MESSAGE_SENT":
      return added(lane, messagePart(event.seq, event.mode, event.message, 0));
    case "AGENT_CLOSED":
      return note("closed", "accepts no further messages");
    case "CUSTOM":
      return note(event.name, json(event.value, ""));
    default:
      return {};
  }
}

/** Removes the output of a failed attempt, and adds the reason. */
function takenBack(lane: Lane, event: Of<"MODEL_RETRY" | "MODEL_FALLBACK">, title: string, text: string) {
  const discarded = new Set([...(event.discarded?.blocks ?? []), ...(event.discarded?.toolCalls ?? [])]);
  const parts = lane.parts.filter((part) => !discarded.has(part.id));
  return added({ ...lane, parts }, { kind: "note", id: `note-${event.seq}`, seq: event.seq, title, text });
}

function added(lane: Lane, ...parts: Part[]): { parts: readonly Part[] } {
  return { parts: [...lane.parts, ...parts].slice(-MOST_PARTS) };
}

/** Replaces the latest part with this id. */
function replaced(parts: readonly Part[], id: string, change: (part: Part) => Part): readonly Part[] {
  const place = parts.findLastIndex((part) => part.id === id);
  return place < 0 ? parts : parts.with(place, change(parts[place]!));
}

function changed(lane: Lane, id: string, change: (part: CallPart) => CallPart): { parts: readonly Part[] } {
  return { parts: replaced(lane.parts, id, (part) => (part.kind === "call" ? change(part) : part)) };
}

function withResult(parts: readonly Part[], result: { toolCallId: string; content: ContentBlock[]; state: ToolState }): readonly Part[] {
  return replaced(parts, result.toolCallId, (part) =>
    part.kind === "call" ? { ...part, state: result.state, result: cut(textOf(result.content)) } : part);
}

function opened(lane: Lane, span: Span): Partial<Lane> {
  return { spans: [...lane.spans, span].slice(-MOST_SPANS) };
}

function closed(lane: Lane, isMeant: (span: Span) => boolean, to: number): Partial<Lane> {
  return { spans: lane.spans.map((span) => (span.to === undefined && isMeant(span) ? { ...span, to } : span)) };
}

/** The time to the first word of the first call; later calls do not change it. */
function firstToken(lane: Lane, at: number): Partial<Lane> {
  const call = lane.spans.find((span) => span.kind === "model");
  return lane.firstTokenMs !== undefined || !call ? {} : { firstTokenMs: at - call.from };
}

const isText = (part: Part): part is TextPart => part.kind === "text" || part.kind === "thinking";

const textPart = (kind: TextPart["kind"], event: { blockId: string; seq: number }): TextPart =>
  ({ kind, id: event.blockId, seq: event.seq, text: "", isOpen: true });

const callPart = (event: { toolCallId: string; toolCallName: string; seq: number }): CallPart =>
  ({ kind: "call", id: event.toolCallId, seq: event.seq, name: event.toolCallName, arguments: "", result: "", data: [], state: "writing" });

const messagePart = (seq: number, mode: string, message: Message, n: number): MessagePart =>
  ({ kind: "message", id: `message-${seq}-${n}`, seq, mode, message });

const pick = ({ seq, outcome, error, durationMs }: Of<"AGENT_END">) =>
  ({ seq, outcome, error: error ?? undefined, durationMs });

/** The text of a message's content. */
export const textOf = (content: readonly ContentBlock[]): string =>
  content.map((block) => ("text" in block ? block.text : "")).filter(Boolean).join("\n\n");

/** Cuts the beginning of a text that is too long to be shown. */
const cut = (text: string): string => (text.length > MOST_TEXT ? `…${text.slice(text.length - MOST_TEXT)}` : text);

/**
 * Reads a character of a text, so that the engine joins its fragments, which need ten times its
 * memory.
 */
function joined(text: string): string {
  text.charCodeAt(0);
  return text;
}

const json = (value: unknown, otherwise: string): string => (value == null ? otherwise : JSON.stringify(value, null, 2));
