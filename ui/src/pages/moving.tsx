// Moving, copying, replaying and deleting messages of a queue: in small requests one after the other, so that it can be slowed down,
// watched and stopped. Each message leaves the queue only once its new queues have confirmed it.

import { useRef, useState } from "preact/hooks";
import { call } from "../api";
import { count } from "../format";
import { Card } from "../parts/bits";
import { Choice, Text } from "../parts/form";
import { attempt, notify } from "../parts/notices";
import { conditions, type Standing, type Wanted } from "./browsing";

interface Done {
  moved?: number;
  deleted?: number;
  selected?: number;
  refused?: number;
  without_origin?: number;
  missed?: number;
  scanned: number;
  next: string | null;
  end: string;
  sample?: Standing[];
}

/** How many messages a request is about at the most, so that a stop comes soon. */
const STEP = 100;

interface Props {
  path: string;
  ready: number | undefined;
  /** Positions of messages that are ticked, and the edition of the queue that they are of. */
  chosen: string[];
  edition: string;
  wanted: Wanted;
  then(): void;
}

const VERBS: Record<string, string> = { move: "Move", copy: "Copy", replay: "Replay", delete: "Delete" };

export function ActOnMessages({ path, ready, chosen, edition, wanted, then }: Props) {
  const [action, setAction] = useState("move");
  const [which, setWhich] = useState("filter");
  const [where, setWhere] = useState("queue");
  const [queue, setQueue] = useState("");
  const [exchange, setExchange] = useState("");
  const [key, setKey] = useState("");
  const [many, setMany] = useState("");
  const [speed, setSpeed] = useState("");
  const [progress, setProgress] = useState<{ done: number; scanned: number; total: number } | null>(null);
  const [rehearsed, setRehearsed] = useState<{ selected: number; without: number; sample: Standing[] } | null>(null);
  const stop = useRef(false);
  const goes = action === "move" || action === "copy";

  /** What every request says; throws what is wrong with it. */
  const asked = () => {
    const target = action === "replay" ? { origin: true } : !goes ? {} : where === "queue" ? { exchange: "amq.default", routing_key: queue } : { exchange, routing_key: key };
    const { state, ...filter } = conditions(wanted);
    const selection = which === "ticked" ? { positions: chosen, edition } : { filter: action === "copy" && state ? { ...filter, state } : filter };
    return { action: action === "replay" ? "move" : action, ...target, ...selection };
  };
  const run = async (dry: boolean) => {
    stop.current = false;
    const most = which === "ticked" ? chosen.length : many === "" ? Infinity : Math.max(0, Number(many) || 0);
    const pace = dry ? 0 : Number(speed) || 0;
    const sums = { done: 0, refused: 0, without: 0, missed: 0, scanned: 0 };
    let sample: Standing[] = [];
    setRehearsed(null);
    setProgress({ done: 0, scanned: 0, total: ready ?? 0 });
    const fine = await attempt("", async () => {
      let place: Record<string, string> = {};
      while (sums.done < most && !stop.current) {
        const started = Date.now();
        const step = dry ? 1000 : pace > 0 ? Math.min(STEP, Math.max(1, pace)) : STEP;
        const body = { ...asked(), ...place, count: Math.min(step, most - sums.done), dry_run: dry };
        const answer = await call<Done>("POST", path, body);
        const done = answer.moved ?? answer.deleted ?? answer.selected ?? 0;
        sums.done += done;
        sums.refused += answer.refused ?? 0;
        sums.without += answer.without_origin ?? 0;
        sums.missed += answer.missed ?? 0;
        sums.scanned += answer.scanned;
        if (sample.length === 0) sample = answer.sample ?? [];
        setProgress({ done: sums.done, scanned: sums.scanned, total: ready ?? 0 });
        if (answer.next === null) break;
        place = { from: answer.next, end: answer.end };
        if (pace > 0) await new Promise((resolve) => setTimeout(resolve, Math.max(0, (done / pace) * 1000 - (Date.now() - started))));
      }
    });
    setProgress(null);
    if (!fine) return then();
    if (dry) return setRehearsed({ selected: sums.done, without: sums.without, sample });
    const stayed = [
      sums.refused > 0 ? `${count(sums.refused)} had no route or no room` : "",
      sums.without > 0 ? `${count(sums.without)} were never dead-lettered` : "",
      sums.missed > 0 ? `${count(sums.missed)} were delivered to consumers first` : "",
    ].filter((words) => words !== "");
    const words = `${count(sums.done)} ${sums.done === 1 ? "message was" : "messages were"} ${{ move: "moved", copy: "copied", replay: "replayed", delete: "deleted" }[action]}${stop.current ? "; stopped" : ""}`;
    notify(stayed.length > 0 ? `${words}; ${stayed.join(", ")}: these stayed where they were.` : words, stayed.length === 0);
    then();
  };
  const words = { move: `to ${aim(where, queue, exchange, key)}`, copy: `to ${aim(where, queue, exchange, key)}; they stay here as well`, replay: "to the exchange that each was published to before it was first dead-lettered, with its routing key then", delete: "permanently" }[action];
  const nothing = which === "ticked" && chosen.length === 0;
  return (
    <Card title="Move, copy, replay or delete">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void run(false);
        }}
      >
        <div class="row">
          <Choice label="Action" value={action} options={[["move", "move"], ["copy", "copy"], ["replay", "replay dead letters"], ["delete", "delete"]]} onChange={setAction} />
          <Choice label="Selection" value={which} options={[["filter", "all that match"], ["ticked", `${count(chosen.length)} selected`]]} onChange={setWhich} />
          {goes && <Choice label="To" value={where} options={[["queue", "a queue"], ["exchange", "an exchange"]]} onChange={setWhere} />}
          {goes && where === "queue" && <Text label="Queue" value={queue} onChange={setQueue} required />}
          {goes && where === "exchange" && <Text label="Exchange" value={exchange} onChange={setExchange} required />}
          {goes && where === "exchange" && <Text label="Routing key" value={key} onChange={setKey} />}
          {which === "filter" && <Text label="Maximum" value={many} onChange={setMany} placeholder="all" />}
          <Text label="Messages per second" value={speed} onChange={setSpeed} placeholder="no limit" />
        </div>
        <p class="muted">
          {VERBS[action] === "Copy" ? "Copies" : VERBS[action] === "Replay" ? "Replays" : `${VERBS[action]}s`} ready messages {words}. Messages that arrive meanwhile are left alone.
        </p>
        {progress && (
          <p>
            <progress aria-label="Progress" max={Math.max(progress.total, progress.scanned, 1)} value={progress.scanned} /> {count(progress.done)} done, {count(progress.scanned)} searched
          </p>
        )}
        {rehearsed && (
          <div role="status">
            <p>
              <b>{count(rehearsed.selected)} messages match</b>
              {rehearsed.without > 0 && `; ${count(rehearsed.without)} of them were never dead-lettered and would stay`}
            </p>
            <ul class="sample">
              {rehearsed.sample.map((message) => (
                <li key={message.position}>
                  <span class="muted">{message.position}</span> <code>{message.payload_encoding === "string" ? message.payload.slice(0, 80) : "(binary)"}</code>
                </li>
              ))}
            </ul>
          </div>
        )}
        <p class="buttons">
          {progress && (
            <button type="button" onClick={() => (stop.current = true)}>
              Stop
            </button>
          )}
          <button type="button" disabled={progress !== null || nothing} onClick={() => run(true)}>
            Dry run
          </button>
          <button type="submit" class={action === "delete" ? "danger" : "primary"} disabled={progress !== null || nothing}>
            {VERBS[action]}
          </button>
        </p>
      </form>
    </Card>
  );
}

function aim(where: string, queue: string, exchange: string, key: string): string {
  return where === "queue" ? `${queue === "" ? "a queue" : `the queue ${queue}`}` : `${exchange === "" ? "an exchange" : `the exchange ${exchange}`} with the routing key ${key || "(none)"}`;
}
