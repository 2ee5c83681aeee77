// The virtual host whose objects lists show; empty for all.

import { enc } from "./api";
import { kept } from "./store";

export const vhost = kept("vhost", "");

/** The path of a list in the chosen virtual host. */
export function inVhost(list: string): string {
  const chosen = vhost.get();
  return chosen === "" ? `/${list}` : `/${list}/${enc(chosen)}`;
}
