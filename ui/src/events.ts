// Server-sent events. They are read by hand, because the browser's own way cannot say who is logged in.

import { ApiError, refused, stillIn } from "./api";
import { session } from "./session";

interface Listener {
  /** The broker has begun to tell. */
  begun(): void;
  /** An event's kind and its one line of JSON. */
  take(kind: string, line: string): void;
}

/** Listens until the broker ends it, `stop` does, or nothing was heard for `patience` milliseconds.
 * @throws ApiError in the broker's words, if it refuses. */
export async function listen(path: string, patience: number, stop: AbortController, listener: Listener): Promise<void> {
  const authorization = session.get()?.authorization ?? "";
  let silent: ReturnType<typeof setTimeout> | undefined;
  const alive = () => {
    clearTimeout(silent);
    silent = setTimeout(() => stop.abort(), patience);
  };
  try {
    alive();
    const response = await fetch(`api${path}`, { headers: { authorization }, credentials: "omit", cache: "no-store", signal: stop.signal }).catch(() => {
      throw new ApiError(0, "The broker does not answer.");
    });
    if (!response.ok || !response.body) {
      if (response.status === 401) await stillIn();
      throw refused(response.status, await response.json().catch(() => undefined), response.statusText);
    }
    listener.begun();
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done || stop.signal.aborted) return;
      alive();
      const events = (text + value).split("\n\n");
      text = events.pop() ?? "";
      for (const event of events) {
        const [kind = "", line = ""] = event.split("\ndata: ");
        listener.take(kind.replace("event: ", ""), line);
      }
    }
  } finally {
    clearTimeout(silent);
  }
}
