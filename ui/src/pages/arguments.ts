// What arguments and policies mean, in words.

import { bytes, count, duration, shown } from "../format";

export interface Rule {
  name: string;
  words: string;
  source: "argument" | "policy";
}

const WORDS: Record<string, (value: unknown) => string> = {
  "queue-type": (value) => `a ${shown(value)} queue`,
  "message-ttl": (value) => `messages expire after ${duration(value)}`,
  expires: (value) => `the queue is deleted after ${duration(value)} without use`,
  "max-length": (value) => `at most ${count(value)} ready messages`,
  "max-length-bytes": (value) => `at most ${bytes(value)} of ready messages`,
  overflow: (value) => ({ "drop-head": "over the limit, the oldest message is dropped or dead-lettered", "reject-publish": "over the limit, new messages are rejected", "reject-publish-dlx": "over the limit, new messages are rejected and dead-lettered" })[String(value)] ?? shown(value),
  "dead-letter-exchange": (value) => `dead-lettered messages go to the exchange ${value === "" ? "(AMQP default)" : shown(value)}`,
  "dead-letter-routing-key": (value) => `dead-lettered messages get the routing key ${shown(value)}`,
  "max-priority": (value) => `priorities from 0 to ${shown(value)}`,
  "single-active-consumer": (value) => (value === true ? "one active consumer at a time" : "all consumers are active"),
  "delivery-limit": (value) => `a message is redelivered at most ${count(value)} times`,
  "consumer-timeout": (value) => `a delivery must be acknowledged within ${duration(value)}`,
  "consumer-disconnected-timeout": (value) => `consumers of a node that cannot be reached keep what they hold for ${duration(value)}`,
  "dead-letter-strategy": (value) => (value === "at-least-once" ? "a dead letter is kept until a queue has taken it" : "a dead letter is sent once"),
  "quorum-initial-group-size": (value) => `begins with ${count(value)} members`,
  "quorum-target-group-size": (value) => `is to have ${count(value)} members`,
  "target-group-size": (value) => `is to have ${count(value)} members`,
  "queue-leader-locator": (value) => (value === "balanced" ? "led by the node that leads the fewest queues" : "led by the node that declared it"),
  "max-age": (value) => `what is older than ${shown(value)} is deleted, a whole segment at a time`,
  "stream-max-segment-size-bytes": (value) => `a segment is closed once it has ${bytes(value)}`,
  "stream-filter-size-bytes": (value) => `the filter of a chunk has ${bytes(value)}`,
  "initial-cluster-size": (value) => `begins with ${count(value)} members`,
  "queue-mode": (value) => shown(value),
  "alternate-exchange": (value) => `unroutable messages go to the exchange ${shown(value)}`,
  "message-deduplication": (value) => (value === true ? "duplicates are dropped" : "duplicates are kept"),
  "fair-key": (value) => `messages are delivered fairly by the header ${shown(value)}`,
};

/** What means something else for a stream. */
const OF_STREAMS: typeof WORDS = {
  "max-length-bytes": (value) => `above ${bytes(value)} the oldest segments are deleted`,
};

/** Each rule once: an argument counts before the policy, but of two limits the smaller one does. Of streams the policy counts. */
export function explained(given: unknown, policy: unknown, type?: string): Rule[] {
  const rules = new Map<string, Rule>();
  const isStream = type === "stream";
  const words = isStream ? { ...WORDS, ...OF_STREAMS } : WORDS;
  const rule = (name: string, value: unknown, source: Rule["source"]): Rule => ({ name, words: words[name]?.(value) ?? shown(value), source });
  for (const [name, value] of entries(policy)) rules.set(name, rule(name, value, "policy"));
  const limits = new Map(entries(policy).filter(([, value]) => typeof value === "number"));
  for (const [full, value] of entries(given)) {
    const name = full.replace(/^x-/, "");
    if (isStream && (rules.has(name) || name === "queue-type")) continue;
    const limit = limits.get(name);
    if (typeof limit === "number" && typeof value === "number" && limit < value) continue;
    if (name === "queue-type" && value === "classic") continue;
    rules.set(name, rule(name, value, "argument"));
  }
  return [...rules.values()];
}

function entries(table: unknown): [string, unknown][] {
  return typeof table === "object" && table !== null && !Array.isArray(table) ? Object.entries(table) : [];
}
