// The messages of a stream from any offset or time on. Looking takes nothing out of it, and nobody reads it afterwards.

import { useState } from "preact/hooks";
import { call, enc } from "../api";
import { count } from "../format";
import { Card } from "../parts/bits";
import { Choice, Form, Text } from "../parts/form";
import { attempt } from "../parts/notices";
import { CUT, MessageView, type Message } from "./messages";

type Where = "first" | "last" | "offset" | "time";

/** As many as fit on a page. */
const MOST = 1000;

const offsetOf = (message: Message | undefined): number | undefined => {
  const properties = message?.properties;
  if (properties === undefined || Array.isArray(properties)) return undefined;
  const offset = (properties["headers"] as Record<string, unknown> | undefined)?.["x-stream-offset"];
  return typeof offset === "number" ? offset : undefined;
};

/** A time as the API takes it: what is written without a zone is this browser's. A number alone would be an offset. */
function time(text: string): string {
  if (/^\d+[smhd]$/.test(text)) return text;
  const found = /^\d+$/.test(text) ? NaN : Date.parse(text);
  if (Number.isNaN(found)) throw new Error(`"${text}" is no time: write how long ago, 15m, or a date and a time`);
  return new Date(found).toISOString();
}

export function BrowseStream({ host, name }: { host: string; name: string }) {
  const [where, setWhere] = useState<Where>("first");
  const [place, setPlace] = useState("");
  const [many, setMany] = useState("5");
  const [found, setFound] = useState<Message[] | null>(null);
  const look = async (offset: string | number) => {
    const asked = { offset, count: Math.min(MOST, Math.max(1, Number(many) || 1)), encoding: "auto", truncate: CUT };
    setFound(await call<Message[]>("POST", `/queues/${enc(host)}/${enc(name)}/get`, asked));
  };
  const begin = () => {
    if (where === "time") return look(time(place.trim()));
    if (where === "offset" && !/^\d+$/.test(place.trim())) throw new Error("An offset is a number: 0, 1000");
    return look(where === "offset" ? place.trim() : where);
  };
  const last = found?.at(-1);
  const next = offsetOf(last);
  return (
    <Card title="Browse messages" aside={<span class="muted">nothing is consumed</span>}>
      <Form label="Browse" done="" action={async () => begin()}>
        <div class="row">
          <Choice label="Start" value={where} options={[["first", "at the first message"], ["offset", "at an offset"], ["time", "at a time"], ["last", "with the last chunk"]]} onChange={(to) => setWhere(to as Where)} />
          {where === "offset" && <Text label="Offset" value={place} onChange={setPlace} required placeholder="1000" />}
          {where === "time" && <Text label="Time" value={place} onChange={setPlace} required placeholder="15m or 2026-03-01 12:30" hint="How long ago, or a date and time" />}
          <Text label="How many" value={many} onChange={setMany} />
        </div>
      </Form>
      {found?.length === 0 && <p class="muted">There is no message from there on.</p>}
      {found?.map((message, index) => <MessageView key={index} message={message} title={`Offset ${count(offsetOf(message))}`} />)}
      {found && next !== undefined && (
        <p class="buttons">
          <span class="muted">{count(last?.message_count)} come after these</span>
          <button type="button" disabled={last?.message_count === 0} onClick={() => attempt("", () => look(next + 1))}>
            Next
          </button>
        </p>
      )}
    </Card>
  );
}
