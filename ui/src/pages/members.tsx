// The nodes that have copies of a quorum queue: who leads, who votes, and how far each is.

import { enc } from "../api";
import { NONE, count } from "../format";
import { Card } from "../parts/bits";
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
}

const SILENT = ["noproc", "noconnection"];
const isSilent = (member: Member) => SILENT.includes(member["Raft State"]);

const COLUMNS: Column<Member>[] = [
  { title: "Node", cell: (member) => member["Node Name"] },
  { title: "State", cell: (member) => (isSilent(member) ? <span class="muted">not reached</span> : member["Raft State"]) },
  { title: "Votes", cell: (member) => (!member.Membership ? NONE : member.Membership === "voter" ? "yes" : "not yet") },
  { title: "Last entry", number: true, cell: (member) => count(member["Last Log Index"]), from: 2 },
  { title: "Committed", number: true, cell: (member) => count(member["Commit Index"]), from: 2 },
  { title: "Term", number: true, cell: (member) => count(member.Term), from: 3 },
];

export function Members({ host, name }: { host: string; name: string }) {
  const members = useApi<Member[]>(`/queues/quorum/${enc(host)}/${enc(name)}/status`).value ?? [];
  const reached = members.filter((member) => !isSilent(member)).length;
  if (members.length === 0) return null;
  return (
    <Card title={`Members (${count(members.length)})`}>
      <Rows columns={COLUMNS} rows={members} id={(member) => member["Node Name"]} what="members" />
      {2 * reached <= members.length && <p><span class="badge warn">no majority</span> Nothing is confirmed or delivered until enough of these nodes are back.</p>}
    </Card>
  );
}
