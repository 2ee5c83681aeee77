// A crowd for scale.spec.ts: 100,000 queues and 5,000 connections, each with a channel, that stay until this process ends.
//
//   node tests/crowd.mjs 127.0.0.1 5672 15672     guest logs in; says "ready" when all are there
import { connect } from "node:net";

const [host = "127.0.0.1", amqp = "5672", http = "15672"] = process.argv.slice(2);
const QUEUES = 100_000;
const CONNECTIONS = 5_000;
/** So many queues stand in one document of definitions: a body has 10 MiB at most. */
const PART = 20_000;
/** So many connections are opened at a time. */
const AT_ONCE = 50;

const authorization = `Basic ${Buffer.from("guest:guest").toString("base64")}`;
for (let from = 0; from < QUEUES; from += PART) {
  const queues = Array.from({ length: PART }, (_, at) => ({ name: `scale.${String(from + at).padStart(6, "0")}`, vhost: "/", durable: true, auto_delete: false, arguments: {} }));
  const response = await fetch(`http://${host}:${http}/api/definitions`, { method: "POST", headers: { authorization, "content-type": "application/json" }, body: JSON.stringify({ queues }) });
  if (!response.ok) throw new Error(`definitions: ${response.status} ${await response.text()}`);
}

const frame = (channel, payload) => {
  const head = Buffer.from([1, channel >> 8, channel & 255, 0, 0, 0, 0]);
  head.writeUInt32BE(payload.length, 3);
  return Buffer.concat([head, payload, Buffer.from([0xce])]);
};
const long = (text) => {
  const size = Buffer.alloc(4);
  size.writeUInt32BE(text.length);
  return Buffer.concat([size, Buffer.from(text)]);
};
const START_OK = frame(0, Buffer.concat([Buffer.from([0, 10, 0, 11, 0, 0, 0, 0, 5]), Buffer.from("PLAIN"), long("\0guest\0guest"), Buffer.from([5]), Buffer.from("en_US")]));
// No heartbeats: nobody is there to send any.
const TUNE_OK = frame(0, Buffer.from([0, 10, 0, 31, 7, 255, 0, 2, 0, 0, 0, 0]));
const OPEN = frame(0, Buffer.from([0, 10, 0, 40, 1, 0x2f, 0, 0]));
const CHANNEL_OPEN = frame(1, Buffer.from([0, 20, 0, 10, 0]));

/** What is answered to what the server says, by class and method. */
const ANSWERS = { "10.10": [START_OK], "10.30": [TUNE_OK, OPEN], "10.41": [CHANNEL_OPEN] };

const open = () =>
  new Promise((resolve, reject) => {
    const socket = connect(Number(amqp), host, () => socket.write("AMQP\0\0\u0009\u0001"));
    let bytes = Buffer.alloc(0);
    socket.on("error", reject);
    socket.on("data", (more) => {
      bytes = Buffer.concat([bytes, more]);
      while (bytes.length >= 7 && bytes.length >= bytes.readUInt32BE(3) + 8) {
        const method = `${bytes.readUInt16BE(7)}.${bytes.readUInt16BE(9)}`;
        bytes = bytes.subarray(bytes.readUInt32BE(3) + 8);
        for (const answer of ANSWERS[method] ?? []) socket.write(answer);
        if (method === "20.11") resolve();
      }
    });
  });

for (let done = 0; done < CONNECTIONS; done += AT_ONCE) await Promise.all(Array.from({ length: AT_ONCE }, open));
console.log("ready");
