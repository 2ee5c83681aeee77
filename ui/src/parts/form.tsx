// Fields of forms. Each has a label of its own and, where a word isn't enough, a line that explains.

import type { ComponentChildren } from "preact";
import { useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Shortcut } from "../pages/shortcuts";
import { attempt } from "./notices";

interface FieldProps {
  label: string;
  hint?: ComponentChildren;
  /** The control; it is told the id of the line that explains it. */
  children(explained: string | undefined): ComponentChildren;
}

export function Field({ label, hint, children }: FieldProps) {
  const id = useId();
  return (
    <div class="field">
      <label>
        <span>{label}</span>
        {children(hint ? id : undefined)}
      </label>
      {hint && <small id={id}>{hint}</small>}
    </div>
  );
}

interface TextProps {
  label: string;
  value: string;
  onChange(value: string): void;
  hint?: ComponentChildren;
  type?: "text" | "password";
  required?: boolean;
  placeholder?: string;
  autocomplete?: string;
}

export function Text({ label, value, onChange, hint, type = "text", ...rest }: TextProps) {
  return (
    <Field label={label} hint={hint}>
      {(explained) => <input type={type as "text"} value={value} aria-describedby={explained} onInput={(event) => onChange(event.currentTarget.value)} {...rest} />}
    </Field>
  );
}

export function Area({ label, value, onChange, hint, rows = 4 }: { label: string; value: string; onChange(value: string): void; hint?: ComponentChildren; rows?: number }) {
  return (
    <Field label={label} hint={hint}>
      {(explained) => <textarea rows={rows} value={value} spellcheck={false} aria-describedby={explained} onInput={(event) => onChange(event.currentTarget.value)} />}
    </Field>
  );
}

interface ChoiceProps {
  label: string;
  value: string;
  /** Values, or values and what stands for them. */
  options: (string | [string, string])[];
  onChange(value: string): void;
  hint?: ComponentChildren;
}

export function Choice({ label, value, options, onChange, hint }: ChoiceProps) {
  return (
    <Field label={label} hint={hint}>
      {(explained) => (
        <select value={value} aria-describedby={explained} onChange={(event) => onChange(event.currentTarget.value)}>
          {options.map((option) => {
            const [key, words] = typeof option === "string" ? [option, option] : option;
            return (
              <option key={key} value={key} selected={key === value}>
                {words}
              </option>
            );
          })}
        </select>
      )}
    </Field>
  );
}

export function Check({ label, value, onChange }: { label: string; value: boolean; onChange(value: boolean): void }) {
  return (
    <label class="check">
      <input type="checkbox" checked={value} onChange={(event) => onChange(event.currentTarget.checked)} /> {label}
    </label>
  );
}

interface FormProps {
  /** What the button says. */
  label: string;
  /** What is said when it is done. */
  done: string;
  /** May throw; its message is shown. */
  action(): Promise<unknown>;
  /** After it was done. */
  then?(): void;
  children: ComponentChildren;
  /** For what cannot be taken back. */
  danger?: boolean;
}

export function Form({ label, done, action, then, children, danger }: FormProps) {
  const [busy, setBusy] = useState(false);
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    const fine = await attempt(done, action);
    setBusy(false);
    if (fine) then?.();
  };
  return (
    <form onSubmit={submit}>
      {children}
      <p class="buttons">
        <button type="submit" class={danger ? "danger" : "primary"} disabled={busy}>
          {busy ? "…" : label}
        </button>
      </p>
    </form>
  );
}

/** Names and typed values. Text that reads as JSON (numbers, true, lists) is taken as such; quotes make it text. */
export function readTable(text: string): Record<string, unknown> {
  const table: Record<string, unknown> = {};
  for (const line of text.split("\n")) {
    if (line.trim() === "") continue;
    const found = line.indexOf("=");
    if (found < 1) throw new Error(`"${line.trim()}" has no value: write it as name = value`);
    table[line.slice(0, found).trim()] = typed(line.slice(found + 1).trim());
  }
  return table;
}

function typed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

interface TableProps {
  label: string;
  value: string;
  onChange(value: string): void;
  hint?: ComponentChildren;
  /** Buttons that begin a line. */
  shortcuts?: Shortcut[];
}

export function Table({ label, value, onChange, hint, shortcuts = [] }: TableProps) {
  const place = useRef<HTMLDivElement>(null);
  // What is to be written over next, by its first and last place.
  const [chosen, choose] = useState<[number, number]>();
  // Once the new text is in the page, and before the next key.
  useLayoutEffect(() => {
    const area = place.current?.querySelector("textarea");
    if (chosen === undefined || !area) return;
    area.focus();
    area.setSelectionRange(...chosen);
  }, [chosen]);
  const add = ({ name, example }: Shortcut) => {
    const line = `${name} = ${example}`;
    const there = value.split("\n").find((known) => known.split("=")[0]?.trim() === name);
    const text = there === undefined ? `${value.trimEnd()}${value.trim() === "" ? "" : "\n"}${line}` : value;
    onChange(text);
    const end = text.indexOf(there ?? line) + (there ?? line).length;
    choose([text.lastIndexOf("=", end) + 2, end]);
  };
  return (
    <div ref={place}>
      <Area label={label} value={value} onChange={onChange} rows={Math.max(3, value.split("\n").length)} hint={hint ?? 'One per line, name = value. Numbers, true and false, and JSON keep their type; "5" in quotes is text.'} />
      {shortcuts.length > 0 && (
        <p class="shortcuts" role="group" aria-label="Shortcuts">
          <span class="muted">Add</span>
          {shortcuts.map((one) => (
            <button key={one.name} type="button" class="small" title={one.name} onClick={() => add(one)}>
              {one.label}
            </button>
          ))}
        </p>
      )}
    </div>
  );
}
