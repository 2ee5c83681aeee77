// Texts that are typed into a filter: the address follows them once the typing has paused.

import { useEffect, useLayoutEffect, useState } from "preact/hooks";
import { place, show } from "./router";

/**
 * The text of a field that stands in the address under `name`, and what to call when something is typed. The address takes it after
 * `pause` milliseconds without another letter, and `also` with it; it leaves no trail. What the address says otherwise, the field says at once.
 */
export function useTyped(name: string, also: Record<string, string | null> = {}, pause = 250): [string, (text: string) => void] {
  const given = place.use().query.get(name) ?? "";
  const [text, setText] = useState(given);
  // Before anything is drawn, so that no letter is typed into what is about to be replaced.
  useLayoutEffect(() => setText(given), [given]);
  useEffect(() => {
    if (text === given) return;
    const timer = setTimeout(() => show({ [name]: text, ...also }, true), pause);
    return () => clearTimeout(timer);
  }, [text]);
  return [text, setText];
}
