// Shares the session: creates links with which it is read without a token of the server, and lists
// and revokes those that have not ended.
import { useCallback, useEffect, useId, useRef, useState } from "preact/hooks";
import type { LinkView, NewLink, NewLinkView } from "../api";
import { SLOW, useAttempt, useDesk, useShown } from "../desk";
import { writeRoute } from "../route";
import type { Session } from "../session";
import { Action } from "./action";
import { moment } from "./words";

const HOUR = 3600;
const DAY = 24 * HOUR;
const DURATIONS: [seconds: number, words: string][] = [[HOUR, "1 hour"], [DAY, "1 day"], [7 * DAY, "7 days"], [30 * DAY, "30 days"]];

const path = (session: Session, id?: string): string =>
  `sessions/${encodeURIComponent(session.id)}/links${id === undefined ? "" : `/${encodeURIComponent(id)}`}`;

/** The address of the session on this page, with the token of a link. */
const addressOf = (session: Session, link: string): string => new URL(writeRoute({ session: session.id, link }), location.href).href;

export function Share({ close }: { close: () => void }) {
  const { session } = useDesk();
  const attempt = useAttempt();
  const name = useId();
  const panel = useRef<HTMLElement>(null);
  const { links, read } = useLinks();
  const [seconds, setSeconds] = useState(7 * DAY);
  const [isFrozen, setFrozen] = useState(false);
  const [created, setCreated] = useState<NewLinkView>();
  const through = useShown(({ replay, last }) => replay ?? last, SLOW);
  const create = () => attempt(async () => {
    const link: NewLink = { expires_in: seconds, ...(isFrozen && { through }) };
    setCreated(await session.server.post<NewLinkView>(path(session), link));
    await read();
  }, "The link is created.");
  const revoke = async ({ id }: LinkView) => {
    const isRevoked = await attempt(async () => {
      await session.server.delete(path(session, id));
      if (id === created?.link.id) setCreated(undefined);
      await read();
    }, "The link is revoked.");
    // The button is no longer there.
    if (isRevoked) panel.current?.focus();
  };
  const press = (event: KeyboardEvent) => event.key === "Escape" && close();
  return (
    <section ref={panel} class="share" aria-label="share this session" tabIndex={-1} onKeyDown={press}>
      <div class="row">
        <h2>Share this session</h2>
        <span class="grow" />
        <button type="button" onClick={close} aria-label="close the panel">✕</button>
      </div>
      <p>Anyone with the link can read this session; they can't change anything.</p>
      <div class="new" role="group" aria-label="new link">
        <label>For <select aria-label="how long the link is valid" value={seconds} onChange={(event) => setSeconds(Number(event.currentTarget.value))}>
          {DURATIONS.map(([value, words]) => <option key={value} value={value}>{words}</option>)}
        </select></label>
        <label><input type="radio" name={name} checked={!isFrozen} onChange={() => setFrozen(false)} /> Live: shows what happens later, too</label>
        <label><input type="radio" name={name} checked={isFrozen} onChange={() => setFrozen(true)} /> As it is now: up to event {through}</label>
        <Action tone="main" run={create}>Create link</Action>
      </div>
      {created && <Address key={created.link.id} value={addressOf(session, created.token)} />}
      {links.length > 0 && <ul aria-label="links of this session">{links.map((link) => <Link key={link.id} link={link} revoke={revoke} />)}</ul>}
    </section>
  );
}

/** The address of a new link. */
function Address({ value }: { value: string }) {
  const { notices } = useDesk();
  const hint = useId();
  const field = useRef<HTMLInputElement>(null);
  const copy = async () => {
    field.current!.select();
    // Only a page with a certificate, or of this computer, may write to the clipboard.
    const isCopied = await navigator.clipboard?.writeText(value).then(() => true, () => false);
    notices.set({ notice: { text: isCopied ? "The address is copied." : "The address is selected; copy it by keyboard.", isError: false } });
  };
  return (
    <div class="row">
      <input ref={field} readOnly aria-label="address of the link" aria-describedby={hint} value={value} onFocus={(event) => event.currentTarget.select()} />
      <Action run={copy}>Copy</Action>
      <span id={hint} class="muted">It is shown only this once.</span>
    </div>
  );
}

function Link({ link, revoke }: { link: LinkView; revoke: (link: LinkView) => Promise<void> }) {
  const shows = link.through ? `up to event ${link.through}` : "live";
  const words = `created ${moment(link.created_at)} · until ${moment(link.expires_at)} · ${shows}`;
  return (
    <li class="row">
      <span class="grow">{words}</span>
      <Action tone="danger" run={() => revoke(link)} label={`Revoke the link ${words}`}>Revoke</Action>
    </li>
  );
}

/** The links of the session that have not ended, and how to read them again. */
function useLinks(): { links: readonly LinkView[]; read: () => Promise<void> } {
  const { session } = useDesk();
  const attempt = useAttempt();
  const [links, setLinks] = useState<readonly LinkView[]>([]);
  const read = useCallback(async () => setLinks((await session.server.get<{ items: LinkView[] }>(path(session))).items), [session]);
  useEffect(() => void attempt(read), [read]);
  return { links, read };
}
