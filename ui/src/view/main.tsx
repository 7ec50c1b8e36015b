// The main part of the page; within another document, which has a main part of its own, a group.
import type { ComponentChildren } from "preact";
import { useDesk } from "../desk";

interface Props {
  class: string;
  children: ComponentChildren;
  "data-tab"?: string;
  "aria-label"?: string;
}

export function Main(props: Props) {
  return useDesk().isPage ? <main {...props} /> : <div role="group" aria-label="fleet" {...props} />;
}
