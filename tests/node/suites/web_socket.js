// AMQP inside a WebSocket on the port of the HTTP API, with a client made for browsers.
'use strict';

const assert = require('node:assert/strict');
const http = require('node:http');
const WebSocket = require('ws');
const { AMQPWebSocketClient } = require('@cloudamqp/amqp-client');
const { test, event } = require('../runner');

const OURS = { leveretOnly: 'RabbitMQ speaks AMQP 0-9-1 on TCP only' };
const ADDRESS = `${process.env.AMQP_HOST}:${process.env.HTTP_PORT}`;
const URL = `ws://${ADDRESS}/ws/amqp`;

// What browsers have.
globalThis.WebSocket ??= WebSocket;

async function connected(body, vhost = '/', password = 'guest') {
  const client = new AMQPWebSocketClient({ url: URL, vhost, username: 'guest', password });
  const connection = await client.connect();
  try {
    return await body(await connection.channel());
  } finally {
    await connection.close();
  }
}

test('messages of all sizes go and come through a WebSocket', OURS, async () => {
  await connected(async (channel) => {
    const { name } = await channel.queueDeclare('', { exclusive: true });
    await channel.confirmSelect();
    const bodies = [0, 1, 125, 126, 65535, 65536, 200000, 1000000].map((size) => Buffer.alloc(size, size % 251));
    for (const body of bodies) await channel.basicPublish('', name, body, { deliveryMode: 2 });
    const seen = [];
    await new Promise((resolve) => {
      channel.basicConsume(name, { noAck: false }, (message) => {
        seen.push(Buffer.from(message.body ?? []));
        channel.basicAck(message.deliveryTag);
        if (seen.length === bodies.length) resolve();
      });
    });
    assert.deepEqual(seen.map((body) => body.length), bodies.map((body) => body.length));
    seen.forEach((body, at) => assert.ok(body.equals(bodies[at])));
  });
});

test('a WebSocket has the same passwords and errors as a port', OURS, async () => {
  await assert.rejects(connected(() => {}, '/', 'wrong'), /ACCESS_REFUSED|refused|closed|disconnected/i);
  await connected(async (channel) => {
    await assert.rejects(channel.queueDeclare('amq.mine', { passive: false }), /ACCESS_REFUSED/);
  });
});

test('a WebSocket answers pings, and says goodbye with a code', OURS, async () => {
  const socket = new WebSocket(URL, 'amqp');
  await event(socket, 'open');
  assert.equal(socket.protocol, 'amqp');
  socket.ping('there?');
  assert.equal((await event(socket, 'pong')).toString(), 'there?');
  const first = event(socket, 'message');
  socket.send(Buffer.from('AMQP\x00\x00\x09\x01', 'latin1'));
  assert.equal((await first)[0], 1);
  socket.send('text');
  assert.equal(await event(socket, 'close'), 1003);
});

test('pages of other sites do not come in by a WebSocket', OURS, async () => {
  const refused = async (path, options, protocol) => {
    const socket = new WebSocket(`ws://${ADDRESS}${path}`, protocol ?? [], options);
    return (await event(socket, 'error')).message;
  };
  assert.match(await refused('/ws/amqp', { origin: 'https://evil.example' }), /403/);
  assert.match(await refused('/ws/amqp', {}, 'mqtt'), /400/);
  assert.match(await refused('/ws/other', {}), /40[05]|404/);
  const own = new WebSocket(URL, { origin: `http://${ADDRESS}` });
  await event(own, 'open');
  own.terminate();
  const plain = await new Promise((resolve) => http.get(`http://${ADDRESS}/ws/amqp`, resolve));
  plain.resume();
  assert.equal(plain.statusCode, 400);
});
