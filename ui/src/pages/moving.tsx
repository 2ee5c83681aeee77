// Moving, copying and replaying messages of a queue: in small requests one after the other, so that it can be slowed down,
// watched and stopped. Each message leaves the queue only once its new queues have confirmed it.

import { useRef, useState } from "preact/hooks";
import { call, enc } from "../api";
import { count } from "../format";
import { Card } from "../parts/bits";
import { Check, Choice, Text } from "../parts/form";
import { attempt, notify } from "../parts/notices";

interface Moved {
  moved: number;
  refused: number;
  without_origin: number;
  left: number;
}

/** How many messages a request moves at the most. */
const STEP = 100;

interface Props {
  host: string;
  name: string;
  ready: number | undefined;
  then(): void;
}

export function MoveMessages({ host, name, ready, then }: Props) {
  const [where, setWhere] = useState("queue");
  const [queue, setQueue] = useState("");
  const [exchange, setExchange] = useState("");
  const [key, setKey] = useState("");
  const [many, setMany] = useState("");
  const [speed, setSpeed] = useState("");
  const [copy, setCopy] = useState(false);
  const [progress, setProgress] = useState<{ done: number; wanted: number } | null>(null);
  const stop = useRef(false);
  const wanted = many === "" ? (ready ?? 0) : Math.max(0, Number(many) || 0);
  const target = where === "origin" ? { origin: true } : where === "queue" ? { exchange: "amq.default", routing_key: queue } : { exchange, routing_key: key };
  const words = where === "origin" ? "to the exchange, with the routing key, by which each one came before it died first" : where === "queue" ? `to the queue ${queue || "…"}` : `to the exchange ${exchange || "…"} with the routing key ${key || "(none)"}`;
  const run = async (event: Event) => {
    event.preventDefault();
    stop.current = false;
    let done = 0;
    setProgress({ done, wanted });
    await attempt("", async () => {
      // What is copied or cannot leave stays in front of the rest: one request has to see all of it.
      const step = copy ? wanted : STEP;
      while (done < wanted && !stop.current) {
        const started = Date.now();
        const pace = Number(speed) || 0;
        const asked = Math.min(pace > 0 && !copy ? Math.min(step, Math.max(1, pace)) : step, wanted - done);
        const answer = await call<Moved>("POST", `/leveret/queues/${enc(host)}/${enc(name)}/move`, { ...target, count: asked, copy });
        done += answer.moved;
        setProgress({ done, wanted });
        const stayed = answer.refused + answer.without_origin;
        if (stayed > 0) throw new Error(`${count(done)} messages have arrived; ${count(answer.refused)} had no route or no room, ${count(answer.without_origin)} never died before: those stay where they are.`);
        if (answer.moved < asked || copy) break;
        if (pace > 0) await new Promise((resolve) => setTimeout(resolve, Math.max(0, (asked / pace) * 1000 - (Date.now() - started))));
      }
      notify(`${count(done)} messages have arrived${stop.current ? "; stopped" : ""}`);
    });
    setProgress(null);
    then();
  };
  return (
    <Card title="Move messages">
      <form onSubmit={run}>
        <div class="row">
          <Choice label="To" value={where} options={[["queue", "a queue"], ["exchange", "an exchange"], ["origin", "where they came from (replay dead letters)"]]} onChange={setWhere} />
          {where === "queue" && <Text label="Queue" value={queue} onChange={setQueue} required />}
          {where === "exchange" && <Text label="Exchange" value={exchange} onChange={setExchange} required />}
          {where === "exchange" && <Text label="Routing key" value={key} onChange={setKey} />}
          <Text label="At most" value={many} onChange={setMany} placeholder="all that are ready" />
          {!copy && <Text label="Messages a second" value={speed} onChange={setSpeed} placeholder="as fast as it goes" />}
        </div>
        <Check label="Copy: they stay here as well (1,000 at most)" value={copy} onChange={setCopy} />
        <p class="muted">
          {copy ? "Copies" : "Moves"} the first {count(copy ? Math.min(wanted, 1000) : wanted)} of {count(ready)} ready messages {words}.
        </p>
        {progress && (
          <p>
            <progress aria-label="Moved" max={Math.max(progress.wanted, 1)} value={progress.done} /> {count(progress.done)} of {count(progress.wanted)}
          </p>
        )}
        <p class="buttons">
          {progress && (
            <button type="button" onClick={() => (stop.current = true)}>
              Stop
            </button>
          )}
          <button type="submit" class="primary" disabled={progress !== null || wanted === 0}>
            {copy ? "Copy" : "Move"}
          </button>
        </p>
      </form>
    </Card>
  );
}
