// The scrubber over the record: moves the whole page to an event, plays from there, and goes back
// to live.
import { useEffect, useState } from "preact/hooks";
import { SLOW, useDesk, useShown } from "../desk";
import { timeOf } from "../fleet/event";
import type { Session } from "../session";
import { Excerpt, SaveButtons } from "./save";
import { visible } from "./text";

const SPEEDS = [0.5, 1, 4, 16];

/** A longer pause of the record is shortened to this, in milliseconds. */
const LONGEST = 2000;

export function Replay() {
  const { session, selected, go, isPage, notices } = useDesk();
  const isRecord = useShown(({ connection }) => connection === "record");
  const replay = useShown((shown) => shown.replay);
  const first = useShown((shown) => shown.first);
  const last = useShown((shown) => shown.last, SLOW);
  const at = useShown(({ view }) => view.fleet.at, SLOW);
  const seeking = useShown((shown) => shown.seeking);
  const [speed, setSpeed] = useState(1);
  const [isCutting, setCutting] = useState(false);
  const [isPlaying, setPlaying] = useState(false);
  usePlaying(session, isPlaying, speed, () => setPlaying(false));
  const seq = replay ?? last;
  const play = () => {
    if (!isPlaying && seq >= last) session.seek(first);
    setPlaying(!isPlaying);
  };
  const live = () => {
    setPlaying(false);
    session.seek();
  };
  const share = () => {
    go({ agent: selected, seq });
    void navigator.clipboard?.writeText(location.href).catch(() => undefined);
    notices.set({ notice: { text: "The address now names this moment.", isError: false } });
  };
  return (
    <section class="replay" aria-label="replay">
      {isCutting && <Excerpt seq={seq} />}
      <button type="button" onClick={play} aria-label={isPlaying ? "pause the replay" : "play the record"} disabled={last <= first}>{isPlaying ? "‖" : "▶"}</button>
      <label><span class="hidden">Speed</span><select value={speed} onChange={(event) => setSpeed(Number(event.currentTarget.value))}>
        {SPEEDS.map((value) => <option key={value} value={value}>{value}×</option>)}
      </select></label>
      <input class="grow" type="range" aria-label="event" min={first} max={last} value={seq} disabled={last <= first}
        aria-valuetext={`event ${seq} of ${last}`} onInput={(event) => { setPlaying(false); session.seek(Number(event.currentTarget.value)); }} />
      <output>{seq} of {last}{seeking ? <span class="muted"> · {visible(seeking)}</span> : at > "2" && <span class="muted time"> · {new Date(at).toLocaleTimeString()}</span>}</output>
      {isPage && <button type="button" onClick={share} disabled={last <= first}>Link</button>}
      <SaveButtons disabled={last <= first} />
      <button type="button" aria-expanded={isCutting} onClick={() => setCutting(!isCutting)} disabled={last <= first}>Excerpt</button>
      {!isRecord && <button type="button" class="main" onClick={live} disabled={replay === undefined}>Back to live</button>}
    </section>
  );
}

/** Moves the view with the times of the record. */
function usePlaying(session: Session, isPlaying: boolean, speed: number, stop: () => void): void {
  useEffect(() => {
    if (!isPlaying) return undefined;
    let [ahead, before, frame] = [0, performance.now(), 0];
    let seq = session.shown.value.replay ?? session.shown.value.first;
    const draw = (now: number) => {
      ahead += (now - before) * speed;
      before = now;
      for (let next = session.eventAfter(seq); next; next = session.eventAfter(seq)) {
        const pause = Math.min(LONGEST, timeOf(next) - Date.parse(session.shown.value.view.fleet.at));
        if (pause > ahead) break;
        ahead -= Math.max(0, pause);
        seq = next.seq;
        session.seek(seq);
      }
      // The rest of the record may still be read.
      if (!session.eventAfter(seq)) ahead = 0;
      if (seq >= session.shown.value.last) stop();
      else frame = requestAnimationFrame(draw);
    };
    frame = requestAnimationFrame(draw);
    return () => cancelAnimationFrame(frame);
  }, [session, isPlaying, speed]);
}
