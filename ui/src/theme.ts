// Light or dark: as the system has it, or as somebody chose.

import { kept } from "./store";

export const theme = kept("theme", "auto");

function apply(): void {
  const chosen = theme.get();
  if (chosen === "auto") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = chosen;
}

theme.watch(apply);
apply();
