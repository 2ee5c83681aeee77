// What the HTTP API can do, as the broker describes it (OpenAPI): for whoever writes a script or wants a client generated.

import { useState } from "preact/hooks";
import { count } from "../format";
import { Badge, Card, Head, Waiting } from "../parts/bits";
import { Rows, type Column } from "../parts/listing";
import { useApi } from "../poll";
import { session } from "../session";

interface Operation {
  summary?: string;
}

interface Description {
  paths?: Record<string, Record<string, Operation>>;
}

interface Line {
  verb: string;
  path: string;
  words: string;
}

const VERBS = ["get", "put", "post", "delete"];

const COLUMNS: Column<Line>[] = [
  { title: "Path", cell: (line) => <code>/api{line.path}</code> },
  { title: "Method", cell: (line) => <Badge tone={line.verb === "GET" ? "good" : line.verb === "DELETE" ? "bad" : "warn"}>{line.verb}</Badge> },
  { title: "Description", cell: (line) => line.words },
];

export function ApiPage() {
  const answer = useApi<Description>("/openapi.json", 0);
  const [text, setText] = useState("");
  const lines = Object.entries(answer.value?.paths ?? {}).flatMap(([path, verbs]) => VERBS.filter((verb) => verbs[verb]).map((verb): Line => ({ verb: verb.toUpperCase(), path, words: verbs[verb]?.summary ?? "" })));
  const wanted = text.trim().toLowerCase();
  const shown = lines.filter((line) => `${line.verb} /api${line.path} ${line.words}`.toLowerCase().includes(wanted));
  const save = () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([JSON.stringify(answer.value, null, 2)], { type: "application/json" }));
    link.download = "openapi.json";
    link.click();
    URL.revokeObjectURL(link.href);
  };
  const base = new URL("api", location.href.split("#")[0]).href;
  return (
    <>
      <Head title="HTTP API">
        <button type="button" disabled={!answer.value} onClick={save}>
          Download openapi.json
        </button>
      </Head>
      <Card title="How to call it">
        <p>It is RabbitMQ's HTTP API, with Leveret's own additions under /leveret. Requests carry a user name and password, or a token; names in paths are percent-encoded. The node serves this list <a href={`${base}/index.html`}>as a plain page</a> too.</p>
        <pre tabIndex={0}>
          <code>{`curl -u ${session.get()?.name ?? "guest"} ${base}/queues/%2F`}</code>
        </pre>
      </Card>
      <Card title="Operations" aside={answer.value && <span class="muted">{wanted === "" ? count(lines.length) : `${count(shown.length)} of ${count(lines.length)}`}</span>}>
        <div class="filter">
          <input type="search" aria-label="Search operations" placeholder="Search paths and descriptions" value={text} onInput={(event) => setText(event.currentTarget.value)} />
        </div>
        {answer.value ? shown.length === 0 ? <p class="muted">No operation matches this search.</p> : <Rows what="operations" rows={shown} id={(line) => `${line.verb} ${line.path}`} columns={COLUMNS} /> : <Waiting answer={answer} what="description of the API" />}
      </Card>
    </>
  );
}
