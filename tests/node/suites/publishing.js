// Confirms, returns, properties.
'use strict';

const assert = require('node:assert/strict');
const { test, drain, event } = require('../runner');

test('each publish is confirmed once, in order', async (world) => {
  const channel = await world.confirmChannel();
  const { queue } = await channel.assertQueue('', { exclusive: true });
  const confirmed = [];
  for (let n = 0; n < 1000; n += 1) {
    channel.sendToQueue(queue, Buffer.from(String(n)), { persistent: n % 2 === 0 }, (error) => {
      assert.equal(error, null);
      confirmed.push(n);
    });
  }
  await channel.waitForConfirms();
  assert.equal(confirmed.length, 1000);
  assert.deepEqual([...confirmed].sort((a, b) => a - b), Array.from({ length: 1000 }, (_, n) => n));
  assert.deepEqual(await drain(channel, queue), Array.from({ length: 1000 }, (_, n) => String(n)));
});

test('a single confirm after a single publish', async (world) => {
  const channel = await world.confirmChannel();
  const queue = world.name();
  await channel.assertQueue(queue, { durable: true });
  for (let n = 0; n < 5; n += 1) {
    await new Promise((resolve, reject) => channel.sendToQueue(queue, Buffer.from('x'), { persistent: true }, (error) => (error ? reject(error) : resolve())));
    assert.equal((await channel.checkQueue(queue)).messageCount, n + 1);
  }
  await channel.deleteQueue(queue);
});

test('a mandatory message returns before its confirm', async (world) => {
  const channel = await world.confirmChannel();
  const order = [];
  channel.on('return', (message) => order.push(['return', message.fields.replyCode, message.fields.replyText, message.content.toString()]));
  const key = world.name();
  await new Promise((resolve) =>
    channel.publish('amq.direct', key, Buffer.from('back'), { mandatory: true }, () => {
      order.push(['confirm']);
      resolve();
    }),
  );
  assert.deepEqual(order, [['return', 312, 'NO_ROUTE', 'back'], ['confirm']]);
});

test('a mandatory message returns without confirms', async (world) => {
  const channel = await world.channel();
  const returned = event(channel, 'return');
  channel.publish('', world.name(), Buffer.from('back'), { mandatory: true, headers: { n: 1 } });
  const message = await returned;
  assert.equal(message.fields.replyCode, 312);
  assert.deepEqual(message.properties.headers, { n: 1 });
});

test('properties and headers come back', async (world) => {
  const channel = await world.confirmChannel();
  const { queue } = await channel.assertQueue('', { exclusive: true });
  const headers = { text: 'ü', number: 7, big: 2 ** 40, negative: -3, float: 1.5, yes: true, nested: { list: [1, 'two', { three: 3 }] }, nothing: null };
  channel.sendToQueue(queue, Buffer.from('x'), {
    contentType: 'text/plain', contentEncoding: 'utf-8', headers, persistent: true, priority: 4, correlationId: 'c',
    replyTo: 'r', messageId: 'm', timestamp: 1700000000, type: 't', userId: 'guest', appId: 'a',
  });
  await channel.waitForConfirms();
  const { properties, fields } = await channel.get(queue, { noAck: true });
  assert.deepEqual(properties.headers, headers);
  assert.deepEqual(
    [properties.contentType, properties.contentEncoding, properties.deliveryMode, properties.priority, properties.correlationId, properties.replyTo],
    ['text/plain', 'utf-8', 2, 4, 'c', 'r'],
  );
  assert.deepEqual(
    [properties.messageId, properties.timestamp, properties.type, properties.userId, properties.appId],
    ['m', 1700000000, 't', 'guest', 'a'],
  );
  assert.equal(fields.routingKey, queue);
});

test('bodies of every size', async (world) => {
  const channel = await world.confirmChannel();
  const { queue } = await channel.assertQueue('', { exclusive: true });
  const sizes = [0, 1, 4087, 4088, 4089, 131063, 131064, 131065, 1000000];
  for (const size of sizes) channel.sendToQueue(queue, Buffer.alloc(size, size % 251));
  await channel.waitForConfirms();
  for (const size of sizes) {
    const { content } = await channel.get(queue, { noAck: true });
    assert.ok(content.equals(Buffer.alloc(size, size % 251)), `size ${size}`);
  }
});
