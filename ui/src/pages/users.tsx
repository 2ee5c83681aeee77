// Users, their tags, passwords, permissions.

import { useState } from "preact/hooks";
import { call, enc } from "../api";
import { Badge, Card, Head, Waiting } from "../parts/bits";
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
  ["management", "these pages, for the virtual hosts that the user may enter"],
  ["policymaker", "and policies"],
  ["monitoring", "and the node and all figures"],
  ["administrator", "everything"],
];

const tagsOf = (user: UserBody): string[] => (Array.isArray(user.tags) ? user.tags : (user.tags ?? "").split(",")).filter((tag) => tag !== "");

const COLUMNS: Column<UserBody>[] = [
  { title: "Name", sort: "name", cell: (user) => <a href={href("users", user.name)}>{user.name}</a> },
  { title: "Tags", cell: (user) => tagsOf(user).map((tag) => <Badge key={tag}>{tag}</Badge>) },
  { title: "Password", cell: (user) => (user.password_hash ? "yes" : "none: can't log in with one"), from: 2 },
];

export function Users() {
  return (
    <>
      <Head title="Users">
        <DialogButton label="New user" class="primary" title="New user">
          {(close) => <NewUser close={close} />}
        </DialogButton>
      </Head>
      <Listing path="/users" what="users" columns={COLUMNS} id={(user) => user.name} />
    </>
  );
}

function NewUser({ close }: { close(): void }) {
  const [name, setName] = useState("");
  const [password, setPassword] = useState("");
  const [tags, setTags] = useState<string[]>([]);
  const create = () => call("PUT", `/users/${enc(name)}`, { password, tags });
  return (
    <Form label="Create" done={`User ${name} is there; give it permissions`} action={create} then={() => (close(), go("users", name))}>
      <Text label="Name" value={name} onChange={setName} required autocomplete="off" />
      <Text label="Password" type="password" value={password} onChange={setPassword} required autocomplete="new-password" />
      <Tags chosen={tags} onChange={setTags} />
    </Form>
  );
}

function Tags({ chosen, onChange }: { chosen: string[]; onChange(tags: string[]): void }) {
  return (
    <fieldset>
      <legend>Tags: may use</legend>
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
    const gone = await attempt(`User ${name} is deleted`, () => call("DELETE", path));
    if (gone) go("users");
    return gone;
  };
  return (
    <>
      <Head kind="User" title={name}>
        <ConfirmButton label="Delete" title={`Delete ${name}?`} text="The user and its permissions will be gone, and its connections closed." action={remove} />
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
      <Form label="Change" done="Changed" action={change} then={() => (setPassword(""), then())}>
        <Text label="New password" type="password" value={password} onChange={setPassword} autocomplete="new-password" hint="Empty: it stays as it is" />
        <Tags chosen={tags} onChange={setTags} />
      </Form>
    </Card>
  );
}
