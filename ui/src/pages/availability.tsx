// Why a quorum queue is available or not, who would have to come back, and what going on without them loses.

import { enc } from "../api";
import { Badge, Card } from "../parts/bits";
import { useApi } from "../poll";

interface Availability {
  state: "available" | "no_leader" | "no_majority";
  /** A sentence each. */
  says: string[];
}

const STATES: Record<Availability["state"], [string, "good" | "warn" | "bad"]> = {
  available: ["available", "good"],
  no_leader: ["no leader", "warn"],
  no_majority: ["no majority", "bad"],
};

/** Nothing, where the broker does not say. */
export function Availability({ host, name }: { host: string; name: string }) {
  const { value } = useApi<Availability>(`/leveret/availability/queues/${enc(host)}/${enc(name)}`);
  const state = value && STATES[value.state];
  if (!value || !state) return null;
  return (
    <Card title="Availability">
      <Badge tone={state[1]}>{state[0]}</Badge>
      <ul class="holds">
        {value.says.map((sentence) => (
          <li key={sentence}>{sentence}</li>
        ))}
      </ul>
    </Card>
  );
}
