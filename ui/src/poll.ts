// Fresh figures: each part of a page that shows something asks for it, and then is told what changes, or asks again and again, while
// somebody looks. A hidden tab asks for nothing. When the broker does not answer, what was last known stays on the page, and the header says how old it is.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { ApiError, get, refused } from "./api";
import { heard, watch } from "./live";
import { kept, store } from "./store";

/** Seconds between two questions; "0" asks once. */
export const interval = kept("interval", "5");

export interface Freshness {
  /** When the last answer came, in milliseconds since 1970; 0 before the first. */
  at: number;
  /** Why there was none to the last question. */
  lost: string | null;
}

export const freshness = store<Freshness>({ at: 0, lost: null });

heard.watch(() => {
  if (heard.get() > 0) freshness.set({ at: heard.get(), lost: null });
});

export interface Answer<T> {
  value: T | undefined;
  error: ApiError | null;
  /** Asks at once. */
  reload(): void;
}

/** Knows the answer at a path. Another page of the same list keeps the rows until the new ones are there. `pace`: seconds between two
 * looks at most, where that is worth more than usual. */
export function useApi<T>(path: string | null, pace = Infinity): Answer<T> {
  const [state, setState] = useState<{ about: string; value: T | undefined; error: ApiError | null }>({ about: "", value: undefined, error: null });
  const every = Math.min(Number(interval.use()), pace) * 1000;
  const about = path?.split("?")[0] ?? "";
  const now = useRef<() => void>(() => undefined);
  useEffect(() => {
    if (path === null) return;
    const stop = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let failures = 0;
    let asking = false;
    let again = false;
    let told = false;
    const ask = async () => {
      clearTimeout(timer);
      if (asking) again = true;
      if (stop.signal.aborted || asking || document.hidden) return;
      asking = true;
      try {
        const value = await get<T>(path, stop.signal);
        failures = 0;
        setState({ about, value, error: null });
        freshness.set({ at: Date.now(), lost: null });
      } catch (error) {
        if (stop.signal.aborted) return;
        const failed = error instanceof ApiError ? error : new ApiError(0, "The page met something it does not know.");
        failures += 1;
        setState((before) => ({ about, value: failed.status === 0 && before.about === about ? before.value : undefined, error: failed }));
        if (failed.status === 0) freshness.set({ at: freshness.get().at, lost: failed.message });
      } finally {
        asking = false;
      }
      if (again) {
        again = false;
        return void ask();
      }
      // A broker that is away is asked again soon, then ever less often, even if the page is not refreshed by itself.
      const wait = freshness.get().lost ? Math.min(1000 * 2 ** (failures - 1), 15000) : every;
      if (told && !freshness.get().lost) return;
      if (wait > 0 && !stop.signal.aborted) timer = setTimeout(ask, wait);
    };
    now.current = ask;
    const wake = () => void (document.hidden || ask());
    document.addEventListener("visibilitychange", wake);
    void ask();
    const unwatch =
      every > 0
        ? watch(path, every / 1000, {
            answer: (status, body) => setState(status < 300 ? { about, value: body as T, error: null } : { about, value: undefined, error: refused(status, body) }),
            covered(yes) {
              clearTimeout(timer);
              told = yes;
              if (!yes) void ask();
            },
          })
        : () => undefined;
    return () => {
      unwatch();
      stop.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", wake);
    };
  }, [path, every]);
  const reload = useCallback(() => now.current(), []);
  return state.about === about ? { value: state.value, error: state.error, reload } : { value: undefined, error: null, reload };
}
