// A queue becomes one of the other type: a window that says what would be otherwise, does it, and shows how far it is.

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ApiError, call, enc } from "../api";
import { Dialog } from "../parts/dialog";
import { notify } from "../parts/notices";
import { Progress } from "./members";

/** What the broker says of a conversion, whether it is only tried or not. */
interface Told {
  lost: string[];
  differences: string[];
  /** Whether the queue is of its new type, where that wants it. Nothing of one that is not converted yet. */
  in_place?: boolean;
}

interface Props {
  host: string;
  name: string;
  /** What it is now. */
  type: string;
  then(): void;
}

/** How long it is waited between two looks at a queue that is on its way, in milliseconds. */
const BETWEEN = 500;

/** The button; nothing for types that are not converted. */
export function Conversion({ host, name, type, then }: Props) {
  // What it is to be stays so while it becomes that.
  const [to, setTo] = useState<string>();
  const other = { classic: "quorum", quorum: "classic" }[type];
  if (other === undefined) return null;
  const close = () => setTo(undefined);
  return (
    <>
      <button type="button" onClick={() => setTo(other)}>
        Convert
      </button>
      {to !== undefined && (
        <Dialog title={`Convert ${name} to a ${to} queue`} onClose={close}>
          <Window host={host} name={name} to={to} then={then} close={close} />
        </Dialog>
      )}
    </>
  );
}

function Window({ host, name, to, then, close }: { host: string; name: string; to: string; then(): void; close(): void }) {
  const path = `/leveret/queues/${enc(host)}/${enc(name)}/convert`;
  const [told, setTold] = useState<Told>();
  const [refused, setRefused] = useState("");
  const [state, setState] = useState<"asked" | "converting" | "moving">("asked");
  const refuse = (error: unknown) => setRefused(error instanceof Error ? error.message : String(error));
  const arrived = () => {
    notify(`Queue ${name} is a ${to} queue`);
    close();
    then();
  };

  useEffect(() => {
    call<Told>("POST", path, { type: to, dry_run: true }).then(setTold, refuse);
  }, [path, to]);

  useEffect(() => {
    if (state !== "moving") return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let over = false;
    // A dry run: should somebody convert it back meanwhile, it stays what they made it.
    const look = async () => {
      try {
        const { in_place } = await call<Told>("POST", path, { type: to, dry_run: true });
        if (over) return;
        if (in_place) return arrived();
      } catch (error) {
        if (over) return;
        // Whoever leads it may be out of reach for a moment; a queue that is gone stays so.
        if (error instanceof ApiError && error.status > 0 && error.status < 500) return refuse(error);
      }
      timer = setTimeout(look, BETWEEN);
    };
    timer = setTimeout(look, BETWEEN);
    return () => {
      over = true;
      clearTimeout(timer);
    };
  }, [state, path, to]);

  const convert = async () => {
    setState("converting");
    try {
      const { in_place } = await call<Told>("POST", path, { type: to, force: loses });
      if (in_place) return arrived();
      setState("moving");
      then();
    } catch (error) {
      refuse(error);
    }
  };

  const lost = told?.lost ?? [];
  const loses = lost.length > 0;
  if (refused !== "") {
    return (
      <>
        <p class="refused" role="alert">
          {refused}
        </p>
        <Buttons close={close} label="Close" />
      </>
    );
  }
  if (!told) {
    return (
      <>
        <p class="muted" aria-busy="true">
          Loading…
        </p>
        <Buttons close={close} label="Cancel" />
      </>
    );
  }
  if (state === "moving") {
    return (
      <>
        <div role="status">
          <p>{to === "quorum" ? "It is a quorum queue now, and gets its copies on other nodes. Clients go on meanwhile." : "It is a classic queue now, and its copies on other nodes go one after the other. Clients go on meanwhile."}</p>
          {to === "quorum" && <Progress host={host} name={name} />}
          <p class="muted">This continues if you close the window.</p>
        </div>
        <Buttons close={close} label="Close" />
      </>
    );
  }
  return (
    <>
      <p>It keeps its name, messages, bindings and consumers. Clients stay connected, and may go on declaring it as before. It can be converted back.</p>
      {loses && (
        <p class="refused">
          <b>Lost:</b> {lost.join(", ")}. {lost.length === 1 ? "This argument has an effect now that" : "These arguments have effects now that"} a {to} queue does not have.
        </p>
      )}
      {told.differences.length > 0 && <h3>What changes</h3>}
      <ul class="changes">
        {told.differences.map((line) => (
          <li key={line}>{line}</li>
        ))}
      </ul>
      <Buttons close={close} label="Cancel">
        <button type="button" class={loses ? "danger" : "primary"} disabled={state === "converting"} onClick={convert}>
          {loses ? "Convert anyway" : "Convert"}
        </button>
      </Buttons>
    </>
  );
}

function Buttons({ close, label, children }: { close(): void; label: string; children?: ComponentChildren }) {
  return (
    <p class="buttons">
      <button type="button" onClick={close}>
        {label}
      </button>
      {children}
    </p>
  );
}
