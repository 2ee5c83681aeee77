// Who may configure, write and read what: of a user in all virtual hosts, or of all users in one.

import { useState } from "preact/hooks";
import { call, enc, exchangePath } from "../api";
import { exchangeName } from "../format";
import { Card, Vhost, Waiting } from "../parts/bits";
import { ConfirmButton } from "../parts/dialog";
import { Form, Text } from "../parts/form";
import { Rows, type Column } from "../parts/listing";
import { attempt } from "../parts/notices";
import { VhostChoice } from "../parts/vhosts";
import { useApi } from "../poll";
import { href } from "../router";

interface Permission {
  user: string;
  vhost: string;
  configure: string;
  write: string;
  read: string;
}

interface TopicPermission {
  user: string;
  vhost: string;
  exchange: string;
  write: string;
  read: string;
}

type Of = { user: string; vhost?: undefined } | { vhost: string; user?: undefined };

const pathOf = (of: Of, list: string): string => (of.user === undefined ? `/vhosts/${enc(of.vhost)}/${list}` : `/users/${enc(of.user)}/${list}`);

const pattern = (text: string) => (text === "" ? <span class="muted">nothing</span> : <code>{text}</code>);

export function PermissionsOf(of: Of) {
  const answer = useApi<Permission[]>(pathOf(of, "permissions"));
  const topics = useApi<TopicPermission[]>(pathOf(of, "topic-permissions"));
  const revoke = async (path: string, reload: () => void) => {
    const done = await attempt("The permissions were removed", () => call("DELETE", path));
    reload();
    return done;
  };
  const other: Column<{ user: string; vhost: string }> = of.user === undefined ? { title: "User", cell: (row) => <a href={href("users", row.user)}>{row.user}</a> } : { title: "Virtual host", cell: (row) => <Vhost name={row.vhost} /> };
  const columns: Column<Permission>[] = [
    other,
    { title: "Configure", cell: (row) => pattern(row.configure) },
    { title: "Write", cell: (row) => pattern(row.write) },
    { title: "Read", cell: (row) => pattern(row.read) },
    { title: "Action", cell: (row) => <ConfirmButton small label="Clear" title="Clear the permissions?" text={`${row.user} will no longer have access to ${row.vhost}.`} action={() => revoke(`/permissions/${enc(row.vhost)}/${enc(row.user)}`, answer.reload)} /> },
  ];
  const topicColumns: Column<TopicPermission>[] = [
    other,
    { title: "Exchange", cell: (row) => exchangeName(row.exchange) },
    { title: "Write", cell: (row) => pattern(row.write) },
    { title: "Read", cell: (row) => pattern(row.read) },
    { title: "Action", cell: (row) => <ConfirmButton small label="Clear" title="Clear the topic permission?" text={`${row.user} will be allowed all routing keys of ${exchangeName(row.exchange)} again.`} action={() => revoke(`/topic-permissions/${enc(row.vhost)}/${enc(row.user)}/${exchangePath(row.exchange)}`, topics.reload)} /> },
  ];
  return (
    <>
      <Card title="Permissions">
        {answer.value === undefined ? <Waiting answer={answer} what="permissions" /> : answer.value.length === 0 ? <p class="muted">None: {of.user === undefined ? "no user has access to this virtual host." : "this user has access to no virtual host."}</p> : <Rows columns={columns} rows={answer.value} id={(row) => `${row.vhost} ${row.user}`} what="permissions" />}
        <Grant {...of} then={answer.reload} />
      </Card>
      {topics.value && topics.value.length > 0 && (
        <Card title="Topic permissions">
          <Rows columns={topicColumns} rows={topics.value} id={(row) => `${row.vhost} ${row.user} ${row.exchange}`} what="topic permissions" />
        </Card>
      )}
      {topics.value && <TopicGrant {...of} then={topics.reload} />}
    </>
  );
}

function Grant({ then, ...of }: Of & { then(): void }) {
  const [user, setUser] = useState(of.user ?? "");
  const [vhost, setVhost] = useState(of.vhost ?? "/");
  const [configure, setConfigure] = useState(".*");
  const [write, setWrite] = useState(".*");
  const [read, setRead] = useState(".*");
  return (
    <details class="more">
      <summary>Set permissions</summary>
      <Form label="Set permissions" done="The permissions were set" action={() => call("PUT", `/permissions/${enc(vhost)}/${enc(user)}`, { configure, write, read })} then={then}>
        <div class="row">
          {of.user === undefined ? <Text label="User" value={user} onChange={setUser} required /> : <VhostChoice value={vhost} onChange={setVhost} />}
          <Text label="Configure" value={configure} onChange={setConfigure} />
          <Text label="Write" value={write} onChange={setWrite} />
          <Text label="Read" value={read} onChange={setRead} />
        </div>
        <p class="muted">Regular expressions that match the names of exchanges and queues. Configure: declare and delete. Write: publish, bind a queue. Read: consume, purge, bind from an exchange.</p>
      </Form>
    </details>
  );
}

function TopicGrant({ then, ...of }: Of & { then(): void }) {
  const [user, setUser] = useState(of.user ?? "");
  const [vhost, setVhost] = useState(of.vhost ?? "/");
  const [exchange, setExchange] = useState("amq.topic");
  const [write, setWrite] = useState(".*");
  const [read, setRead] = useState(".*");
  return (
    <details class="more">
      <summary>Set topic permissions</summary>
      <Card title="Topic permissions">
        <Form label="Set topic permissions" done="The topic permissions were set" action={() => call("PUT", `/topic-permissions/${enc(vhost)}/${enc(user)}`, { exchange, write, read })} then={then}>
          <div class="row">
            {of.user === undefined ? <Text label="User" value={user} onChange={setUser} required /> : <VhostChoice value={vhost} onChange={setVhost} />}
            <Text label="Topic exchange" value={exchange} onChange={setExchange} />
            <Text label="Write: routing keys" value={write} onChange={setWrite} />
            <Text label="Read: routing keys" value={read} onChange={setRead} />
          </div>
        </Form>
      </Card>
    </details>
  );
}
