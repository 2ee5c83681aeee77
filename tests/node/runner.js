// What the suites share: how a test is registered and reported, and how it reaches the broker.
'use strict';

const net = require('node:net');
const crypto = require('node:crypto');
const amqp = require('amqplib');

const HOST = process.env.AMQP_HOST || '127.0.0.1';
const PORT = Number(process.env.AMQP_PORT || 5672);
const ALARM_PORT = Number(process.env.ALARM_PORT || PORT);
const LEVERET = process.env.LEVERET !== '0';
const DEADLINE_MS = 30000;

const tests = [];

/** Registers a test; options: `leveretOnly` (a reason) and `control` (needs the harness). */
function test(name, options, body) {
  if (typeof options === 'function') [options, body] = [{}, options];
  tests.push({ name, options, body });
}

function skipReason({ leveretOnly, control }) {
  if (leveretOnly && !LEVERET) return leveretOnly;
  if (control && !process.env.CONTROL_PORT) return 'no control over this broker';
  return null;
}

/** What a test gets: connections that are closed after it, fresh names, waiting. */
class World {
  constructor() {
    this.connections = [];
  }

  async connect(port = PORT, options = {}) {
    const connection = await amqp.connect({ hostname: HOST, port, ...options });
    connection.on('error', () => {});
    this.connections.push(connection);
    return connection;
  }

  async channel() {
    return quiet(await (await this.connect()).createChannel());
  }

  async confirmChannel() {
    return quiet(await (await this.connect()).createConfirmChannel());
  }

  name(suffix = '') {
    return `node.${crypto.randomBytes(6).toString('hex')}${suffix}`;
  }

  async close() {
    await Promise.all(this.connections.map((connection) => connection.close().catch(() => {})));
  }
}

/** Channel errors reach the test through rejected promises; as events they would end the process. */
function quiet(channel) {
  channel.on('error', (error) => {
    channel.lastError = error;
  });
  return channel;
}

/** Resolves with the next event of that name. */
function event(emitter, name, limitMs = DEADLINE_MS) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`no '${name}' within ${limitMs} ms`)), limitMs);
    emitter.once(name, (...values) => {
      clearTimeout(timer);
      resolve(values[0]);
    });
  });
}

/** Consumes into a list and lets a test wait until the list has a length. */
class Inbox {
  constructor() {
    this.messages = [];
    this.waiting = [];
  }

  async consume(channel, queue, options) {
    const answer = await channel.consume(queue, (message) => this.take(message), options);
    this.tag = answer.consumerTag;
    return this;
  }

  take(message) {
    this.messages.push(message);
    this.waiting = this.waiting.filter(({ count, resolve }) => {
      if (this.messages.length < count) return true;
      resolve(this.messages);
      return false;
    });
  }

  until(count) {
    if (this.messages.length >= count) return Promise.resolve(this.messages);
    return new Promise((resolve, reject) => {
      this.waiting.push({ count, resolve });
      setTimeout(() => reject(new Error(`${this.messages.length} of ${count} deliveries`)), DEADLINE_MS).unref();
    });
  }
}

/** Everything in the queue, as text. */
async function drain(channel, queue) {
  const bodies = [];
  for (;;) {
    const message = await channel.get(queue, { noAck: true });
    if (!message) return bodies;
    bodies.push(message.content.toString());
  }
}

/** Asks the harness for something to happen to the broker. */
function control(verb) {
  return new Promise((resolve, reject) => {
    const socket = net.connect(Number(process.env.CONTROL_PORT), '127.0.0.1', () => socket.write(`${verb}\n`));
    let answer = '';
    socket.on('data', (data) => {
      answer += data;
      if (!answer.includes('\n')) return;
      socket.destroy();
      if (answer.trim() === 'ok') resolve();
      else reject(new Error(`${verb}: ${answer.trim()}`));
    });
    socket.on('error', reject);
  });
}

async function runAll() {
  let failed = 0;
  for (const { name, options, body } of tests) {
    const reason = skipReason(options);
    if (reason) {
      console.log(`skip node ${name}: ${reason}`);
      continue;
    }
    const world = new World();
    const started = Date.now();
    let timer;
    const limit = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error('the test took more than 90 s')), 90000);
    });
    try {
      await Promise.race([body(world), limit]);
      console.log(`ok   node ${name} (${((Date.now() - started) / 1000).toFixed(2)} s)`);
    } catch (error) {
      failed += 1;
      console.log(`FAIL node ${name}`);
      console.log(String(error.stack || error).replace(/^/gm, '     '));
    } finally {
      clearTimeout(timer);
      await world.close();
    }
  }
  process.exit(failed ? 1 : 0);
}

module.exports = { test, runAll, event, Inbox, drain, control, quiet, ALARM_PORT, DEADLINE_MS };
