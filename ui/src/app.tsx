// The frame of every page: who is logged in, where one can go, how fresh the figures are.

import type { ComponentChildren } from "preact";
import { Component } from "preact";
import { useEffect, useState } from "preact/hooks";
import { duration } from "./format";
import { AlarmBar } from "./parts/alarms";
import { Notices } from "./parts/notices";
import { heard } from "./live";
import { freshness, interval, useApi } from "./poll";
import { href, place } from "./router";
import { asking, isAdministrator, isMonitor, session } from "./session";
import { keepFresh, leave } from "./signon";
import { theme } from "./theme";
import { pageFor } from "./pages";
import { Login } from "./pages/login";
import { vhost } from "./vhost";

export function App() {
  const asker = session.use();
  const here = place.use();
  const waits = asking.use();
  const [open, setOpen] = useState(false);
  useEffect(() => {
    setOpen(false);
    document.title = `${here.parts.map((part) => part || "default").join(" · ") || "Overview"} – Leveret`;
    document.getElementById("main")?.focus();
    scrollTo(0, 0);
  }, [here.parts.join("/")]);
  useEffect(() => void keepFresh().catch(() => undefined), [asker?.name]);
  // Another tab may be logged in already.
  if (!asker && waits) return null;
  if (!asker) {
    return (
      <>
        <Login />
        <Notices />
      </>
    );
  }
  return (
    <div class={open ? "frame open" : "frame"}>
      <a class="skip" href="#main" onClick={(event) => (event.preventDefault(), document.getElementById("main")?.focus())}>
        Skip to the page
      </a>
      <div class="top">
        <Bar open={open} toggle={() => setOpen(!open)} />
        <AlarmBar />
      </div>
      <Rooms />
      <main id="main" tabIndex={-1}>
        <Guard key={here.parts.join("/")}>{pageFor(here.parts)}</Guard>
      </main>
      <Notices />
    </div>
  );
}

/** A page that fails is said to have failed; the rest of the frame goes on. */
class Guard extends Component<{ children: ComponentChildren }, { failed: boolean }> {
  override state = { failed: false };

  static override getDerivedStateFromError() {
    return { failed: true };
  }

  override render() {
    if (!this.state.failed) return this.props.children;
    return (
      <div class="empty">
        <h1>This page cannot be shown</h1>
        <p>The broker sent something that the page did not expect. The other pages go on working.</p>
        <button type="button" onClick={() => this.setState({ failed: false })}>
          Try again
        </button>
      </div>
    );
  }
}

function Bar({ open, toggle }: { open: boolean; toggle(): void }) {
  const asker = session.use();
  const vhosts = useApi<{ name: string }[]>("/vhosts?columns=name");
  const chosen = vhost.use();
  const names = Array.isArray(vhosts.value) ? vhosts.value.map(({ name }) => name) : [];
  return (
    <header class="bar">
      <button type="button" class="plain menu" aria-expanded={open} aria-controls="rooms" aria-label="Menu" onClick={toggle}>
        ☰
      </button>
      <a class="brand" href="#/">
        <img src="/icon.svg" alt="" width="24" height="24" /> Leveret
      </a>
      <Fresh />
      <label class="chooser">
        <span class="hidden">Virtual host</span>
        <select value={chosen} onChange={(event) => vhost.set(event.currentTarget.value)}>
          <option value="">All vhosts</option>
          {names.map((name) => (
            <option key={name} value={name} selected={name === chosen}>
              {name}
            </option>
          ))}
        </select>
      </label>
      <details class="account">
        <summary>{asker?.name}</summary>
        <div>
          <p class="muted">{asker?.tags.join(", ") || "no tags"}</p>
          <label>
            Refresh{" "}
            <select value={interval.use()} onChange={(event) => interval.set(event.currentTarget.value)}>
              {[["1", "every second"], ["5", "every 5 s"], ["10", "every 10 s"], ["30", "every 30 s"], ["0", "never"]].map(([value, words]) => (
                <option key={value} value={value} selected={value === interval.get()}>
                  {words}
                </option>
              ))}
            </select>
          </label>
          <label>
            Colours{" "}
            <select value={theme.use()} onChange={(event) => theme.set(event.currentTarget.value)}>
              {["auto", "light", "dark"].map((value) => (
                <option key={value} value={value} selected={value === theme.get()}>
                  {value}
                </option>
              ))}
            </select>
          </label>
          <button type="button" onClick={() => void leave()}>
            Log out
          </button>
        </div>
      </details>
    </header>
  );
}

/** How old the figures on the page are. */
function Fresh() {
  const { at, lost } = freshness.use();
  const [, tick] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => tick((count) => count + 1), 1000);
    return () => clearInterval(timer);
  }, []);
  const age = at === 0 ? null : Math.max(0, Date.now() - at);
  const words = lost ? `No connection${age === null ? "" : `, figures are ${duration(age)} old`}; trying again` : age === null ? "Loading" : age < (heard.get() > 0 ? 1000 * Number(interval.get()) + 3000 : 2000) ? "Live" : `Updated ${duration(age)} ago`;
  return (
    <p class={lost ? "fresh lost" : "fresh"} role={lost ? "alert" : undefined}>
      {words}
    </p>
  );
}

function Rooms() {
  const [first = "", second = ""] = place.use().parts;
  // What is about streams has two words.
  const room = first === "stream" ? `${first}/${second}` : first;
  const link = (to: string, words: string, also: string[] = []) => (
    <li>
      <a href={to === "" ? "#/" : href(...to.split("/"))} aria-current={room === to || also.includes(room) ? "page" : undefined}>
        {words}
      </a>
    </li>
  );
  return (
    <nav id="rooms" class="rooms" aria-label="Pages">
      <ul>
        {link("", "Overview")}
        {link("queues", "Queues")}
        {link("exchanges", "Exchanges")}
        {link("connections", "Connections")}
        {link("channels", "Channels")}
        {link("consumers", "Consumers")}
        {link("stream/connections", "Stream connections")}
        {link("stream/super-streams", "Super streams")}
      </ul>
      <ul>
        {isAdministrator() && link("users", "Users")}
        {link("vhosts", "Virtual hosts")}
        {link("policies", "Policies")}
        {link("limits", "Limits")}
        {isAdministrator() && link("definitions", "Definitions")}
        {isMonitor() && link("node", "Node", ["nodes"])}
        {isMonitor() && link("logs", "Log", ["audit"])}
        {isAdministrator() && link("trace", "Tracing")}
      </ul>
      <ul>
        {link("connect", "Connect a client")}
        {link("coming-from-rabbitmq", "Coming from RabbitMQ")}
        {link("api", "HTTP API")}
      </ul>
    </nav>
  );
}
