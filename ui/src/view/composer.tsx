// Where a person speaks to the selected agent: starts a run, sends a message, cancels, resumes,
// compacts.
import { useEffect, useState } from "preact/hooks";
import type { Agents, ModelView, NewRun, SendMode } from "../api";
import { blocked, useAttempt, useCancelling, useDesk, useShown } from "../desk";
import { ROOT } from "../fleet/event";
import { agentKey } from "../fleet/fleet";
import { isRunning, nameOf, rootOf } from "../fleet/view";
import { base64Of, Problem, type Server } from "../server";
import type { Session } from "../session";
import { Action } from "./action";
import { visible } from "./text";

const path = (session: string) => `sessions/${encodeURIComponent(session)}`;

export function Composer() {
  const { selected } = useDesk();
  const isActive = useShown(({ view }) => isRunning(view));
  return selected === ROOT && !isActive ? <Start /> : <Message />;
}

/** Starts a run of the session. */
function Start() {
  const { session } = useDesk();
  const attempt = useAttempt();
  const [text, setText] = useState("");
  const [asked, setAsked] = useState("");
  const [agent, setAgent] = useState("");
  const [model, setModel] = useState("");
  const [files, setFiles] = useState<readonly File[]>([]);
  const reason = useShown(blocked);
  const agents = useAgents(session.server);
  const others = agents?.items.filter((item) => item.runnable && item.id !== agents.runs) ?? [];
  const models = useModels(session.server);
  const begin = async () => {
    const patterns = asked.split(",").map((pattern) => pattern.trim()).filter(Boolean);
    const start = async () => {
      const run: NewRun = { input: files.length === 0 ? text : await messageOf(session, text, files) };
      if (agent) run.agent = agent;
      if (model) run.model = model;
      if (patterns.length > 0) run.options = { permissions: [{ ask: patterns }] } as unknown as NewRun["options"];
      await session.server.post(`${path(session.id)}/runs`, run);
    };
    if (await attempt(start, "The run begins.")) {
      setText("");
      setFiles([]);
    }
    session.reconnect();
  };
  return (
    <form class="composer" aria-label="start a run" onSubmit={(event) => event.preventDefault()}>
      <Text label="Task" value={text} set={setText} hint="What is to be done?" />
      <div class="row">
        <label>Agent <select value={agent} onChange={(event) => setAgent(event.currentTarget.value)}>
          <option value="">{agents?.runs ?? "default"}</option>
          {others.map((item) => <option key={item.id} value={item.id}>{visible(item.id)}</option>)}
        </select></label>
        {models.length > 0 && (
          <label>Model <select value={model} onChange={(event) => setModel(event.currentTarget.value)}>
            <option value="">default</option>
            {models.map((id) => <option key={id} value={id}>{visible(id)}</option>)}
          </select></label>
        )}
        <label>Ask me before <input value={asked} onInput={(event) => setAsked(event.currentTarget.value)} placeholder="write_*" size={10} /></label>
        <label class="attach">{files.length === 0 ? "Attach" : files.map((file) => visible(file.name)).join(", ")}
          <input type="file" class="hidden" multiple onChange={(event) => setFiles([...(event.currentTarget.files ?? [])])} />
        </label>
        <span class="grow" />
        <Again />
        <Action tone="main" run={begin} reason={reason ?? (text.trim() ? undefined : "write a task first")}>Start the run</Action>
      </div>
    </form>
  );
}

/** How large a file is at least that is sent on its own, and how large smaller ones are together: a message has a limit. */
const [LARGE, TOGETHER] = [48 << 10, 192 << 10];

/** A message with the files behind the text. */
async function messageOf({ id, server }: Session, text: string, files: readonly File[]): Promise<NewRun["input"]> {
  // A server without a journal, or of an earlier version, stores nothing, and takes less.
  const storedOf = (file: File) => server.store(id, file).catch((error: unknown) => {
    if (!(error instanceof Problem && ["no_data", "no_such_path"].includes(error.code))) throw error;
  });
  const sum = files.reduce((all, file) => all + file.size, 0);
  const sourceOf = async (file: File) => {
    const stored = file.size < LARGE && sum < TOGETHER ? undefined : await storedOf(file);
    return stored ? { stored } : { base64: await base64Of(file) };
  };
  const blocks = await Promise.all(files.map(async (file) =>
    ({ type: "data" as const, mediaType: file.type || "application/octet-stream", source: await sourceOf(file) })));
  return { role: "user", content: [{ type: "text", text }, ...blocks] };
}

/** Resumes the last turn, or compacts the conversation. */
function Again() {
  const { session } = useDesk();
  const attempt = useAttempt();
  const reason = useShown(blocked);
  const outcome = useShown(({ view }) => rootOf(view.fleet)?.outcome);
  const isUnfinished = useShown((shown) => shown.session?.state === "unfinished");
  const nothing = outcome === undefined && !isUnfinished ? "nothing has run yet" : undefined;
  const isCut = isUnfinished || (outcome !== undefined && outcome !== "success");
  const begin = async (run: NewRun, done: string) => {
    await attempt(() => session.server.post(`${path(session.id)}/runs`, run), done);
    session.reconnect();
  };
  return (
    <>
      <Action run={() => begin({ compact: true }, "The conversation is being compacted.")} reason={reason ?? nothing}>Compact</Action>
      <Action run={() => begin({ resume: true }, "The last turn is resumed.")} reason={reason ?? nothing ?? (isCut ? undefined : "the last turn is complete")}>Resume</Action>
    </>
  );
}

const MODES: Record<SendMode, string> = {
  queue: "after this turn",
  steer: "before its next model call",
  interrupt: "at once",
};

/** Sends a message to the selected agent, or cancels it. */
function Message() {
  const { session, selected } = useDesk();
  const attempt = useAttempt();
  const agent = useShown(({ view }) => view.fleet.agents.find((one) => agentKey(one) === selected));
  // A view that begins at a snapshot has not seen the start of the run.
  const run = useShown(({ view, session: known }) => view.run?.id ?? known?.active_run ?? undefined);
  const isClosed = useShown(({ view }) => view.closed.includes(selected));
  const reason = useShown(blocked) ?? (isClosed ? "this agent is closed and accepts no messages" : undefined);
  const isOver = agent?.outcome !== undefined;
  const isRoot = selected === ROOT;
  const [text, setText] = useState("");
  const [mode, setMode] = useState<SendMode>("steer");
  // The leading agent takes a queued message as a further run; a child that has ended begins a
  // turn.
  const sent: SendMode = isOver ? "queue" : mode;
  const send = async () => {
    const work = isRoot && sent === "queue"
      ? () => session.server.post(`${path(session.id)}/runs`, { input: text, queue: true } satisfies NewRun)
      : () => session.server.post(`${path(session.id)}/agents/${encodeURIComponent(selected)}/messages`, { content: text, mode: sent });
    if (await attempt(work, "The message is sent.")) setText("");
  };
  const isCancelling = useCancelling(selected);
  const over = isOver ? "it has ended" : isCancelling ? "it is being cancelled" : undefined;
  const cancel = async () => {
    const work = () => session.server.post(isRoot ? `runs/${encodeURIComponent(run!)}/cancel` : `${path(session.id)}/agents/${encodeURIComponent(selected)}/cancel`);
    if (await attempt(work, "It is being cancelled.")) session.markCancelling(selected);
  };
  const name = agent ? visible(nameOf(agent)) : "the agent";
  return (
    <form class="composer" aria-label={`message to ${name}`} onSubmit={(event) => event.preventDefault()}>
      <Text label={`Message to ${name}`} value={text} set={setText} hint={`Tell ${name} something`} />
      <div class="row">
        <label>It reads this <select value={sent} disabled={isOver} onChange={(event) => setMode(event.currentTarget.value as SendMode)}>
          {Object.entries(MODES).map(([value, word]) => <option key={value} value={value}>{isRoot && value === "queue" ? "as a further run" : word}</option>)}
        </select></label>
        <span class="grow" />
        <Action tone="danger" run={cancel} reason={reason ?? over ?? (isRoot && !run ? "the run is not known yet" : undefined)}>{isRoot ? "Cancel the run" : `Cancel ${name}`}</Action>
        <Action tone="main" run={send} reason={reason ?? (text.trim() ? undefined : "write a message first")}>Send</Action>
      </div>
    </form>
  );
}

interface TextProps {
  label: string;
  hint: string;
  value: string;
  set: (text: string) => void;
}

/**
 * Enter presses the main button of the form, which sends once, or says why it can't; Shift with
 * Enter begins a line.
 */
function Text({ label, hint, value, set }: TextProps) {
  const press = (event: KeyboardEvent & { currentTarget: HTMLTextAreaElement }) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    if (value.trim()) event.currentTarget.form!.querySelector<HTMLElement>("button.main")!.click();
  };
  return <textarea aria-label={label} placeholder={hint} rows={2} value={value} onInput={(event) => set(event.currentTarget.value)} onKeyDown={press} />;
}

/** The models that a run can name. */
function useModels(server: Server): readonly string[] {
  const [models, setModels] = useState<readonly string[]>([]);
  useEffect(() => {
    const read = async () => (await server.get<{ items: ModelView[] }>("models")).items.filter((item) => item.selectable).map((item) => item.id);
    void read().then(setModels, () => undefined);
  }, [server]);
  return models;
}

/** The agents that the server has. */
export function useAgents(server: Server): Agents | undefined {
  const [agents, setAgents] = useState<Agents>();
  useEffect(() => {
    void server.get<Agents>("agents").then(setAgents, () => undefined);
  }, [server]);
  return agents;
}
