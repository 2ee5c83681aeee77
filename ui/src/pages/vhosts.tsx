import { useState } from "preact/hooks";
import { call, enc } from "../api";
import { at, count, rate } from "../format";
import { Badge, Card, Facts, Figure, Head, Waiting } from "../parts/bits";
import { ConfirmButton, DialogButton } from "../parts/dialog";
import { Form, Text } from "../parts/form";
import { Listing, type Column } from "../parts/listing";
import { attempt } from "../parts/notices";
import { useApi } from "../poll";
import { go, href } from "../router";
import { isAdministrator } from "../session";
import { vhost as chosenVhost } from "../vhost";
import { LimitsOf } from "./limits";
import { PermissionsOf } from "./permissions";

interface VhostBody {
  name: string;
  description?: string;
  tags?: string[];
  default_queue_type?: string;
  tracing?: boolean;
  protected_from_deletion?: boolean;
  messages?: number;
  messages_ready?: number;
  messages_unacknowledged?: number;
}

const COLUMNS: Column<VhostBody>[] = [
  {
    title: "Name",
    sort: "name",
    cell: (host) => (
      <>
        <a href={href("vhosts", host.name)}>{host.name}</a> {host.tracing && <Badge tone="warn">tracing</Badge>}
      </>
    ),
  },
  { title: "Description", cell: (host) => host.description, from: 3 },
  { title: "Ready", sort: "messages_ready", number: true, cell: (host) => count(host.messages_ready) },
  { title: "Unacked", sort: "messages_unacknowledged", number: true, cell: (host) => count(host.messages_unacknowledged) },
  { title: "Publish", number: true, cell: (host) => rate(at(host, "message_stats.publish_details.rate")), from: 2 },
  { title: "Deliver", number: true, cell: (host) => rate(at(host, "message_stats.deliver_get_details.rate")), from: 2 },
];

export function Vhosts() {
  return (
    <>
      <Head title="Virtual hosts">
        {isAdministrator() && (
          <DialogButton label="New virtual host" class="primary" title="New virtual host">
            {(close) => <NewVhost close={close} />}
          </DialogButton>
        )}
      </Head>
      <Listing path="/vhosts" what="virtual hosts" columns={COLUMNS} id={(host) => host.name} empty={<p>You have no permissions in any virtual host. An administrator can grant them.</p>} />
    </>
  );
}

function NewVhost({ close }: { close(): void }) {
  const [name, setName] = useState("");
  return (
    <Form label="Create" done={`Virtual host ${name} was created; you have full permissions in it`} action={() => call("PUT", `/vhosts/${enc(name)}`, {})} then={() => (close(), go("vhosts", name))}>
      <Text label="Name" value={name} onChange={setName} required />
    </Form>
  );
}

export function VhostPage({ name }: { name: string }) {
  const path = `/vhosts/${enc(name)}`;
  const answer = useApi<VhostBody>(path);
  const host = answer.value;
  if (!host) {
    return (
      <>
        <Head kind="Virtual host" title={name} />
        <Waiting answer={answer} what="virtual host" />
      </>
    );
  }
  const remove = async () => {
    const gone = await attempt(`Virtual host ${name} was deleted`, () => call("DELETE", path));
    if (gone) {
      if (chosenVhost.get() === name) chosenVhost.set("");
      go("vhosts");
    }
    return gone;
  };
  const only = (list: string) => () => {
    chosenVhost.set(name);
    go(list);
  };
  return (
    <>
      <Head kind="Virtual host" title={name}>
        <button type="button" onClick={only("queues")}>
          Queues
        </button>
        <button type="button" onClick={only("exchanges")}>
          Exchanges
        </button>
        {isAdministrator() && <ConfirmButton label="Delete" title={`Delete ${name}?`} text={`All its exchanges, queues and the ${count(host.messages)} messages in them will be deleted, and connections to it closed.`} action={remove} />}
      </Head>
      <div class="figures">
        <Figure label="Ready">{count(host.messages_ready)}</Figure>
        <Figure label="Unacked">{count(host.messages_unacknowledged)}</Figure>
        <Figure label="Publish">{rate(at(host, "message_stats.publish_details.rate"))}</Figure>
        <Figure label="Deliver">{rate(at(host, "message_stats.deliver_get_details.rate"))}</Figure>
      </div>
      <div class="cards">
        <Card title="Details">
          <Facts
            rows={[
              ["Description", host.description || "none"],
              ["Tags", host.tags && host.tags.length > 0 ? host.tags.map((tag) => <Badge key={tag}>{tag}</Badge>) : "none"],
              ["Default queue type", host.default_queue_type && host.default_queue_type !== "undefined" ? host.default_queue_type : "classic"],
              ["Tracing", isAdministrator() ? <a href={`#/trace?vhost=${enc(name)}`}>{host.tracing ? "on" : "off"}</a> : host.tracing ? "on" : "off"],
              ["Protected from deletion", host.protected_from_deletion ? "yes" : "no"],
            ]}
          />
        </Card>
        <LimitsOf kind="vhost" name={name} />
      </div>
      {isAdministrator() && <PermissionsOf vhost={name} />}
    </>
  );
}
