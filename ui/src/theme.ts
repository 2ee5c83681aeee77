// Light or dark: as the system has it, or as somebody chose.

import { kept, store } from "./store";

export const theme = kept("theme", "auto");

function apply(): void {
  const chosen = theme.get();
  if (chosen === "auto") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = chosen;
}

theme.watch(apply);
apply();

const dark = matchMedia("(prefers-color-scheme: dark)");

/** Changes whenever the colours on the page do: a canvas has to be drawn anew then. */
export const colours = store("");
const renew = () => colours.set(`${theme.get()} ${dark.matches}`);
theme.watch(renew);
dark.addEventListener("change", renew);
renew();
