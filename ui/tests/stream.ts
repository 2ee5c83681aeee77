// A client of the stream protocol that can just do what tests of pages need from one: be connected, publish with confirms, read, store an offset.
import { connect, type Socket } from "node:net";

const HOST = process.env["AMQP_HOST"] ?? "127.0.0.1";
/** Absent where the broker is a cluster: a stream is on one of its nodes. */
export const STREAM_PORT = process.env["STREAM_PORT"];

const number = (size: 1 | 2 | 4 | 8, value: number): Buffer => {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(BigInt(value));
  return bytes.subarray(8 - size);
};
const text = (value: string): Buffer => Buffer.concat([number(2, Buffer.byteLength(value)), Buffer.from(value)]);
const bytes = (value: Buffer): Buffer => Buffer.concat([number(4, value.length), value]);
const table = (entries: [string, string][]): Buffer => Buffer.concat([number(4, entries.length), ...entries.flatMap((entry) => entry.map(text))]);

/** Keys of commands. */
const KEY = { declarePublisher: 1, publish: 2, confirm: 3, subscribe: 7, deliver: 8, storeOffset: 10, peerProperties: 17, handshake: 18, authenticate: 19, tune: 20, open: 21, close: 22 };
/** What an answer's key has beside that of its question. */
const ANSWER = 0x8000;

export class StreamClient {
  /** Settles when the connection is over. */
  readonly closed: Promise<void>;
  private buffered = Buffer.alloc(0);
  private next = 0;
  private readonly awaited = new Map<number, () => void>();

  private constructor(private readonly socket: Socket) {
    this.closed = new Promise((resolve) => socket.once("close", () => resolve()));
    socket.on("data", (more) => this.take(more));
    socket.on("error", () => undefined);
  }

  /** Logs in as guest, under a name that the pages show. */
  static async open(name: string): Promise<StreamClient> {
    const socket = connect(Number(STREAM_PORT), HOST);
    const client = new StreamClient(socket);
    await client.ask(KEY.peerProperties, table([["connection_name", name], ["product", "pages"]]));
    await client.ask(KEY.handshake);
    const tuned = client.wait(KEY.tune);
    await client.ask(KEY.authenticate, text("PLAIN"), bytes(Buffer.from("\0guest\0guest")));
    await tuned;
    client.send(KEY.tune, number(4, 1_048_576), number(4, 0));
    await client.ask(KEY.open, text("/"));
    return client;
  }

  /** Publishes so many messages under a reference, and waits for the first confirm. */
  async publish(stream: string, reference: string, many: number): Promise<void> {
    await this.ask(KEY.declarePublisher, number(1, 0), text(reference), text(stream));
    const confirmed = this.wait(KEY.confirm);
    // Each message is a section of data, as AMQP 1.0 has it.
    const messages = Array.from({ length: many }, (_, at) => Buffer.concat([number(8, at + 1), bytes(Buffer.from([0, 0x53, 0x75, 0xa0, 1, 65]))]));
    this.send(KEY.publish, number(1, 0), number(4, many), ...messages);
    await confirmed;
  }

  /** Reads from the first message on, and waits for the first chunk. */
  async read(stream: string): Promise<void> {
    const delivered = this.wait(KEY.deliver);
    await this.ask(KEY.subscribe, number(1, 0), text(stream), number(2, 1), number(2, 10));
    await delivered;
  }

  storeOffset(stream: string, reference: string, offset: number): void {
    this.send(KEY.storeOffset, text(reference), text(stream), number(8, offset));
  }

  close(): void {
    this.socket.destroy();
  }

  private ask(key: number, ...parts: Buffer[]): Promise<void> {
    const answered = this.wait(key | ANSWER);
    this.next += 1;
    this.send(key, number(4, this.next), ...parts);
    return answered;
  }

  private wait(key: number): Promise<void> {
    return new Promise((resolve, reject) => {
      this.awaited.set(key, resolve);
      this.socket.once("close", () => reject(new Error(`the broker closed the connection instead of ${key}`)));
    });
  }

  private send(key: number, ...parts: Buffer[]): void {
    this.socket.write(bytes(Buffer.concat([number(2, key), number(2, 1), ...parts])));
  }

  private take(more: Buffer): void {
    this.buffered = Buffer.concat([this.buffered, more]);
    while (this.buffered.length >= 8 && this.buffered.length >= this.buffered.readUInt32BE(0) + 4) {
      const key = this.buffered.readUInt16BE(4);
      if (key === KEY.close) {
        // The broker that closes waits for an answer, the question's number and "fine", and has the client hang up.
        this.send(KEY.close | ANSWER, this.buffered.subarray(8, 12), number(2, 1));
        this.socket.end();
      }
      this.awaited.get(key)?.();
      this.awaited.delete(key);
      this.buffered = this.buffered.subarray(this.buffered.readUInt32BE(0) + 4);
    }
  }
}
