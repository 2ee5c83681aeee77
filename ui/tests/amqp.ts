// A client of AMQP 0-9-1 that can just do what tests of pages need from one: be connected, publish with confirms, consume.
import { connect, type Socket } from "node:net";

const HOST = process.env["AMQP_HOST"] ?? "127.0.0.1";
const PORT = Number(process.env["AMQP_PORT"] ?? "5672");
const FRAME_MAX = 131_072;

const short = (text: string): Buffer => Buffer.concat([Buffer.from([Buffer.byteLength(text)]), Buffer.from(text)]);
const long = (text: string | Buffer): Buffer => {
  const size = Buffer.alloc(4);
  size.writeUInt32BE(Buffer.byteLength(text));
  return Buffer.concat([size, Buffer.from(text)]);
};
const method = (group: number, kind: number, ...parts: Buffer[]): Buffer => Buffer.concat([Buffer.from([0, group, 0, kind]), ...parts]);

export class Client {
  /** Why the broker closed the connection; never, if it did not. */
  readonly closed: Promise<string>;
  private bytes = Buffer.alloc(0);
  private readonly awaited = new Map<string, () => void>();

  private sent: (reason: string) => void = () => undefined;

  private constructor(private readonly socket: Socket) {
    this.closed = new Promise((resolve) => (this.sent = resolve));
    socket.on("data", (more) => this.take(more));
    socket.on("error", () => undefined);
  }

  /** Logs in as guest, under a name that the pages show, and opens a channel with confirms. */
  static async open(name: string): Promise<Client> {
    const socket = connect(PORT, HOST);
    const client = new Client(socket);
    const properties = long(Buffer.concat([short("connection_name"), Buffer.from("S"), long(name), short("capabilities"), Buffer.from("F"), long(Buffer.concat([short("connection.blocked"), Buffer.from("t\x01")]))]));
    const start = client.wait("10.10");
    socket.write("AMQP\0\0\u0009\u0001");
    await start;
    await client.ask("10.30", 0, method(10, 11, properties, short("PLAIN"), long("\0guest\0guest"), short("en_US")));
    client.send(0, method(10, 31, Buffer.from([7, 255, 0, 2, 0, 0, 0, 0])));
    await client.ask("10.41", 0, method(10, 40, short("/"), Buffer.from([0, 0])));
    await client.ask("20.11", 1, method(20, 10, Buffer.from([0])));
    await client.ask("85.11", 1, method(85, 10, Buffer.from([0])));
    return client;
  }

  /** Publishes to a queue and waits until the broker has confirmed it. */
  async publish(queue: string, body: Buffer): Promise<void> {
    const confirmed = this.wait("60.80");
    this.send(1, method(60, 40, Buffer.from([0, 0]), short(""), short(queue), Buffer.from([0])));
    const head = Buffer.alloc(14);
    head.writeUInt16BE(60, 0);
    head.writeBigUInt64BE(BigInt(body.length), 4);
    this.frame(2, 1, head);
    for (let at = 0; at < body.length; at += FRAME_MAX - 8) this.frame(3, 1, body.subarray(at, at + FRAME_MAX - 8));
    await confirmed;
  }

  /** Takes so many messages of a queue and never settles them. */
  async hold(queue: string, prefetch: number): Promise<void> {
    await this.ask("60.11", 1, method(60, 10, Buffer.from([0, 0, 0, 0, prefetch >> 8, prefetch & 255, 0])));
    await this.ask("60.21", 1, method(60, 20, Buffer.from([0, 0]), short(queue), short(""), Buffer.from([0]), long("")));
  }

  close(): void {
    this.socket.destroy();
  }

  private ask(answer: string, channel: number, payload: Buffer): Promise<void> {
    const answered = this.wait(answer);
    this.send(channel, payload);
    return answered;
  }

  private wait(answer: string): Promise<void> {
    return new Promise((resolve, reject) => {
      this.awaited.set(answer, resolve);
      this.socket.once("close", () => reject(new Error(`the broker closed the connection instead of ${answer}`)));
    });
  }

  private send(channel: number, payload: Buffer): void {
    this.frame(1, channel, payload);
  }

  private frame(kind: number, channel: number, payload: Buffer): void {
    const head = Buffer.from([kind, channel >> 8, channel & 255, 0, 0, 0, 0]);
    head.writeUInt32BE(payload.length, 3);
    this.socket.write(Buffer.concat([head, payload, Buffer.from([0xce])]));
  }

  private take(more: Buffer): void {
    this.bytes = Buffer.concat([this.bytes, more]);
    while (this.bytes.length >= 7 && this.bytes.length >= this.bytes.readUInt32BE(3) + 8) {
      if (this.bytes[0] === 1) {
        const name = `${this.bytes.readUInt16BE(7)}.${this.bytes.readUInt16BE(9)}`;
        if (name === "10.50") this.sent(this.bytes.subarray(14, 14 + this.bytes[13]!).toString());
        this.awaited.get(name)?.();
        this.awaited.delete(name);
      }
      this.bytes = this.bytes.subarray(this.bytes.readUInt32BE(3) + 8);
    }
  }
}
