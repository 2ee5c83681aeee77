import { useState } from "preact/hooks";
import { ApiError } from "../api";
import { Text } from "../parts/form";
import { basic, expired, login } from "../session";

export function Login() {
  const [name, setName] = useState("");
  const [password, setPassword] = useState("");
  const [refused, setRefused] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const late = expired.use();
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setRefused(await enter(name, password));
    setBusy(false);
  };
  return (
    <main class="login">
      <form onSubmit={submit}>
        <h1>
          <img src="/icon.svg" alt="" width="40" height="40" /> Leveret
        </h1>
        {late && !refused && <p role="alert">Your log-in is no longer valid. Log in again to continue where you were.</p>}
        {refused && (
          <p class="refused" role="alert">
            {refused}
          </p>
        )}
        <Text label="User" value={name} onChange={setName} autocomplete="username" required />
        <Text label="Password" type="password" value={password} onChange={setPassword} autocomplete="current-password" />
        <button type="submit" class="primary" disabled={busy}>
          {busy ? "…" : "Log in"}
        </button>
      </form>
    </main>
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
      ? "This user cannot use the web UI: it needs one of the tags management, policymaker, monitoring, administrator."
      : "The user name or the password is wrong, or this user may not log in from here.";
  } catch (error) {
    return error instanceof ApiError ? error.message : "The broker does not answer.";
  }
}
