// Users, their tags, passwords, permissions.

import { useState } from "preact/hooks";
import { call, enc } from "../api";
import { Badge, Card, Head, NameLink, Vhost, Waiting } from "../parts/bits";
import { ConfirmButton, DialogButton } from "../parts/dialog";
import { Check, Form, Text } from "../parts/form";
import { Listing, type Column } from "../parts/listing";
import { attempt } from "../parts/notices";
import { useApi } from "../poll";
import { go, href } from "../router";
import { LimitsOf } from "./limits";
import { PermissionsOf } from "./permissions";

interface UserBody {
  name: string;
  tags?: string[] | string;
  password_hash?: string;
}

const TAGS: [string, string][] = [
  ["management", "this UI and the HTTP API, for the virtual hosts that the user has access to"],
  ["policymaker", "the same, and policies"],
  ["monitoring", "the same as management, and all connections, channels and node figures"],
  ["administrator", "everything"],
];

const tagsOf = (user: UserBody): string[] => (Array.isArray(user.tags) ? user.tags : (user.tags ?? "").split(",")).filter((tag) => tag !== "");

interface Permission {
  user: string;
  vhost: string;
}

/** So many virtual hosts of a user are named; of the others there is the number. */
const NAMED = 4;

function Access({ hosts }: { hosts: string[] | undefined }) {
  if (hosts === undefined) return <Badge tone="warn">no access</Badge>;
  return (
    <>
      {hosts.slice(0, NAMED).map((host, at) => (
        <span key={host}>
          {at > 0 && ", "}
          <Vhost name={host} />
        </span>
      ))}
      {hosts.length > NAMED && <span title={hosts.join(", ")}> and {hosts.length - NAMED} more</span>}
    </>
  );
}

export function Users() {
  const permissions = useApi<Permission[]>("/permissions").value;
  const hosts = new Map<string, string[]>();
  for (const { user, vhost } of Array.isArray(permissions) ? permissions : []) hosts.set(user, [...(hosts.get(user) ?? []), vhost]);
  const columns: Column<UserBody>[] = [
    { title: "Name", sort: "name", cell: (user) => <NameLink to={href("users", user.name)} name={user.name} /> },
    { title: "Tags", cell: (user) => tagsOf(user).map((tag) => <Badge key={tag}>{tag}</Badge>) },
    { title: "Can access virtual hosts", cell: (user) => permissions && <Access hosts={hosts.get(user.name)} />, from: 2 },
    { title: "Password", cell: (user) => (user.password_hash ? "yes" : "none"), from: 2, hint: "a user without one cannot log in by a password" },
  ];
  return (
    <>
      <Head title="Users">
        <DialogButton label="New user" class="primary" title="New user">
          {(close) => <NewUser close={close} />}
        </DialogButton>
      </Head>
      <Listing path="/users" what="users" columns={columns} id={(user) => user.name} />
    </>
  );
}

function NewUser({ close }: { close(): void }) {
  const [name, setName] = useState("");
  const [password, setPassword] = useState("");
  const [tags, setTags] = useState<string[]>([]);
  const create = () => call("PUT", `/users/${enc(name)}`, { password, tags });
  return (
    <Form label="Create" done={`User ${name} was created; now set its permissions`} action={create} then={() => (close(), go("users", name))}>
      <Text label="Name" value={name} onChange={setName} required autocomplete="off" />
      <Text label="Password" type="password" value={password} onChange={setPassword} required autocomplete="new-password" />
      <Tags chosen={tags} onChange={setTags} />
    </Form>
  );
}

function Tags({ chosen, onChange }: { chosen: string[]; onChange(tags: string[]): void }) {
  return (
    <fieldset>
      <legend>Tags</legend>
      {TAGS.map(([tag, words]) => (
        <div key={tag}>
          <Check label={`${tag}: ${words}`} value={chosen.includes(tag)} onChange={(on) => onChange(on ? [...chosen, tag] : chosen.filter((other) => other !== tag))} />
        </div>
      ))}
    </fieldset>
  );
}

export function User({ name }: { name: string }) {
  const path = `/users/${enc(name)}`;
  const answer = useApi<UserBody>(path);
  const user = answer.value;
  if (!user) {
    return (
      <>
        <Head kind="User" title={name} />
        <Waiting answer={answer} what="user" />
      </>
    );
  }
  const remove = async () => {
    const gone = await attempt(`User ${name} was deleted`, () => call("DELETE", path));
    if (gone) go("users");
    return gone;
  };
  return (
    <>
      <Head kind="User" title={name}>
        <ConfirmButton label="Delete" title={`Delete ${name}?`} text="The user and its permissions will be deleted, and its connections closed." action={remove} />
      </Head>
      <PermissionsOf user={name} />
      <div class="cards">
        <Change user={user} key={tagsOf(user).join()} then={answer.reload} />
        <LimitsOf kind="user" name={name} />
      </div>
    </>
  );
}

function Change({ user, then }: { user: UserBody; then(): void }) {
  const [tags, setTags] = useState(tagsOf(user));
  const [password, setPassword] = useState("");
  const change = () => call("PUT", `/users/${enc(user.name)}`, { tags, ...(password === "" ? { password_hash: user.password_hash ?? "" } : { password }) });
  return (
    <Card title="Password and tags">
      <Form label="Update" done="The user was updated" action={change} then={() => (setPassword(""), then())}>
        <Text label="New password" type="password" value={password} onChange={setPassword} autocomplete="new-password" hint="Leave it empty to keep the present one" />
        <Tags chosen={tags} onChange={setTags} />
      </Form>
    </Card>
  );
}
