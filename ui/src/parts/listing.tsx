// A list as the broker pages, sorts and filters it: the page holds the rows that it shows and nothing more. How the list is
// shown stands in the address, so it can be bookmarked, and "back" goes back; which columns it has is kept in the browser.

import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { useApi } from "../poll";
import { place, show } from "../router";
import { useTyped } from "../typed";
import { Waiting } from "./bits";
import { ColumnChoice, useColumns } from "./columns";
import { count } from "../format";

export interface Column<T> {
  title: string;
  /** The member that the broker sorts by; none, if it can't. */
  sort?: string;
  cell(row: T): ComponentChildren;
  number?: boolean;
  /** 2: from tablets on; 3: on wide screens; 4: on very wide ones; 5: only if it is chosen. */
  from?: 2 | 3 | 4 | 5;
  /** What the title means, where it is short. */
  hint?: string;
}

interface Page<T> {
  items: T[];
  page: number;
  page_count: number;
  filtered_count: number;
  total_count: number;
}

interface Props<T> {
  path: string;
  what: string;
  columns: Column<T>[];
  id(row: T): string;
  /** Members that are enough for the columns. */
  members?: string;
  empty?: ComponentChildren;
  /** What is said if the broker has no such list. */
  absent?: ComponentChildren;
  /** Sorted so at first. */
  initial?: { sort: string; reverse: boolean };
}

const SIZES = ["20", "50", "100", "500"];

export function Listing<T>({ path, what, columns, id, members, empty, absent, initial }: Props<T>) {
  const query = place.use().query;
  const sort = query.get("sort") ?? initial?.sort ?? null;
  const reverse = query.has("sort") ? query.get("reverse") === "true" : (initial?.reverse ?? false);
  const asked = new URLSearchParams({ page: query.get("page") ?? "1", page_size: query.get("size") ?? "50" });
  if (sort) asked.set("sort", sort);
  if (sort && reverse) asked.set("sort_reverse", "true");
  const filter = query.get("name") ?? "";
  if (filter) asked.set("name", filter);
  if (query.get("regex") === "true") asked.set("use_regex", "true");
  if (members) asked.set("columns", members);
  const answer = useApi<Page<T> | T[]>(`${path}?${asked}`);
  const chosen = useColumns(what, columns);
  const outOfRange = answer.error?.message.startsWith("Page out of range") ?? false;
  useEffect(() => {
    if (outOfRange) show({ page: null }, true);
  }, [outOfRange]);
  // Lists that the broker never pages come as they are.
  const value = answer.value;
  const page: Page<T> | undefined = Array.isArray(value) ? { items: value, page: 1, page_count: 1, filtered_count: value.length, total_count: value.length } : value;
  return (
    <div class="listing">
      <Filter what={what} regex={query.get("regex") === "true"}>
        <ColumnChoice columns={columns} chosen={chosen} />
      </Filter>
      {page === undefined ? (
        absent && answer.error?.status === 404 ? <div class="empty">{absent}</div> : <Waiting answer={answer} what={what} />
      ) : page.items.length === 0 ? (
        <div class="empty">{filter ? <p>No {what} match this filter.</p> : (empty ?? <p>There are no {what}.</p>)}</div>
      ) : (
        <Rows columns={chosen.columns} rows={page.items} id={id} sort={sort} reverse={reverse} what={what} />
      )}
      {page && page.total_count > 0 && <Pager page={page} />}
    </div>
  );
}

function Filter({ what, regex, children }: { what: string; regex: boolean; children: ComponentChildren }) {
  const [text, setText] = useTyped("name", { page: null });
  return (
    <div class="filter">
      <input type="search" aria-label={`Filter ${what} by name`} placeholder="Filter by name" value={text} onInput={(event) => setText(event.currentTarget.value)} />
      <label class="check">
        <input type="checkbox" checked={regex} onChange={(event) => show({ regex: event.currentTarget.checked ? "true" : null, page: null })} /> regular expression
      </label>
      {children}
    </div>
  );
}

interface RowsProps<T> {
  columns: Column<T>[];
  rows: T[];
  id(row: T): string;
  sort?: string | null;
  reverse?: boolean;
  what: string;
}

/** A table; its heads sort the list in the address if `sort` is given. */
export function Rows<T>({ columns, rows, id, sort, reverse = false, what }: RowsProps<T>) {
  const kind = (column: Column<T>) => [column.number ? "number" : "", column.from ? `from${column.from}` : ""].join(" ");
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={what}>
      <table>
        <thead>
          <tr>
            {columns.map((column) => {
              const sorted = column.sort !== undefined && column.sort === sort;
              const direction = sorted ? (reverse ? "descending" : "ascending") : undefined;
              return (
                <th key={column.title} scope="col" class={kind(column)} aria-sort={direction} title={column.hint}>
                  {column.sort && sort !== undefined ? (
                    <button type="button" class="plain" onClick={() => show(next(column, sorted, reverse))}>
                      {column.title}
                      <span aria-hidden="true">{sorted ? (reverse ? " ↓" : " ↑") : ""}</span>
                    </button>
                  ) : (
                    column.title
                  )}
                </th>
              );
            })}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={id(row)}>
              {columns.map((column) => (
                <td key={column.title} class={kind(column)}>
                  {column.cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Numbers are looked at from the top, names from the beginning. */
function next<T>(column: Column<T>, sorted: boolean, reverse: boolean): Record<string, string | null> {
  const down = sorted ? !reverse : (column.number ?? false);
  return { sort: column.sort ?? null, reverse: down ? "true" : "false", page: null };
}

function Pager<T>({ page }: { page: Page<T> }) {
  const size = place.get().query.get("size") ?? "50";
  const turn = (to: number) => show({ page: to === 1 ? null : String(to) });
  const some = page.filtered_count === page.total_count ? count(page.total_count) : `${count(page.filtered_count)} of ${count(page.total_count)}`;
  return (
    <nav class="pager" aria-label="List navigation">
      <button type="button" disabled={page.page <= 1} onClick={() => turn(page.page - 1)}>
        ‹ Previous
      </button>
      <span>
        Page {count(page.page)} of {count(Math.max(page.page_count, 1))}, {some} in total
      </span>
      <button type="button" disabled={page.page >= page.page_count} onClick={() => turn(page.page + 1)}>
        Next ›
      </button>
      <label>
        Rows{" "}
        <select value={size} onChange={(event) => show({ size: event.currentTarget.value, page: null })}>
          {SIZES.map((value) => (
            <option key={value} value={value} selected={value === size}>
              {value}
            </option>
          ))}
        </select>
      </label>
    </nav>
  );
}
