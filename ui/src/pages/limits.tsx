// Limits of virtual hosts and users.

import { useState } from "preact/hooks";
import { call, enc } from "../api";
import { count } from "../format";
import { Card, Head, Waiting } from "../parts/bits";
import { Choice, Form, Text } from "../parts/form";
import { Rows } from "../parts/listing";
import { attempt } from "../parts/notices";
import { useApi } from "../poll";
import { href } from "../router";
import { isAdministrator } from "../session";

type Kind = "vhost" | "user";

interface Limits {
  vhost?: string;
  user?: string;
  value: Record<string, number>;
}

const NAMES: Record<Kind, [string, string][]> = {
  vhost: [["max-connections", "connections"], ["max-queues", "queues"]],
  user: [["max-connections", "connections"], ["max-channels", "channels"]],
};

const words = (kind: Kind, name: string): string => NAMES[kind].find(([known]) => known === name)?.[1] ?? name;

export function LimitsPage() {
  return (
    <>
      <Head title="Limits" />
      <div class="cards">
        <All kind="vhost" title="Virtual hosts" />
        <All kind="user" title="Users" />
      </div>
    </>
  );
}

function All({ kind, title }: { kind: Kind; title: string }) {
  const answer = useApi<Limits[]>(`/${kind}-limits`);
  const [name, setName] = useState("");
  const rows = (Array.isArray(answer.value) ? answer.value : []).flatMap((limits) => Object.entries(limits.value).map(([limit, value]) => ({ of: limits[kind] ?? "", limit, value })));
  return (
    <Card title={title}>
      {answer.value === undefined ? (
        <Waiting answer={answer} what="limits" />
      ) : rows.length === 0 ? (
        <p class="muted">No limits are set.</p>
      ) : (
        <Rows
          what={`limits of ${title.toLowerCase()}`}
          rows={rows}
          id={(row) => `${row.of} ${row.limit}`}
          columns={[
            { title: kind === "vhost" ? "Virtual host" : "User", cell: (row) => <a href={href(`${kind}s`, row.of)}>{row.of}</a> },
            { title: "Limit", cell: (row) => words(kind, row.limit) },
            { title: "Value", number: true, cell: (row) => limitValue(row.value) },
            { title: "Action", cell: (row) => isAdministrator() && <Lift kind={kind} name={row.of} limit={row.limit} then={answer.reload} /> },
          ]}
        />
      )}
      {isAdministrator() && answer.value && (
        <details class="more">
          <summary>Set a limit</summary>
          <Text label={kind === "vhost" ? "Virtual host" : "User"} value={name} onChange={setName} />
          {name !== "" && <SetLimit kind={kind} name={name} then={answer.reload} />}
        </details>
      )}
    </Card>
  );
}

const limitValue = (value: number): string => (value < 0 ? "none" : count(value));

/** The limits of one virtual host or user. */
export function LimitsOf({ kind, name }: { kind: Kind; name: string }) {
  const answer = useApi<Limits[]>(`/${kind}-limits/${enc(name)}`);
  const found = Array.isArray(answer.value) ? Object.entries(answer.value[0]?.value ?? {}) : undefined;
  return (
    <Card title="Limits">
      {found === undefined ? (
        <Waiting answer={answer} what="limits" />
      ) : found.length === 0 ? (
        <p class="muted">None.</p>
      ) : (
        <ul class="arguments">
          {found.map(([limit, value]) => (
            <li key={limit}>
              {words(kind, limit)}: {limitValue(value)} {isAdministrator() && <Lift kind={kind} name={name} limit={limit} then={answer.reload} />}
            </li>
          ))}
        </ul>
      )}
      {isAdministrator() && found && <SetLimit kind={kind} name={name} then={answer.reload} />}
    </Card>
  );
}

function Lift({ kind, name, limit, then }: { kind: Kind; name: string; limit: string; then(): void }) {
  const lift = async () => {
    await attempt("The limit was removed", () => call("DELETE", `/${kind}-limits/${enc(name)}/${enc(limit)}`));
    then();
  };
  return (
    <button type="button" class="small" onClick={lift}>
      Remove
    </button>
  );
}

function SetLimit({ kind, name, then }: { kind: Kind; name: string; then(): void }) {
  const [limit, setLimit] = useState("max-connections");
  const [value, setValue] = useState("");
  const set = async () => {
    if (!/^-?\d+$/.test(value)) throw new Error("A limit must be a whole number.");
    await call("PUT", `/${kind}-limits/${enc(name)}/${limit}`, { value: Number(value) });
  };
  return (
    <Form label="Set" done="The limit was set" action={set} then={() => (setValue(""), then())}>
      <div class="row">
        <Choice label="Limit" value={limit} options={NAMES[kind].map(([key, words]): [string, string] => [key, words])} onChange={setLimit} />
        <Text label="Maximum" value={value} onChange={setValue} required />
      </div>
    </Form>
  );
}
