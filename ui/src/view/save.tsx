// Saves the record: as NDJSON, as a document that opens without a server, as a test, or an excerpt
// of it.
import { useId, useState } from "preact/hooks";
import { withData } from "../data";
import { useAttempt, useDesk, useShown } from "../desk";
import { documentOf, sources } from "../document";
import { ROOT, type Key } from "../fleet/event";
import { excerptOf, lacks, linesOf } from "../fleet/excerpt";
import { keysBelow } from "../fleet/filter";
import { nameOf, placeOf } from "../fleet/view";
import { fileName, save } from "../save";
import type { Session } from "../session";
import { notATest, testOf } from "../test";
import { Action } from "./action";
import { visible } from "./text";

const NDJSON = "application/x-ndjson";

/** The events up to the one that is shown. */
function shownEvents(session: Session) {
  const { replay, last } = session.shown.value;
  return session.range(0, replay ?? last);
}

export function SaveButtons({ disabled }: { disabled: boolean }) {
  const { session, isPage } = useDesk();
  const attempt = useAttempt();
  const reason = disabled ? "there are no events" : undefined;
  const saved = async () => withData(session, await shownEvents(session));
  const saveLines = () => attempt(async () => save(fileName(session.id, ".ndjson"), linesOf(await saved()), NDJSON));
  const saveDocument = () => attempt(async () => {
    save(fileName(session.id, ".html"), documentOf(await saved(), await sources()), "text/html");
  }, "The document is saved. It opens without a server.");
  const saveTest = () => attempt(async () => {
    const events = await session.range(0, session.shown.value.last);
    const refusal = notATest(events);
    if (refusal) throw new Error(refusal);
    save(fileName(session.id, ".rs"), testOf(session.id, events), "text/x-rust");
  }, "The test is saved. Put it into the folder tests of a Rust project.");
  return (
    <>
      <Action run={saveLines} reason={reason}>NDJSON</Action>
      {isPage && <Action run={saveDocument} reason={reason}>HTML</Action>}
      <Action run={saveTest} reason={reason}>Test</Action>
    </>
  );
}

/** Chooses a range of events, or the subtree of an agent, and saves it. */
export function Excerpt({ seq }: { seq: number }) {
  const { session, selected } = useDesk();
  const attempt = useAttempt();
  const hint = useId();
  const { first, last } = session.shown.value;
  const [from, setFrom] = useState(first + 1);
  const [to, setTo] = useState(last);
  const [within, setWithin] = useState<Key>();
  const name = useName(within ?? selected);
  const reason = from > to ? "the first event is behind the last one" : undefined;
  const saveExcerpt = () => attempt(async () => {
    const agents = within === undefined ? undefined : keysBelow(session.shown.value.view.fleet, within);
    const events = excerptOf(await session.range(from, to), agents ? { agents } : {});
    if (events.length === 0) throw new Error("there are no such events");
    const range = `${events[0]!.seq}-${events.at(-1)!.seq}`;
    save(fileName(session.id, lacks(events) ? `.excerpt-${range}.ndjson` : `.${range}.ndjson`), linesOf(await withData(session, events)), NDJSON);
  }, "The excerpt is saved.");
  return (
    <div class="row excerpt" role="group" aria-label="excerpt" aria-describedby={hint}>
      <Bound label="From event" value={from} set={setFrom} seq={seq} first={first + 1} last={last} />
      <Bound label="to event" value={to} set={setTo} seq={seq} first={first + 1} last={last} />
      <label>of <select aria-label="agents of the excerpt" value={within ?? ""} onChange={(event) => setWithin(event.currentTarget.value || undefined)}>
        <option value="">all agents</option>
        {(within ?? selected) !== ROOT && <option value={within ?? selected}>{name} and below</option>}
      </select></label>
      <Action tone="main" run={saveExcerpt} reason={reason}>Save the excerpt</Action>
      <span id={hint} class="muted">An excerpt is not a whole record: agents may act in it without having started, and texts and calls may end that have not begun.</span>
    </div>
  );
}

interface BoundProps {
  label: string;
  value: number;
  set: (value: number) => void;
  seq: number;
  first: number;
  last: number;
}

/** One end of the range: typed, or taken from the scrubber. */
const Bound = ({ label, value, set, seq, first, last }: BoundProps) => (
  <>
    <label>{label} <input type="number" min={first} max={last} value={value} onInput={(event) => set(event.currentTarget.valueAsNumber || 0)} /></label>
    <button type="button" aria-label={`${label}: the one shown, ${seq}`} onClick={() => set(seq)}>= {seq}</button>
  </>
);

const useName = (key: Key): string => useShown(({ view }) => {
  const agent = view.fleet.agents[placeOf(view.fleet, key)];
  return agent ? visible(nameOf(agent)) : key;
});
