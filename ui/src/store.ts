// A value that several parts of the page look at.

import { useLayoutEffect, useState } from "preact/hooks";

export interface Store<T> {
  get(): T;
  set(value: T): void;
  /** The value, and a new rendering whenever it changes. */
  use(): T;
  watch(listener: () => void): () => void;
}

export function store<T>(initial: T): Store<T> {
  let value = initial;
  const listeners = new Set<() => void>();
  const watch = (listener: () => void) => {
    listeners.add(listener);
    return () => void listeners.delete(listener);
  };
  return {
    get: () => value,
    set(next) {
      if (Object.is(next, value)) return;
      value = next;
      for (const listener of [...listeners]) listener();
    },
    watch,
    use() {
      const [, renew] = useState({});
      const seen = value;
      useLayoutEffect(() => {
        // It may have changed between the rendering and now.
        if (!Object.is(seen, value)) renew({});
        return watch(() => renew({}));
      }, []);
      return value;
    },
  };
}

/** A choice that outlives the page. A browser that keeps nothing (private windows) is no reason to fail. */
export function kept(name: string, initial: string): Store<string> {
  let found: string | null = null;
  try {
    found = localStorage.getItem(`leveret.${name}`);
  } catch {
    found = null;
  }
  const choice = store(found ?? initial);
  choice.watch(() => {
    try {
      localStorage.setItem(`leveret.${name}`, choice.get());
    } catch {
      return;
    }
  });
  return choice;
}
