// Tells a screen reader what starts, ends, fails or needs a person, at most once a second; texts
// are not read out.
import { useEffect, useState } from "preact/hooks";
import { useDesk } from "../desk";
import { agentKey } from "../fleet/fleet";
import { nameOf } from "../fleet/view";
import { visible } from "./text";
import { stateOf } from "./words";

const EVERY = 1000;

export function Announcer() {
  const { session } = useDesk();
  const [text, setText] = useState("");
  useEffect(() => {
    const known = new Map<string, string>();
    const look = () => {
      const news = session.shown.value.view.fleet.agents.flatMap((agent) => {
        const state = agent.outcome !== undefined || agent.phase === "asking" ? stateOf(agent).word : "started";
        const isNews = known.get(agentKey(agent)) !== state;
        known.set(agentKey(agent), state);
        return isNews ? [`${visible(nameOf(agent))}: ${state}`] : [];
      });
      if (news.length > 0) setText(news.slice(-3).join(", "));
    };
    const timer = setInterval(look, EVERY);
    return () => clearInterval(timer);
  }, [session]);
  return <p class="hidden" role="status">{text}</p>;
}
