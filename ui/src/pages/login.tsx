import { useEffect, useState } from "preact/hooks";
import { ApiError } from "../api";
import { Text } from "../parts/form";
import { basic, expired, login } from "../session";
import { begin, brought, enter as enterWithToken, failure, signOn, type SignOn } from "../signon";

export function Login() {
  const [choices, setChoices] = useState<SignOn | null>(null);
  const [refused, setRefused] = useState<string | null>(null);
  const [offered, setOffered] = useState<string | null>(null);
  const late = expired.use();
  const withToken = async (token: string) => setRefused(await enterWithToken(token).then(() => null, whyNot));
  useEffect(() => {
    const failed = failure();
    if (failed !== null) setRefused(`Single sign-on failed: ${failed}`);
    // A token that nobody here asked for may be somebody else's.
    const token = brought();
    if (token?.awaited) void withToken(token.token);
    else if (token) setOffered(token.token);
    signOn().then(setChoices, () => setChoices({ servers: [], basic: true }));
  }, []);
  if (!choices) return null;
  return (
    <main class="login">
      <div class="log-in">
        <h1>
          <img src="/icon.svg" alt="" width="40" height="40" /> Leveret
        </h1>
        {late && !refused && <p role="alert">Your log-in is no longer valid. Log in again to continue where you were.</p>}
        {refused && (
          <p class="refused" role="alert">
            {refused}
          </p>
        )}
        {offered && (
          <>
            <p>Another page has sent you here with a token to log in with.</p>
            <button type="button" class="primary" onClick={() => void withToken(offered).then(() => setOffered(null))}>
              Continue
            </button>
          </>
        )}
        {choices.servers.map((server) => (
          <button key={server.id} type="button" class={choices.basic ? "" : "primary"} onClick={() => begin(server).catch((error: unknown) => setRefused(`Single sign-on failed: ${words(error)}`))}>
            Log in with {server.label ?? (choices.servers.length === 1 ? "single sign-on" : server.id)}
          </button>
        ))}
        {choices.basic && <Password refuse={setRefused} />}
      </div>
    </main>
  );
}

const words = (error: unknown): string => (error instanceof Error ? error.message : String(error));

function whyNot(error: unknown): string {
  if (!(error instanceof ApiError) || error.status !== 401) return words(error);
  return error.message === "Not management user" ? NO_TAG : "The broker does not accept this token; its log says why.";
}

const NO_TAG = "This user cannot use the web UI: it needs one of the tags management, policymaker, monitoring, administrator.";

function Password({ refuse }: { refuse(why: string | null): void }) {
  const [name, setName] = useState("");
  const [password, setPassword] = useState("");
  const [busy, setBusy] = useState(false);
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    refuse(await enter(name, password));
    setBusy(false);
  };
  return (
    <form onSubmit={submit}>
      <Text label="User" value={name} onChange={setName} autocomplete="username" required />
      <Text label="Password" type="password" value={password} onChange={setPassword} autocomplete="current-password" />
      <button type="submit" class="primary" disabled={busy}>
        {busy ? "…" : "Log in"}
      </button>
    </form>
  );
}

async function enter(name: string, password: string): Promise<string | null> {
  const authorization = basic(name, password);
  try {
    const response = await fetch("api/whoami", { headers: { authorization }, credentials: "omit", cache: "no-store" });
    const body = (await response.json()) as { name?: string; tags?: string[] | string; reason?: string };
    if (response.ok) {
      const tags = Array.isArray(body.tags) ? body.tags : (body.tags ?? "").split(",");
      login({ authorization, name: body.name ?? name, tags });
      return null;
    }
    if (response.status !== 401) return body.reason ?? `The broker answered ${response.status}.`;
    return body.reason === "Not management user"
      ? NO_TAG
      : "The user name or the password is wrong, or this user may not log in from here.";
  } catch (error) {
    return error instanceof ApiError ? error.message : "The broker does not answer.";
  }
}
