// Buttons for arguments: each begins a line with a value to write over, as RabbitMQ's pages have them.

export interface Shortcut {
  label: string;
  name: string;
  /** A value that is taken as it stands if nobody changes it. */
  example: string;
}

const shortcut = (label: string, name: string, example: string): Shortcut => ({ label, name, example });

const OF_QUEUES: Shortcut[] = [
  shortcut("Message TTL", "message-ttl", "60000"),
  shortcut("Auto expire", "expires", "1800000"),
  shortcut("Max length", "max-length", "10000"),
  shortcut("Max length bytes", "max-length-bytes", "104857600"),
  shortcut("Overflow behaviour", "overflow", "reject-publish"),
  shortcut("Dead letter exchange", "dead-letter-exchange", "dead-letters"),
  shortcut("Dead letter routing key", "dead-letter-routing-key", "dead"),
  shortcut("Delivery limit", "delivery-limit", "20"),
  shortcut("Retry delay", "retry-delay", "5000"),
  shortcut("Consumer timeout", "consumer-timeout", "1800000"),
];

const OF_STREAMS: Shortcut[] = [
  shortcut("Max length bytes", "max-length-bytes", "20000000000"),
  shortcut("Max age", "max-age", "7D"),
  shortcut("Max segment size bytes", "stream-max-segment-size-bytes", "500000000"),
  shortcut("Filter size bytes", "stream-filter-size-bytes", "16"),
  shortcut("Initial cluster size", "initial-cluster-size", "3"),
  shortcut("Leader locator", "queue-leader-locator", "balanced"),
];

const argument = ({ label, name, example }: Shortcut): Shortcut => shortcut(label, `x-${name}`, example);

const SINGLE = shortcut("Single active consumer", "x-single-active-consumer", "true");

const OF_CLASSIC: Shortcut[] = [
  ...OF_QUEUES.map(argument),
  shortcut("Maximum priority", "x-max-priority", "10"),
  SINGLE,
  shortcut("Fair key", "x-fair-key", "tenant"),
  shortcut("Deduplication", "x-message-deduplication", "true"),
];

const OF_QUORUM: Shortcut[] = [...OF_QUEUES.map(argument), SINGLE, shortcut("Initial group size", "x-quorum-initial-group-size", "3")];

export const STREAM_ARGUMENTS: Shortcut[] = OF_STREAMS.map(argument);

/** What a queue of a type takes. */
export const queueArguments = (type: string): Shortcut[] => ({ quorum: OF_QUORUM, stream: STREAM_ARGUMENTS })[type] ?? OF_CLASSIC;

export const EXCHANGE_ARGUMENTS: Shortcut[] = [shortcut("Alternate exchange", "alternate-exchange", "unrouted")];

const ALTERNATE = EXCHANGE_ARGUMENTS[0]!;
/** What operators may bound. */
const BOUNDS = new Set(["message-ttl", "expires", "max-length", "max-length-bytes", "overflow", "delivery-limit"]);

/** Keys of a policy, by what it applies to. */
export function policyKeys(kind: "policies" | "operator-policies", applies: string): Shortcut[] {
  const keys = keysOf(applies);
  return kind === "operator-policies" ? keys.filter(({ name }) => BOUNDS.has(name)) : keys;
}

function keysOf(applies: string): Shortcut[] {
  if (applies === "exchanges") return EXCHANGE_ARGUMENTS;
  if (applies === "streams") return OF_STREAMS;
  if (applies !== "all" && applies !== "queues") return OF_QUEUES;
  const known = new Set(OF_QUEUES.map(({ name }) => name));
  const queues = [...OF_QUEUES, ...OF_STREAMS.filter(({ name }) => !known.has(name))];
  return applies === "all" ? [...queues, ALTERNATE] : queues;
}
