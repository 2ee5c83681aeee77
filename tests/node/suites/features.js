// Times to live, dead letters, refusals, priorities, single active consumers, alternate and hash exchanges.
'use strict';

const assert = require('node:assert/strict');
const { test, drain, Inbox } = require('../runner');

/** A queue whose dead letters an inbox receives. */
async function mortal(channel, options) {
  const graves = (await channel.assertQueue('', { exclusive: true })).queue;
  const inbox = await new Inbox().consume(channel, graves, { noAck: true });
  const { queue } = await channel.assertQueue('', { exclusive: true, deadLetterExchange: '', deadLetterRoutingKey: graves, ...options });
  return { queue, inbox };
}

function deaths(message) {
  return message.properties.headers['x-death'].map(({ queue, reason, count }) => [queue, reason, count]);
}

async function send(channel, queue, bodies, options) {
  for (const body of bodies) channel.sendToQueue(queue, Buffer.from(body), options);
  await channel.waitForConfirms();
}

test('a message with an expiration goes before one that has none', { leveretOnly: "RabbitMQ's classic queues expire messages at their head only" }, async (world) => {
  const channel = await world.confirmChannel();
  const { queue, inbox } = await mortal(channel, {});
  await send(channel, queue, ['stays']);
  await send(channel, queue, ['goes'], { expiration: 30 });
  const [message] = await inbox.until(1);
  assert.equal(message.content.toString(), 'goes');
  assert.equal(message.properties.expiration, undefined);
  assert.deepEqual(deaths(message), [[queue, 'expired', 1]]);
  assert.deepEqual(await drain(channel, queue), ['stays']);
});

test('a queue has a time to live', async (world) => {
  const channel = await world.confirmChannel();
  const { queue, inbox } = await mortal(channel, { messageTtl: 30 });
  await send(channel, queue, ['1', '2', '3']);
  const bodies = (await inbox.until(3)).map((message) => message.content.toString());
  assert.deepEqual(bodies, ['1', '2', '3']);
});

test('dead letters of length and of rejection', async (world) => {
  const channel = await world.confirmChannel();
  const { queue, inbox } = await mortal(channel, { maxLength: 1 });
  await send(channel, queue, ['1', '2']);
  assert.deepEqual(deaths((await inbox.until(1))[0]), [[queue, 'maxlen', 1]]);
  channel.reject(await channel.get(queue), false);
  assert.deepEqual(deaths((await inbox.until(2))[1]), [[queue, 'rejected', 1]]);
});

test('an unused queue ends', async (world) => {
  const channel = await world.channel();
  const queue = world.name();
  const exchange = world.name();
  await channel.assertExchange(exchange, 'fanout', { durable: false, autoDelete: true });
  await channel.assertQueue(queue, { durable: false, expires: 50 });
  await channel.bindQueue(queue, exchange, '');
  // A passive declaration would use the queue; its end is seen at the exchange, which goes with its last binding.
  for (let there = true; there; ) {
    const looking = await world.channel();
    there = await looking.checkExchange(exchange).then(
      () => true,
      (error) => assert.equal(error.code, 404),
    );
  }
  await assert.rejects(channel.checkQueue(queue), { code: 404 });
});

test('a full queue that refuses nacks', async (world) => {
  const channel = await world.confirmChannel();
  const { queue } = await channel.assertQueue('', { exclusive: true, maxLength: 1, arguments: { 'x-overflow': 'reject-publish' } });
  const answer = () => new Promise((resolve) => channel.sendToQueue(queue, Buffer.from('x'), {}, (error) => resolve(error === null)));
  assert.equal(await answer(), true);
  assert.equal(await answer(), false);
});

test('the consumer of the highest priority comes first', async (world) => {
  const channel = await world.confirmChannel();
  const { queue } = await channel.assertQueue('', { exclusive: true });
  const low = await new Inbox().consume(channel, queue);
  await channel.prefetch(2);
  const high = await new Inbox().consume(channel, queue, { priority: 5 });
  await send(channel, queue, ['1', '2', '3']);
  const bodies = async (inbox, count) => (await inbox.until(count)).map((message) => message.content.toString());
  assert.deepEqual(await bodies(high, 2), ['1', '2']);
  assert.deepEqual(await bodies(low, 1), ['3']);
});

test('one consumer is active, the next takes over', async (world) => {
  const channel = await world.confirmChannel();
  const { queue } = await channel.assertQueue('', { exclusive: true, arguments: { 'x-single-active-consumer': true } });
  const first = await new Inbox().consume(channel, queue, { noAck: true });
  const second = await new Inbox().consume(channel, queue, { noAck: true });
  await send(channel, queue, ['1', '2']);
  await first.until(2);
  await channel.cancel(first.tag);
  await send(channel, queue, ['3']);
  assert.equal((await second.until(1))[0].content.toString(), '3');
});

test('messages of a higher priority come first', async (world) => {
  const channel = await world.confirmChannel();
  const { queue } = await channel.assertQueue('', { exclusive: true, maxPriority: 10 });
  for (const [body, priority] of [['1', 0], ['2', 5], ['3', 200], ['4', 5]]) await send(channel, queue, [body], { priority });
  assert.deepEqual(await drain(channel, queue), ['3', '2', '4', '1']);
});

test('what nobody takes goes to the alternate exchange', async (world) => {
  const channel = await world.confirmChannel();
  const others = world.name();
  const exchange = world.name();
  await channel.assertExchange(others, 'fanout', { durable: false, autoDelete: true });
  const rest = (await channel.assertQueue('', { exclusive: true })).queue;
  await channel.bindQueue(rest, others, '');
  await channel.assertExchange(exchange, 'direct', { durable: false, autoDelete: true, alternateExchange: others });
  const { queue } = await channel.assertQueue('', { exclusive: true });
  await channel.bindQueue(queue, exchange, 'known');
  for (const key of ['known', 'unknown']) channel.publish(exchange, key, Buffer.from(key), { mandatory: true });
  await channel.waitForConfirms();
  assert.deepEqual(await drain(channel, queue), ['known']);
  assert.deepEqual(await drain(channel, rest), ['unknown']);
});

for (const kind of ['x-consistent-hash', 'x-modulus-hash']) {
  test(`${kind} keeps a key in one queue`, { leveretOnly: "a plugin of RabbitMQ's" }, async (world) => {
    const channel = await world.confirmChannel();
    const exchange = world.name();
    await channel.assertExchange(exchange, kind, { durable: false, autoDelete: true });
    const queues = [];
    for (let n = 0; n < 3; n += 1) {
      const { queue } = await channel.assertQueue('', { exclusive: true });
      await channel.bindQueue(queue, exchange, '1');
      queues.push(queue);
    }
    const keys = Array.from({ length: 60 }, (_, n) => String(n));
    for (const key of [...keys, ...keys]) channel.publish(exchange, key, Buffer.from(key));
    await channel.waitForConfirms();
    const drained = [];
    for (const queue of queues) drained.push(await drain(channel, queue));
    for (const bodies of drained) assert.equal(new Set(bodies).size * 2, bodies.length);
    assert.deepEqual(drained.flat().sort(), [...keys, ...keys].sort());
  });
}
