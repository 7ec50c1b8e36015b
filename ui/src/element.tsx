// The package `mainstem-fleet`: an element that shows a session of a server, or a record.
import { render } from "preact";
import { useCallback, useEffect, useMemo, useState } from "preact/hooks";
import type { AgentEvent } from "./fleet/event";
import { LiveSession } from "./live";
import { RecordedSession } from "./record";
import type { Route } from "./route";
import { Server } from "./server";
import type { Session } from "./session";
import { Desk } from "./view/desk";
import css from "./page.css?inline";

const style = new CSSStyleSheet();
style.replaceSync(css);

/**
 * Shows the session `session` of the server at `server`, which by default is at the document's
 * address, with the token `token`; or the events of `record`.
 *
 * Dispatches `unauthorised` when the server requires another token.
 */
export class MainstemFleet extends HTMLElement {
  static readonly observedAttributes = ["session", "server", "token"];
  readonly #root = this.attachShadow({ mode: "open" });
  #drawn = 0;
  #record?: readonly AgentEvent[] | undefined;

  constructor() {
    super();
    this.#root.adoptedStyleSheets = [style];
  }

  /** The events that are shown instead of a server's session. */
  get record(): readonly AgentEvent[] | undefined {
    return this.#record;
  }

  set record(events: readonly AgentEvent[] | undefined) {
    this.#record = events;
    this.#draw();
  }

  connectedCallback(): void {
    this.#draw();
  }

  attributeChangedCallback(_name: string, before: string | null, after: string | null): void {
    if (before !== after) this.#draw();
  }

  disconnectedCallback(): void {
    render(null, this.#root);
  }

  #draw(): void {
    if (!this.isConnected) return;
    const [session, server, token] = MainstemFleet.observedAttributes.map((name) => this.getAttribute(name));
    const source: Source | undefined = this.#record ? { record: this.#record } : session ? { session, server, token } : undefined;
    // Another source is another session, with nothing of the one before.
    const shown = source && <Shown key={++this.#drawn} source={source} onUnauthorised={this.#refused} />;
    render(shown, this.#root);
  }

  #refused = (): void => {
    this.dispatchEvent(new Event("unauthorised"));
  };
}

/** The address of a server ends with a slash, so that paths are below it. */
const baseOf = (server: string | null | undefined): URL => new URL(`${(server ?? ".").replace(/\/$/, "")}/`, document.baseURI);

interface Source {
  record?: readonly AgentEvent[];
  session?: string;
  server?: string | null | undefined;
  token?: string | null | undefined;
}

function opened({ record, session, server, token }: Source): Session {
  return record ? new RecordedSession(record) : new LiveSession(session!, Server.at(baseOf(server), () => token || null));
}

function Shown({ source, onUnauthorised }: { source: Source; onUnauthorised: () => void }) {
  const session = useMemo(() => opened(source), []);
  const [route, setRoute] = useState<Route>({});
  useEffect(() => () => session.close(), [session]);
  const go = useCallback((change: Partial<Route>) => setRoute((before) => ({ ...before, ...change })), []);
  return <Desk session={session} route={route} go={go} onUnauthorised={onUnauthorised} />;
}

customElements.define("mainstem-fleet", MainstemFleet);

declare global {
  interface HTMLElementTagNameMap {
    "mainstem-fleet": MainstemFleet;
  }
}
