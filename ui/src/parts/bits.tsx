// Small things that many pages show.

import type { ComponentChildren } from "preact";
import type { Answer } from "../poll";
import { NONE, shown } from "../format";
import { href } from "../router";

export function Badge({ children, tone = "", title }: { children: ComponentChildren; tone?: "" | "good" | "warn" | "bad"; title?: string }) {
  return (
    <span class={`badge ${tone}`} title={title}>
      {children}
    </span>
  );
}

const TONES: Record<string, "" | "good" | "warn" | "bad"> = { running: "good", idle: "", flow: "warn", blocking: "warn", blocked: "bad", down: "bad", crashed: "bad", stopped: "bad", minority: "bad" };

/** The state of a queue, channel or connection. */
export function State({ value }: { value: unknown }) {
  if (typeof value !== "string") return <>{NONE}</>;
  return <Badge tone={TONES[value] ?? ""}>{value}</Badge>;
}

/** A heading with what can be done beside it. */
export function Head({ title, kind, children }: { title: string; kind?: string; children?: ComponentChildren }) {
  return (
    <header class="head">
      <h1>
        {kind && <span class="kind">{kind} </span>}
        <span class="name">{title}</span>
      </h1>
      <div class="buttons">{children}</div>
    </header>
  );
}

export function Card({ title, children, aside, wide }: { title: string; children: ComponentChildren; aside?: ComponentChildren; wide?: boolean }) {
  return (
    <section class={wide ? "card wide" : "card"}>
      <header>
        <h2>{title}</h2>
        {aside}
      </header>
      {children}
    </section>
  );
}

/** A figure with its name. */
export function Figure({ label, children, to, tone = "" }: { label: string; children: ComponentChildren; to?: string; tone?: string }) {
  const body = (
    <>
      <b>{children}</b>
      <span>{label}</span>
    </>
  );
  return to ? (
    <a class={`figure ${tone}`} href={to}>
      {body}
    </a>
  ) : (
    <div class={`figure ${tone}`}>{body}</div>
  );
}

/** Facts in two columns; what is undefined is left out. */
export function Facts({ rows }: { rows: [string, ComponentChildren | undefined][] }) {
  return (
    <dl class="facts">
      {rows
        .filter(([, value]) => value !== undefined)
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}

/** A table within a table is written out: what is true by its name alone. */
function words(value: unknown): string {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return shown(value);
  return Object.entries(value)
    .map(([name, inner]) => (inner === true ? name : `${name} ${shown(inner)}`))
    .join(", ");
}

/** A table of arguments. */
export function Arguments({ table }: { table: unknown }) {
  const entries = typeof table === "object" && table !== null ? Object.entries(table) : [];
  if (entries.length === 0) return <span class="muted">none</span>;
  return (
    <ul class="arguments">
      {entries.map(([name, value]) => (
        <li key={name}>
          <code>{name}</code> {words(value)}
        </li>
      ))}
    </ul>
  );
}

/** How many of the last letters stay where a name is too long for its column. */
const END = 10;

/** A link by a name, in one line: of a long one the middle is left out where there is no room, or its end if that says little; its title has all of it. */
export function NameLink({ to, name, endless, end = END }: { to: string; name: string; endless?: boolean; end?: number }) {
  if (name.length <= end + 4) return <a href={to}>{name}</a>;
  if (endless) {
    return (
      <a class="cut" href={to} title={name}>
        {name}
      </a>
    );
  }
  return (
    <a class="long" href={to} title={name} aria-label={name} style={`--end: ${end * 0.54}rem`}>
      <span>{name.slice(0, -end)}</span>
      <span>{name.slice(-end)}</span>
    </a>
  );
}

/** What stands where figures will, or why there are none. */
export function Waiting({ answer, what }: { answer: Answer<unknown>; what: string }) {
  const { error, reload } = answer;
  if (error === null) {
    return (
      <p class="muted" aria-busy="true">
        Loading…
      </p>
    );
  }
  const words: Record<number, string> = {
    401: `You have no permission to see ${what}.`,
    404: `There is no such ${what}, or you have no permission to see it.`,
  };
  return (
    <div class="empty">
      <p>{words[error.status] ?? `${what}: ${error.message}`}</p>
      <button type="button" onClick={reload}>
        Try again
      </button>
    </div>
  );
}

export function Vhost({ name }: { name: string }) {
  return <a href={href("vhosts", name)}>{name}</a>;
}
