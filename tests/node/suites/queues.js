// Kinds of queues, limits, restart.
'use strict';

const assert = require('node:assert/strict');
const { test, drain, control, Inbox } = require('../runner');

test('server-named, exclusive, and gone with the connection', async (world) => {
  const owner = await world.connect();
  const { queue } = await (await owner.createChannel()).assertQueue('', { exclusive: true });
  assert.match(queue, /^amq\.gen-/);
  const other = await world.channel();
  await assert.rejects(other.checkQueue(queue), { code: 405 });
  await owner.close();
  await assert.rejects((await world.channel()).checkQueue(queue), { code: 404 });
});

test('auto-delete goes with the last consumer', async (world) => {
  const channel = await world.channel();
  const queue = world.name();
  await channel.assertQueue(queue, { autoDelete: true, durable: false });
  const inbox = await new Inbox().consume(channel, queue);
  await channel.checkQueue(queue);
  await channel.cancel(inbox.tag);
  await assert.rejects(channel.checkQueue(queue), { code: 404 });
});

test('purge and delete count', async (world) => {
  const channel = await world.confirmChannel();
  const queue = world.name();
  assert.deepEqual(await channel.assertQueue(queue, { durable: false }), { queue, messageCount: 0, consumerCount: 0 });
  for (let n = 0; n < 4; n += 1) channel.sendToQueue(queue, Buffer.from('x'));
  await channel.waitForConfirms();
  assert.deepEqual(await channel.checkQueue(queue), { queue, messageCount: 4, consumerCount: 0 });
  assert.deepEqual(await channel.purgeQueue(queue), { messageCount: 4 });
  channel.sendToQueue(queue, Buffer.from('x'));
  await channel.waitForConfirms();
  assert.deepEqual(await channel.deleteQueue(queue), { messageCount: 1 });
});

test('the last declared queue is meant by the empty name', async (world) => {
  const channel = await world.confirmChannel();
  const { queue } = await channel.assertQueue('', { exclusive: true });
  await channel.bindQueue('', 'amq.direct', '');
  channel.publish('amq.direct', queue, Buffer.from('x'));
  await channel.waitForConfirms();
  assert.deepEqual(await drain(channel, ''), ['x']);
  await channel.purgeQueue('');
  await channel.deleteQueue('');
});

test('max-length keeps the newest', async (world) => {
  const channel = await world.confirmChannel();
  const { queue } = await channel.assertQueue('', { exclusive: true, maxLength: 3 });
  for (let n = 0; n < 8; n += 1) channel.sendToQueue(queue, Buffer.from(String(n)));
  await channel.waitForConfirms();
  assert.deepEqual(await drain(channel, queue), ['5', '6', '7']);
});

test('durable queue with persistent messages after a restart', { control: true }, async (world) => {
  const channel = await world.confirmChannel();
  const queue = world.name();
  await channel.assertQueue(queue, { durable: true });
  await channel.bindQueue(queue, 'amq.topic', `${queue}.#`);
  for (let n = 0; n < 50; n += 1) channel.publish('amq.topic', `${queue}.a`, Buffer.from(String(n)), { persistent: true });
  // A quorum queue would keep what is transient.
  const brief = world.name();
  await channel.assertQueue(brief, { durable: true, arguments: { 'x-queue-type': 'classic' } });
  channel.sendToQueue(brief, Buffer.from('transient'));
  await channel.waitForConfirms();
  await control('restart');
  const after = await world.confirmChannel();
  assert.deepEqual(await drain(after, queue), Array.from({ length: 50 }, (_, n) => String(n)));
  assert.deepEqual(await drain(after, brief), []);
  after.publish('amq.topic', `${queue}.b`, Buffer.from('still bound'));
  await after.waitForConfirms();
  assert.deepEqual(await drain(after, queue), ['still bound']);
  await after.deleteQueue(queue);
  await after.deleteQueue(brief);
});
