// Beside the lanes: what needs a person, background tasks, and the figures of the selected agent.
import { useState } from "preact/hooks";
import type { AgentState, Allowance, ToolCall } from "../api";
import { blocked, SLOW, useAttempt, useCancelling, useDesk, useLink, useShown } from "../desk";
import type { Key } from "../fleet/event";
import { agentKey, totalTokens } from "../fleet/fleet";
import { EMPTY, type Wait } from "../fleet/lane";
import { costOf, nameOf, ownCostOf, placeOf } from "../fleet/view";
import { Action } from "./action";
import { escaped, visible } from "./text";
import { CANCELLING, duration, fillOf, money, StateChip, stateOf, taskState, tokens } from "./words";

const path = (session: string, rest: string) => `sessions/${encodeURIComponent(session)}/${rest}`;

export function NeedsYou() {
  const confirmations = useShown(({ view }) => view.fleet.confirmations);
  const external = useShown(({ view }) => view.external);
  const asking = useShown(({ view }) => view.asking);
  const open = Object.entries(confirmations);
  return (
    <section class="panel" aria-label="needs you">
      <h2>Needs you ({open.length + external.length})</h2>
      {open.map(([id, calls]) => <Approval key={id} id={id} calls={calls} by={asking[id]} />)}
      {external.map(({ key, call }) => <Answer key={call.id} by={key} call={call} />)}
      {open.length + external.length === 0 && <p class="muted">Nothing waits for you.</p>}
    </section>
  );
}

function useName(key: Key | undefined): string {
  return useShown(({ view }) => {
    const agent = view.fleet.agents.find((one) => (key === undefined ? (one.questions ?? 0) > 0 : agentKey(one) === key));
    return agent ? visible(nameOf(agent)) : "an agent";
  });
}

/** Asks whether calls may run; the arguments of a single one can be changed. */
function Approval({ id, calls, by }: { id: string; calls: readonly ToolCall[]; by: Key | undefined }) {
  const { session } = useDesk();
  const attempt = useAttempt();
  const name = useName(by);
  const reason = useShown(blocked);
  const only = calls.length === 1 ? calls[0]! : undefined;
  const [edited, setEdited] = useState(pretty(only?.arguments ?? ""));
  const [why, setWhy] = useState("");
  const changed = only && edited !== pretty(only.arguments);
  const broken = changed && parsed(edited) === undefined ? "the arguments are not JSON" : undefined;
  const answer = (body: unknown, done: string) => attempt(() => session.server.post(path(session.id, `confirmations/${encodeURIComponent(id)}`), body), done);
  const allow = () => answer(changed ? { decision: "allow", arguments: parsed(edited) } : { decision: "allow" }, "Allowed.");
  const deny = () => answer(why ? { decision: "deny", reason: why } : { decision: "deny" }, "Denied.");
  return (
    <article class="ask" aria-label={`approval for ${name}`}>
      <p><b>{name}</b> asks to run <b>{calls.map((call) => visible(call.name)).join(", ")}</b></p>
      {only
        ? <textarea aria-label="arguments" class="mono" rows={Math.min(8, edited.split("\n").length)} value={edited} onInput={(event) => setEdited(event.currentTarget.value)} />
        : calls.map((call) => <pre key={call.id} class="plain">{visible(pretty(call.arguments))}</pre>)}
      <div class="row">
        <Action tone="main" run={allow} reason={reason ?? broken}>{changed ? "Allow as changed" : "Allow"}</Action>
        <Action tone="danger" run={deny} reason={reason}>Deny</Action>
        <input class="grow" aria-label="reason for the agent" placeholder="reason" value={why} onInput={(event) => setWhy(event.currentTarget.value)} />
      </div>
    </article>
  );
}

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
};

const pretty = (text: string): string => {
  const value = parsed(text);
  // Escapes are JSON, too: so nothing in the arguments can hide, and they can be edited.
  return value === undefined ? visible(text) : escaped(JSON.stringify(value, null, 2));
};

/** A call that the caller runs: its result is typed here. */
function Answer({ by, call }: { by: Key; call: ToolCall }) {
  const { session } = useDesk();
  const attempt = useAttempt();
  const name = useName(by);
  const reason = useShown(blocked);
  const [text, setText] = useState("");
  const submit = (isError: boolean) =>
    attempt(() => session.server.post(path(session.id, `calls/${encodeURIComponent(call.id)}/result`), { content: text, is_error: isError }), "The result is sent.");
  const empty = text ? undefined : "write the result first";
  return (
    <article class="ask" aria-label={`result for ${name}`}>
      <p><b>{name}</b> waits for the result of <b>{visible(call.name)}</b></p>
      <pre class="plain">{visible(pretty(call.arguments))}</pre>
      <textarea aria-label="result" rows={2} value={text} onInput={(event) => setText(event.currentTarget.value)} />
      <div class="row">
        <Action tone="main" run={() => submit(false)} reason={reason ?? empty}>Send the result</Action>
        <Action run={() => submit(true)} reason={reason ?? empty}>It failed</Action>
      </div>
    </article>
  );
}

export function Background() {
  const tasks = useShown(({ view }) => view.fleet.tasks);
  const agents = useShown(({ view }) => view.fleet.agents, SLOW);
  const ids = Object.keys(tasks);
  return (
    <section class="panel" aria-label="background">
      <h2>Background ({ids.length})</h2>
      {ids.map((id) => <Task key={id} id={id} agent={agents.find((agent) => agent.source?.taskId === id)} />)}
      {ids.length === 0 && <p class="muted">No task.</p>}
    </section>
  );
}

function Task({ id, agent }: { id: string; agent: AgentState | undefined }) {
  const { session, select } = useDesk();
  const attempt = useAttempt();
  const link = useLink();
  const status = useShown(({ view }) => view.fleet.tasks[id]!);
  const isOver = status === "completed" || status === "failed" || status === "cancelled";
  // A task that has not begun has no agent.
  const key = agent ? agentKey(agent) : id;
  const isCancelling = useCancelling(key) && !isOver;
  const reason = useShown(blocked) ?? (isOver ? "it has ended" : isCancelling ? "it is being cancelled" : undefined);
  const name = agent ? visible(nameOf(agent)) : visible(id);
  const cancel = async () => {
    if (await attempt(() => session.server.post(`tasks/${encodeURIComponent(id)}/cancel`), "The task is being cancelled.")) session.markCancelling(key);
  };
  return (
    <article class="task-row" aria-label={`task of ${name}`}>
      <StateChip state={isCancelling ? CANCELLING : taskState(status)} />
      <button type="button" class="name" onClick={() => agent && select(agentKey(agent))}>{name}</button>
      {!link && <Action run={cancel} reason={reason} label={`Cancel the task of ${name}`}>Cancel</Action>}
    </article>
  );
}

const LIMITS = [["requests", "requests"], ["tokens", "tokens"], ["inputTokens", "input tokens"], ["outputTokens", "output tokens"]] as const;

const leftOf = ({ remaining, limit }: Allowance): string => `${remaining}${limit == null ? "" : ` of ${limit}`} left`;

/** What holds back a model call, how many wait before it, and when the first of them is sent. */
function waitOf({ limit, ahead, waitMs, refusal }: Wait): string {
  const what = limit === "refusal" ? "the service" : limit.replace("_", " ");
  const calls = ahead > 0 && `${ahead} ${ahead === 1 ? "call" : "calls"} ahead`;
  return [what, calls, waitMs != null && `next in ${duration(waitMs)}`, refusal?.message].filter(Boolean).join(" · ");
}

export function Details() {
  const { selected } = useDesk();
  const place = useShown(({ view }) => placeOf(view.fleet, selected));
  const agent = useShown(({ view }) => view.fleet.agents[place], SLOW);
  const lane = useShown(({ view }) => view.lanes[place], SLOW) ?? EMPTY;
  const rateLimits = useShown(({ view }) => view.fleet.rateLimits);
  const isCancelling = useCancelling(selected);
  if (!agent) return null;
  const [own, cost] = [ownCostOf(lane), costOf(lane)];
  const limits = agent.model ? rateLimits?.[agent.model] : undefined;
  const inclusive = lane.rollups.reduce((sum, rollup) => sum + totalTokens(rollup.inclusive), 0);
  const figures: [string, string | undefined][] = [
    ["State", (isCancelling ? CANCELLING : stateOf(agent)).word],
    ["Model", agent.model ?? undefined],
    ["Model calls", String(agent.iterations)],
    ["Tokens", tokens(totalTokens(agent.usage))],
    ["With children", inclusive > 0 ? tokens(inclusive) : undefined],
    ["Cost", own === undefined ? undefined : money(own)],
    ["Cost with children", cost === undefined ? undefined : money(cost)],
    ["Context", agent.context ? `${agent.context.used} of ${agent.context.window} (${fillOf(agent.context)} %)` : undefined],
    ["First word after", lane.firstTokenMs === undefined ? undefined : duration(lane.firstTokenMs)],
    ["Longest silence", lane.longestGapMs > 0 ? duration(lane.longestGapMs) : undefined],
    ["Waits for", agent.phase === "rate_limited" && lane.wait ? waitOf(lane.wait) : undefined],
    ...LIMITS.map(([field, word]): [string, string | undefined] => [`Limit of ${word}`, limits?.[field] ? leftOf(limits[field]) : undefined]),
  ];
  return (
    <section class="panel" aria-label="figures">
      <h2>{visible(nameOf(agent))}</h2>
      <dl>{figures.filter(([, value]) => value).map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{visible(value!)}</dd></div>)}</dl>
    </section>
  );
}
