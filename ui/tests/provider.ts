// An OAuth 2 provider for tests: it describes itself, logs everybody in at once, checks PKCE and signs tokens.
import { createHash, generateKeyPairSync, sign } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

const b64 = (text: string | Buffer): string => Buffer.from(text).toString("base64url");

export class Provider {
  readonly asked: string[] = [];
  private readonly keys = generateKeyPairSync("rsa", { modulusLength: 2048 });
  private readonly codes = new Map<string, { challenge: string; nonce?: string }>();
  private server: Server | undefined;
  /** What tokens claim besides what they must. */
  claims: Record<string, unknown> = { scope: "rabbitmq.tag:administrator rabbitmq.read:*/* rabbitmq.write:*/* rabbitmq.configure:*/*" };
  seconds = 600;

  get address(): string {
    return `http://127.0.0.1:${(this.server?.address() as AddressInfo).port}`;
  }

  async open(port = 0): Promise<this> {
    const server = createServer((request, response) => void this.answer(request, response));
    await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
    this.server = server;
    return this;
  }

  close(): void {
    this.server?.closeAllConnections();
    this.server?.close();
  }

  token(claims: Record<string, unknown> = {}): string {
    const now = Math.floor(Date.now() / 1000);
    const all = { iss: this.address, sub: "jane", aud: "rabbitmq", iat: now, exp: now + this.seconds, ...this.claims, ...claims };
    const signed = `${b64(JSON.stringify({ alg: "RS256", kid: "one" }))}.${b64(JSON.stringify(all))}`;
    return `${signed}.${b64(sign("sha256", Buffer.from(signed), this.keys.privateKey))}`;
  }

  private async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "/", this.address);
    this.asked.push(`${request.method} ${url.pathname}`);
    response.setHeader("access-control-allow-origin", "*");
    const json = (body: unknown, status = 200) => response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
    const send = (to: string) => response.writeHead(302, { location: to }).end();
    const given = url.searchParams;
    if (url.pathname === "/.well-known/openid-configuration") {
      const at = (path: string) => `${this.address}/${path}`;
      return void json({ issuer: this.address, authorization_endpoint: at("authorize"), token_endpoint: at("token"), jwks_uri: at("keys"), end_session_endpoint: at("logout") });
    }
    if (url.pathname === "/keys") return void json({ keys: [{ ...this.keys.publicKey.export({ format: "jwk" }), kid: "one", use: "sig", alg: "RS256" }] });
    if (url.pathname === "/authorize") {
      const code = b64(`${this.codes.size}`);
      this.codes.set(code, { challenge: given.get("code_challenge") ?? "", nonce: given.get("nonce") ?? undefined });
      return void send(`${given.get("redirect_uri")}?${new URLSearchParams({ code, state: given.get("state") ?? "" })}`);
    }
    if (url.pathname === "/token") {
      let body = "";
      for await (const part of request) body += part;
      const form = new URLSearchParams(body);
      const begun = this.codes.get(form.get("code") ?? "");
      const proven = createHash("sha256").update(form.get("code_verifier") ?? "").digest("base64url") === begun?.challenge;
      if (!proven || form.get("client_id") !== "pages") return void json({ error: "invalid_grant" }, 400);
      const id = this.token({ aud: "pages", nonce: begun?.nonce });
      return void json({ access_token: this.token(), id_token: id, token_type: "Bearer", expires_in: this.seconds });
    }
    if (url.pathname === "/logout") return void send(given.get("post_logout_redirect_uri") ?? "/");
    // The provider's own page, which sends people to the broker with a token.
    if (url.pathname === "/portal") {
      response.writeHead(200, { "content-type": "text/html" });
      return void response.end(`<form method="post" action="${given.get("to")}"><input name="access_token" value="${this.token()}"><button>Open</button></form>`);
    }
    json({ error: "not found" }, 404);
  }
}
