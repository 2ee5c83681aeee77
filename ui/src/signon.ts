// Single sign-on: the authorization code flow with PKCE, by OpenID Connect. The library is loaded only where it is needed. Tokens live where
// passwords do, in sessionStorage.

import type { UserManager } from "oidc-client-ts";
import { call } from "./api";
import { login, logout, renew, session } from "./session";

/** What a resource server, or the defaults of all, say about the client (`GET /api/auth`). */
interface Client {
  oauth_client_id?: string;
  oauth_scopes?: string;
  oauth_initiated_logon_type?: "sp_initiated" | "idp_initiated";
  oauth_authorization_endpoint_params?: Record<string, string>;
  oauth_token_endpoint_params?: Record<string, string>;
}

/** Something that people log in to, and its provider. */
export interface ResourceServer extends Client {
  id: string;
  label?: string;
  oauth_provider_url: string;
  oauth_metadata_url?: string;
  authorization_endpoint?: string;
  token_endpoint?: string;
  end_session_endpoint?: string;
}

interface Answer extends Client {
  oauth_enabled: boolean;
  oauth_disable_basic_auth?: boolean;
  oauth_resource_servers?: Record<string, ResourceServer>;
}

export interface SignOn {
  servers: ResourceServer[];
  /** There is a form for a name and a password. */
  basic: boolean;
}

/** RabbitMQ's address for answers of providers, so that clients registered for it need no change. */
const CALLBACK = "js/oidc-oauth/login-callback.html";
const SERVER = "leveret.sign-on";
const TOKEN = "leveret.sign-on.token";
const FAILED = "leveret.sign-on.failed";
/** A log-in at a provider's own pages was begun in this tab. */
const AWAITED = "leveret.sign-on.awaited";

/** The folder of the pages, whatever prefix they have. */
const base = (): string => location.origin + location.pathname.replace(/js\/oidc-oauth\/.*$/, "").replace(/[^/]*$/, "");

export async function signOn(): Promise<SignOn> {
  const answer = await call<Answer>("GET", "/auth");
  const { oauth_resource_servers: servers = {}, oauth_enabled, oauth_disable_basic_auth = true, ...all } = answer;
  return {
    servers: oauth_enabled ? Object.values(servers).map((server) => ({ ...all, ...server })) : [],
    basic: !oauth_enabled || !oauth_disable_basic_auth,
  };
}

async function manager(server: ResourceServer): Promise<UserManager> {
  const { UserManager, WebStorageStateStore } = await import("oidc-client-ts");
  const endpoints = Object.entries({
    authorization_endpoint: server.authorization_endpoint,
    token_endpoint: server.token_endpoint,
    end_session_endpoint: server.end_session_endpoint,
  });
  return new UserManager({
    authority: server.oauth_provider_url,
    metadataUrl: server.oauth_metadata_url,
    metadataSeed: Object.fromEntries(endpoints.filter(([, address]) => address !== undefined)),
    client_id: server.oauth_client_id ?? "",
    scope: server.oauth_scopes ?? "openid profile",
    redirect_uri: base() + CALLBACK,
    post_logout_redirect_uri: base(),
    extraQueryParams: server.oauth_authorization_endpoint_params,
    extraTokenParams: server.oauth_token_endpoint_params,
    userStore: new WebStorageStateStore({ store: sessionStorage }),
    stateStore: new WebStorageStateStore({ store: sessionStorage }),
    // Without a refresh token the library would use a hidden frame, which the pages don't allow.
    automaticSilentRenew: false,
  });
}

/** Sends the browser to the provider. Resolves only if that fails. */
export async function begin(server: ResourceServer): Promise<void> {
  sessionStorage.setItem(SERVER, JSON.stringify(server));
  if (server.oauth_initiated_logon_type === "idp_initiated") {
    sessionStorage.setItem(AWAITED, "yes");
    location.assign(server.oauth_provider_url);
    return;
  }
  await (await manager(server)).signinRedirect({ state: location.hash });
}

/** Completes the log-in when the provider has sent the browser back, and goes on to the page where it began. What comes of it is in the
 * storage of the tab: the log-in page takes it. */
export async function complete(): Promise<void> {
  let page = "";
  try {
    const server = chosen();
    if (!server) throw new Error("this log-in was not begun in this tab");
    const user = await (await manager(server)).signinRedirectCallback();
    sessionStorage.setItem(TOKEN, user.access_token);
    if (typeof user.state === "string") page = user.state;
  } catch (error) {
    sessionStorage.setItem(FAILED, error instanceof Error ? error.message : String(error));
  }
  location.replace(base() + page);
}

/** Asks the broker who the token is. */
export async function enter(token: string): Promise<void> {
  const authorization = `Bearer ${token}`;
  const who = await call<{ name: string; tags: string[] }>("GET", "/whoami", undefined, { authorization });
  login({ authorization, name: who.name, tags: who.tags, single: true });
}

/** Why the last log-in failed, once. */
export function failure(): string | null {
  const failed = sessionStorage.getItem(FAILED);
  sessionStorage.removeItem(FAILED);
  return failed;
}

/** The token that a log-in has brought: one that began here, or one that a provider's page has sent along (`POST /login`), which is taken
 * out of the address. */
export function brought(): { token: string; awaited: boolean } | null {
  const own = sessionStorage.getItem(TOKEN);
  sessionStorage.removeItem(TOKEN);
  if (own !== null) return { token: own, awaited: true };
  const token = /^#access_token=([^&]+)$/.exec(location.hash)?.[1];
  if (token === undefined) return null;
  history.replaceState(null, "", `${location.pathname}#/`);
  const awaited = sessionStorage.getItem(AWAITED) !== null;
  sessionStorage.removeItem(AWAITED);
  return { token, awaited };
}

function chosen(): ResourceServer | null {
  const text = sessionStorage.getItem(SERVER);
  return text === null ? null : (JSON.parse(text) as ResourceServer);
}

/** Gets a new token before the old one expires, in the tab that logged in, if the provider gave it the means to. */
export async function keepFresh(): Promise<void> {
  const server = chosen();
  if (!session.get()?.single || !server?.oauth_client_id) return;
  const users = await manager(server);
  if (!(await users.getUser())?.refresh_token) return;
  users.events.addUserLoaded((user) => renew(`Bearer ${user.access_token}`));
  users.startSilentRenew();
}

/** Logs out here and, after a single sign-on, at the provider. */
export async function leave(): Promise<void> {
  const server = session.get()?.single ? chosen() : null;
  sessionStorage.removeItem(SERVER);
  if (!server?.oauth_client_id || server.oauth_initiated_logon_type === "idp_initiated") {
    logout();
    return;
  }
  const users = await manager(server);
  const user = await users.getUser();
  logout();
  try {
    if (user && (await users.metadataService.getEndSessionEndpoint())) await users.signoutRedirect({ id_token_hint: user.id_token });
  } catch {
    // The provider does not answer; here they are out all the same.
  }
  await users.removeUser();
}
