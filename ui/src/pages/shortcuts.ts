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

const argument = ({ label, name, example }: Shortcut): Shortcut => shortcut(label, `x-${name}`, example);

export const QUEUE_ARGUMENTS: Shortcut[] = [
  ...OF_QUEUES.map(argument),
  shortcut("Maximum priority", "x-max-priority", "10"),
  shortcut("Single active consumer", "x-single-active-consumer", "true"),
  shortcut("Fair key", "x-fair-key", "tenant"),
  shortcut("Deduplication", "x-message-deduplication", "true"),
];

export const EXCHANGE_ARGUMENTS: Shortcut[] = [shortcut("Alternate exchange", "alternate-exchange", "unrouted")];

const ALTERNATE = EXCHANGE_ARGUMENTS[0]!;
/** What operators may bound. */
const BOUNDS = new Set(["message-ttl", "expires", "max-length", "max-length-bytes", "overflow", "delivery-limit"]);

/** Keys of a policy, by what it applies to. */
export function policyKeys(kind: "policies" | "operator-policies", applies: string): Shortcut[] {
  if (kind === "operator-policies") return OF_QUEUES.filter(({ name }) => BOUNDS.has(name));
  if (applies === "exchanges") return EXCHANGE_ARGUMENTS;
  return applies === "all" ? [...OF_QUEUES, ALTERNATE] : OF_QUEUES;
}
