// A button that says why it is disabled: it keeps its place in the tab order, so that a keyboard
// gets to the reason.
import type { ComponentChildren } from "preact";
import { useId, useState } from "preact/hooks";
import { useDesk } from "../desk";

interface Props {
  run: () => unknown;
  children: ComponentChildren;
  reason?: string | undefined;
  label?: string;
  tone?: "main" | "danger" | "plain";
}

export function Action({ run, children, reason, label, tone = "plain" }: Props) {
  const id = useId();
  const { notices } = useDesk();
  const [isBusy, setBusy] = useState(false);
  const press = async () => {
    if (reason !== undefined) return notices.set({ notice: { text: reason, isError: true } });
    if (isBusy) return;
    setBusy(true);
    await run();
    setBusy(false);
  };
  return (
    <>
      <button type="button" class={tone} onClick={press} aria-label={label} aria-busy={isBusy}
        aria-disabled={reason !== undefined} aria-describedby={reason === undefined ? undefined : id} title={reason}>
        {children}
      </button>
      {reason !== undefined && <span id={id} class="hidden">{reason}</span>}
    </>
  );
}
