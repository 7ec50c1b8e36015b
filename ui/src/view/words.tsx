// The words, signs and numbers of the page: states, durations, tokens, money.
import { useEffect, useReducer } from "preact/hooks";
import type { AgentState, ContextFill, Outcome, TaskStatus } from "../api";

export type Tone = "busy" | "good" | "bad" | "ask" | "calm";

export interface State {
  sign: string;
  word: string;
  tone: Tone;
}

const OUTCOMES: Record<Outcome, State> = {
  success: { sign: "✔", word: "done", tone: "good" },
  error: { sign: "✖", word: "failed", tone: "bad" },
  cancelled: { sign: "■", word: "cancelled", tone: "calm" },
  timeout: { sign: "⊗", word: "timed out", tone: "bad" },
  max_iterations: { sign: "◼", word: "limit of turns", tone: "bad" },
  suspended: { sign: "‖", word: "suspended", tone: "ask" },
};

const PHASES: Record<AgentState["phase"], State> = {
  starting: { sign: "◌", word: "starting", tone: "busy" },
  compacting: { sign: "◍", word: "compacting", tone: "busy" },
  rate_limited: { sign: "◷", word: "waits for a rate limit", tone: "calm" },
  waiting: { sign: "◌", word: "waits for the model", tone: "busy" },
  thinking: { sign: "◔", word: "thinking", tone: "busy" },
  speaking: { sign: "◉", word: "writing", tone: "busy" },
  acting: { sign: "◈", word: "runs tools", tone: "busy" },
  asking: { sign: "?", word: "needs you", tone: "ask" },
  ended: { sign: "✔", word: "done", tone: "good" },
};

const TASKS: Record<TaskStatus, State> = {
  pending: { sign: "◌", word: "pending", tone: "calm" },
  running: { sign: "◐", word: "running", tone: "busy" },
  waiting_confirm: { sign: "?", word: "needs you", tone: "ask" },
  completed: OUTCOMES.success,
  failed: OUTCOMES.error,
  cancelled: OUTCOMES.cancelled,
};

/** The state of an agent from the cancel to the end. */
export const CANCELLING: State = { sign: "□", word: "being cancelled", tone: "calm" };

export const stateOf = (agent: AgentState): State => (agent.outcome ? OUTCOMES[agent.outcome] : PHASES[agent.phase]) ?? PHASES.starting;

export const taskState = (status: TaskStatus): State => TASKS[status] ?? TASKS.pending;

export function StateChip({ state }: { state: State }) {
  return <span class={`chip ${state.tone}`}><span class="sign" aria-hidden="true">{state.sign}</span> {state.word}</span>;
}

export function duration(milliseconds: number): string {
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  const seconds = milliseconds / 1000;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  const minutes = Math.floor(seconds / 60);
  return minutes < 60 ? `${minutes} min ${Math.floor(seconds % 60)} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** A date and a time, in the reader's zone and language. */
export const moment = (time: string): string => new Date(time).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });

export const tokens = (count: number): string => (count < 10_000 ? `${count} tok` : `${(count / 1000).toFixed(1)}k tok`);

/** How full the context of a model is, in percent. */
export const fillOf = ({ used, window }: ContextFill): number => Math.round((used * 100) / Math.max(1, window));

/** Money, from millionths of a dollar. */
export const money = (micros: number): string => `$${(micros / 1e6).toFixed(micros < 100_000 ? 4 : 2)}`;

/** The time between two moments; without a second one, until now. */
export function Elapsed({ from, to, until }: { from: string; to: string | undefined; until?: string | undefined }) {
  const end = to ?? until;
  const [, tick] = useReducer((count: number) => count + 1, 0);
  useEffect(() => {
    if (end !== undefined) return undefined;
    const timer = setInterval(() => tick(undefined as never), 1000);
    return () => clearInterval(timer);
  }, [end]);
  return <span class="elapsed">{duration(Math.max(0, (end === undefined ? Date.now() : Date.parse(end)) - Date.parse(from)))}</span>;
}
