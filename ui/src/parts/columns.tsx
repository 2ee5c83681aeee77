// Which columns a list has: as many as the window has room for, or those that somebody chose, kept in the browser.

import { useMemo } from "preact/hooks";
import { kept, type Store } from "../store";
import type { Column } from "./listing";

export interface Chosen<T> {
  columns: Column<T>[];
  /** Titles, or nothing while nobody has chosen. */
  titles: string[] | null;
  choose(titles: string[] | null): void;
}

const stores = new Map<string, Store<string>>();

function storeOf(what: string): Store<string> {
  const found = stores.get(what) ?? kept(`columns.${what}`, "");
  stores.set(what, found);
  return found;
}

export function useColumns<T>(what: string, all: Column<T>[]): Chosen<T> {
  const store = useMemo(() => storeOf(what), [what]);
  const titles = read(store.use());
  const choose = (next: string[] | null) => store.set(next === null ? "" : JSON.stringify(next));
  if (titles === null) return { columns: all.filter(({ from }) => from !== 5), titles, choose };
  // The first one says which row it is. What is chosen is shown, however narrow the window.
  const columns = all.filter(({ title }, at) => at === 0 || titles.includes(title)).map((column) => ({ ...column, from: undefined }) as Column<T>);
  return { columns, titles, choose };
}

function read(text: string): string[] | null {
  try {
    const found: unknown = text === "" ? null : JSON.parse(text);
    return Array.isArray(found) ? found.filter((title) => typeof title === "string") : null;
  } catch {
    return null;
  }
}

export function ColumnChoice<T>({ columns, chosen }: { columns: Column<T>[]; chosen: Chosen<T> }) {
  const now = chosen.titles ?? visible(columns);
  const turn = (title: string, on: boolean) => chosen.choose(on ? [...now, title] : now.filter((other) => other !== title));
  return (
    <details class="columns">
      <summary>Columns</summary>
      <div>
        {columns.slice(1).map(({ title, hint }) => (
          <label key={title} class="check" title={hint}>
            <input type="checkbox" checked={now.includes(title)} onChange={(event) => turn(title, event.currentTarget.checked)} /> {title}
          </label>
        ))}
        <button type="button" class="small" disabled={chosen.titles === null} onClick={() => chosen.choose(null)}>
          As many as fit
        </button>
      </div>
    </details>
  );
}

/** What the window has room for, as the style sheet has it. */
function visible<T>(columns: Column<T>[]): string[] {
  const room = innerWidth > 1400 ? 4 : innerWidth > 1100 ? 3 : innerWidth > 760 ? 2 : 1;
  return columns.filter(({ from }) => (from ?? 1) <= room).map(({ title }) => title);
}
