// The nodes that have copies of a quorum queue: who leads, who votes, and how far each is.

import { enc } from "../api";
import { NONE, bytes as size, count } from "../format";
import { Card, Facts } from "../parts/bits";
import { Rows, type Column } from "../parts/listing";
import { useApi } from "../poll";

/** A member in RabbitMQ's words; one whose node says nothing has a name and a state only. */
interface Member {
  "Node Name": string;
  "Raft State": string;
  Membership?: string;
  "Last Log Index"?: number;
  "Commit Index"?: number;
  Term?: number;
  transfer?: Transfer;
}

/** How far a copy is that is being made of what other nodes have. */
interface Transfer {
  phase: string;
  percent: number;
  bytes: number;
  bytes_left?: number;
  messages?: number;
  messages_left?: number;
}

const SILENT = ["noproc", "noconnection"];
const isSilent = (member: Member) => SILENT.includes(member["Raft State"]);

const PHASES: Record<string, string> = {
  waiting: "waits for a copy",
  contents: "copies what there is",
  copying: "copies from its own log",
  messages: "copies messages",
  repair: "repairs messages",
};

/** For example: copies messages, 63 %, 700 left, 45 MB so far. */
function transferred({ phase, percent, bytes, bytes_left, messages_left }: Transfer) {
  const words = [PHASES[phase] ?? phase];
  if (messages_left !== undefined || bytes_left !== undefined) words.push(`${percent} %`);
  if (messages_left !== undefined) words.push(`${count(messages_left)} left`);
  if (bytes > 0) words.push(`${size(bytes)} so far`);
  return words.join(", ");
}

function stateOf(member: Member) {
  if (isSilent(member)) return <span class="muted">not reached</span>;
  return member.transfer ? `${member["Raft State"]}, ${transferred(member.transfer)}` : member["Raft State"];
}

const COLUMNS: Column<Member>[] = [
  { title: "Node", cell: (member) => member["Node Name"] },
  { title: "State", cell: stateOf },
  { title: "Votes", cell: (member) => (!member.Membership ? NONE : member.Membership === "voter" ? "yes" : "not yet") },
  { title: "Last entry", number: true, cell: (member) => count(member["Last Log Index"]), from: 2 },
  { title: "Committed", number: true, cell: (member) => count(member["Commit Index"]), from: 2 },
  { title: "Term", number: true, cell: (member) => count(member.Term), from: 3 },
];

/** The members, as often as so many seconds at least where that is worth more than usual. Each node names itself first; here they are in the order of their names. */
function useMembers(host: string, name: string, pace?: number): Member[] {
  const members = useApi<Member[]>(`/queues/quorum/${enc(host)}/${enc(name)}/status`, pace).value ?? [];
  return [...members].sort((one, other) => one["Node Name"].localeCompare(other["Node Name"], undefined, { numeric: true }));
}

/** How far each is of a queue that gets its first members, in short. */
export function Progress({ host, name }: { host: string; name: string }) {
  const members = useMembers(host, name, 1);
  return <Facts rows={members.map((member) => [member["Node Name"], stateOf(member)])} />;
}

export function Members({ host, name }: { host: string; name: string }) {
  const rows = useMembers(host, name);
  const reached = rows.filter((member) => !isSilent(member)).length;
  if (rows.length === 0) return null;
  return (
    <Card title={`Members (${count(rows.length)})`}>
      <Rows columns={COLUMNS} rows={rows} id={(member) => member["Node Name"]} what="members" />
      {2 * reached <= rows.length && <p><span class="badge warn">no majority</span> Nothing is confirmed or delivered until enough of these nodes are back.</p>}
    </Card>
  );
}
