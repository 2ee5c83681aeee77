// A queue becomes one of the other type: a window that says what would be otherwise, and does it.

import { useEffect, useState } from "preact/hooks";
import { call, enc } from "../api";
import { DialogButton } from "../parts/dialog";
import { attempt } from "../parts/notices";

/** What the broker says of a conversion that is only tried. */
interface Tried {
  lost: string[];
  differences: string[];
}

interface Props {
  host: string;
  name: string;
  /** What it is now. */
  type: string;
  then(): void;
}

/** The button; nothing for types that are not converted. */
export function Conversion({ host, name, type, then }: Props) {
  if (type !== "classic" && type !== "quorum") return null;
  const other = type === "classic" ? "quorum" : "classic";
  return (
    <DialogButton label="Convert" title={`Convert ${name} to a ${other} queue?`}>
      {(close) => <Window host={host} name={name} other={other} then={then} close={close} />}
    </DialogButton>
  );
}

function Window({ host, name, other, then, close }: { host: string; name: string; other: string; then(): void; close(): void }) {
  const path = `/leveret/queues/${enc(host)}/${enc(name)}/convert`;
  const [tried, setTried] = useState<Tried>();
  const [refused, setRefused] = useState("");
  useEffect(() => {
    call<Tried>("POST", path, { type: other, dry_run: true }).then(setTried, (error) => setRefused(error instanceof Error ? error.message : String(error)));
  }, [path, other]);
  const convert = async () => {
    const force = (tried?.lost.length ?? 0) > 0;
    if (await attempt(`Queue ${name} is a ${other} queue`, () => call("POST", path, { type: other, force }))) {
      close();
      then();
    }
  };
  return (
    <>
      <p>It keeps its name, messages, bindings, consumers and policies. Clients stay connected, and may declare it as before.</p>
      {refused !== "" && <p><span class="badge warn">refused</span> {refused}</p>}
      {tried && tried.lost.length > 0 && <p><span class="badge warn">lost</span> {tried.lost.join(", ")}</p>}
      {tried && (
        <ul>
          {tried.differences.map((line) => (
            <li key={line}>{line}</li>
          ))}
        </ul>
      )}
      <p class="buttons">
        <button type="button" onClick={close}>
          Cancel
        </button>
        <button type="button" class="danger" disabled={!tried} onClick={convert}>
          Convert
        </button>
      </p>
    </>
  );
}
