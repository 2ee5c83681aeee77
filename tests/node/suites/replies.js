// Direct reply-to, CC and BCC.
'use strict';

const assert = require('node:assert/strict');
const { test } = require('../runner');

const REPLY_TO = 'amq.rabbitmq.reply-to';

test('requests are answered over direct reply-to', async (world) => {
  const server = await world.channel();
  const { queue } = await server.assertQueue('', { exclusive: true });
  await server.consume(
    queue,
    (request) => {
      const { replyTo, correlationId } = request.properties;
      server.sendToQueue(replyTo, Buffer.from(request.content.toString().toUpperCase()), { correlationId });
    },
    { noAck: true },
  );
  const client = await world.channel();
  const pending = new Map();
  await client.consume(REPLY_TO, (answer) => pending.get(answer.properties.correlationId)(answer.content.toString()), { noAck: true });
  const ask = (id, text) =>
    new Promise((resolve) => {
      pending.set(id, resolve);
      client.sendToQueue(queue, Buffer.from(text), { replyTo: REPLY_TO, correlationId: id });
    });
  const answers = await Promise.all(Array.from({ length: 200 }, (_, n) => ask(String(n), `question ${n}`)));
  assert.deepEqual(answers, Array.from({ length: 200 }, (_, n) => `QUESTION ${n}`));
});

test('a request without a consumer of its reply is refused', async (world) => {
  const channel = await world.channel();
  const closed = new Promise((resolve) => channel.once('error', resolve));
  channel.sendToQueue('nobody', Buffer.from('?'), { replyTo: REPLY_TO });
  const error = await closed;
  assert.equal(error.code, 406);
  assert.match(error.message, /fast reply consumer does not exist/);
});

test('CC and BCC copy a message', async (world) => {
  const channel = await world.channel();
  const queues = [];
  for (let n = 0; n < 3; n += 1) queues.push((await channel.assertQueue('', { exclusive: true })).queue);
  channel.sendToQueue(queues[0], Buffer.from('m'), { CC: queues[1], BCC: queues[2] });
  for (const queue of queues) {
    const message = await channel.get(queue, { noAck: true });
    assert.equal(message.content.toString(), 'm');
    assert.deepEqual(message.properties.headers, { CC: [queues[1]] });
  }
});
