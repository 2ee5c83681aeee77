// What RabbitMQ 4.3 has in quorum queues, in plugins or not at all: deadlines, delayed retries, duplicates, groups, delays.
'use strict';

const assert = require('node:assert/strict');
const { test, drain, Inbox } = require('../runner');

const OURS = { leveretOnly: 'RabbitMQ has it in quorum queues or plugins only' };

async function send(channel, exchange, key, bodies, headers) {
  for (const body of bodies) channel.publish(exchange, key, Buffer.from(body), { headers });
  await channel.waitForConfirms();
}

test('a consumer that takes too long is cancelled, and its message goes back', OURS, async (world) => {
  const channel = await world.confirmChannel();
  const { queue } = await channel.assertQueue('', { exclusive: true, arguments: { 'x-consumer-timeout': 200 } });
  await send(channel, '', queue, ['m']);
  // amqplib tells of a cancelled consumer by calling it without a message.
  const seen = [];
  const cancelled = new Promise((resolve) => {
    channel.consume(queue, (message) => (message === null ? resolve() : seen.push(message)));
  });
  await cancelled;
  assert.equal(seen.length, 1);
  channel.ack(seen[0]);
  assert.deepEqual(await drain(channel, queue), ['m']);
});

test('a message comes back later each time, says how often, and is a dead letter then', OURS, async (world) => {
  const channel = await world.confirmChannel();
  const graves = (await channel.assertQueue('', { exclusive: true })).queue;
  const inbox = await new Inbox().consume(channel, graves, { noAck: true });
  const { queue } = await channel.assertQueue('', {
    exclusive: true,
    deadLetterExchange: '',
    deadLetterRoutingKey: graves,
    arguments: { 'x-delivery-limit': 2, 'x-retry-delay': { initial: 40, factor: 2 } },
  });
  await send(channel, '', queue, ['bad']);
  const counts = [];
  await channel.consume(queue, (message) => {
    counts.push((message.properties.headers || {})['x-delivery-count'] || 0);
    channel.nack(message);
  });
  const [dead] = await inbox.until(1);
  assert.deepEqual(counts, [0, 1, 2]);
  assert.equal(dead.properties.headers['x-death'][0].reason, 'delivery_limit');
});

test('a queue takes a message once', OURS, async (world) => {
  const channel = await world.confirmChannel();
  const { queue } = await channel.assertQueue('', { exclusive: true, arguments: { 'x-message-deduplication': true } });
  await send(channel, '', queue, ['1', '2'], { 'x-deduplication-header': 'same' });
  await send(channel, '', queue, ['3'], { 'x-deduplication-header': 'other' });
  assert.deepEqual(await drain(channel, queue), ['1', '3']);
});

test('an exchange lets a message pass once', OURS, async (world) => {
  const channel = await world.confirmChannel();
  const exchange = world.name();
  await channel.assertExchange(exchange, 'x-message-deduplication', { autoDelete: true, durable: false, arguments: { 'x-cache-size': 10 } });
  const { queue } = await channel.assertQueue('', { exclusive: true });
  await channel.bindQueue(queue, exchange, 'any');
  await send(channel, exchange, 'k', ['1', '2'], { 'x-deduplication-header': 'same' });
  await send(channel, exchange, 'k', ['3'], { 'x-deduplication-header': 'other' });
  await send(channel, exchange, 'k', ['4']);
  // A confirmed message may be on its way yet: the exchange may remember on another node than the queue's.
  const inbox = await new Inbox().consume(channel, queue, { noAck: true });
  const came = await inbox.until(3);
  assert.deepEqual(came.map((message) => message.content.toString()), ['1', '3', '4']);
});

test('groups take turns', OURS, async (world) => {
  const channel = await world.confirmChannel();
  const { queue } = await channel.assertQueue('', { exclusive: true, arguments: { 'x-fair-key': 'tenant' } });
  const large = 'x'.repeat(8192);
  await send(channel, '', queue, [`a1${large}`, `a2${large}`, `a3${large}`], { tenant: 'a' });
  await send(channel, '', queue, ['b1'], { tenant: 'b' });
  const order = (await drain(channel, queue)).map((body) => body.slice(0, 2));
  assert.ok(order.indexOf('b1') < order.indexOf('a3'), order.join(' '));
});

test('a delayed message waits in its exchange', OURS, async (world) => {
  const channel = await world.confirmChannel();
  const exchange = world.name();
  await channel.assertExchange(exchange, 'x-delayed-message', { durable: false, autoDelete: true, arguments: { 'x-delayed-type': 'direct' } });
  const { queue } = await channel.assertQueue('', { exclusive: true });
  await channel.bindQueue(queue, exchange, 'k');
  await send(channel, exchange, 'k', ['late'], { 'x-delay': 150 });
  await send(channel, exchange, 'k', ['soon'], {});
  const inbox = await new Inbox().consume(channel, queue, { noAck: true });
  const bodies = (await inbox.until(2)).map((message) => message.content.toString());
  assert.deepEqual(bodies, ['soon', 'late']);
});
