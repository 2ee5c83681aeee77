// What blocks publishers on the whole node, above every page: whoever looks at a queue or a connection must not look for the cause there.

import { bytes } from "../format";
import { useApi } from "../poll";

interface Alarm {
  node: string;
  resource: string;
  used?: number;
  free?: number;
  limit?: number;
}

const WORDS: Record<string, (alarm: Alarm) => string> = {
  majority: () => "it reaches no majority of the cluster's nodes. What is shown may be out of date; nothing can be published, declared or changed through it.",
  log: () => "its log cannot be written. Nothing is confirmed and publishers are blocked; the log of the node says why.",
  memory: ({ used, limit }) => `it uses ${bytes(used)} of memory, more than the limit of ${bytes(limit)}. Publishers are blocked until consumers have made room.`,
  disk: ({ free, limit }) => `${bytes(free)} of disk space are free, less than the limit of ${bytes(limit)}. Publishers are blocked until there is room on the disk.`,
};
const TITLES: Record<string, string> = { majority: "Cut off", log: "Log failed", memory: "Memory alarm", disk: "Disk alarm" };

export function AlarmBar() {
  const { value } = useApi<Alarm[]>("/leveret/alarms");
  if (!Array.isArray(value) || value.length === 0) return null;
  return (
    <div class="alarms" role="alert">
      {value.map((alarm) => (
        <p key={`${alarm.node} ${alarm.resource}`}>
          <b>{TITLES[alarm.resource] ?? `Alarm: ${alarm.resource}`}</b> on {alarm.node}: {WORDS[alarm.resource]?.(alarm) ?? "publishers are blocked."}
        </p>
      ))}
    </div>
  );
}
