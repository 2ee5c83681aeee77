// Acknowledgements, redelivery, prefetch, get, cancel.
'use strict';

const assert = require('node:assert/strict');
const { test, Inbox, drain } = require('../runner');

const bodies = (messages) => messages.map((message) => message.content.toString());
const numbers = (from, to) => Array.from({ length: to - from }, (_, n) => String(from + n));

async function filled(world, count, options = { exclusive: true }) {
  const channel = await world.confirmChannel();
  const { queue } = await channel.assertQueue('', options);
  for (const n of numbers(0, count)) channel.sendToQueue(queue, Buffer.from(n));
  await channel.waitForConfirms();
  return { channel, queue };
}

test('acks, one and many', async (world) => {
  const { channel, queue } = await filled(world, 10);
  const inbox = await new Inbox().consume(channel, queue);
  const messages = [...(await inbox.until(10))];
  assert.deepEqual(messages.map((message) => message.fields.deliveryTag), Array.from({ length: 10 }, (_, n) => n + 1));
  channel.ack(messages[2]);
  channel.ack(messages[4], true);
  await channel.recover();
  assert.deepEqual(bodies((await inbox.until(15)).slice(10)), numbers(5, 10));
  assert.ok(inbox.messages.slice(10).every((message) => message.fields.redelivered));
  channel.ackAll();
  await channel.recover();
  assert.equal((await channel.checkQueue(queue)).messageCount, 0);
  assert.equal(inbox.messages.length, 15);
});

test('nack and reject requeue to the original position', async (world) => {
  const { channel, queue } = await filled(world, 6);
  const got = [];
  for (let n = 0; n < 4; n += 1) got.push(await channel.get(queue));
  channel.nack(got[3]);
  channel.reject(got[1], true);
  channel.nack(got[2], true, true);
  const again = [];
  for (let n = 0; n < 6; n += 1) again.push(await channel.get(queue, { noAck: true }));
  assert.deepEqual(bodies(again), numbers(0, 6));
  assert.deepEqual(again.map((message) => message.fields.redelivered), [true, true, true, true, false, false]);
});

test('nack and reject without requeue drop', async (world) => {
  const { channel, queue } = await filled(world, 5);
  const inbox = await new Inbox().consume(channel, queue);
  const messages = [...(await inbox.until(5))];
  channel.reject(messages[0], false);
  channel.nack(messages[2], true, false);
  await channel.cancel(inbox.tag);
  channel.nackAll(true);
  assert.deepEqual(await drain(channel, queue), ['3', '4']);
});

test('what a closed channel held comes back', async (world) => {
  const { channel, queue } = await filled(world, 3);
  const other = await world.connections[0].createChannel();
  await (await new Inbox().consume(other, queue)).until(3);
  await other.close();
  const message = await channel.get(queue);
  assert.deepEqual([message.content.toString(), message.fields.redelivered, message.fields.messageCount], ['0', true, 2]);
});

test('prefetch per consumer', async (world) => {
  const { channel, queue } = await filled(world, 10);
  await channel.prefetch(2);
  const first = await new Inbox().consume(channel, queue);
  const second = await new Inbox().consume(channel, queue);
  await first.until(2);
  await second.until(2);
  assert.equal((await channel.checkQueue(queue)).messageCount, 6);
  channel.ack(first.messages[0]);
  await first.until(3);
  assert.equal((await channel.checkQueue(queue)).messageCount, 5);
  assert.equal(second.messages.length, 2);
});

test('prefetch per channel', { leveretOnly: 'RabbitMQ 4.3 treats a global prefetch as one per consumer' }, async (world) => {
  const { channel, queue } = await filled(world, 10);
  await channel.prefetch(3, true);
  const first = await new Inbox().consume(channel, queue);
  const second = await new Inbox().consume(channel, queue);
  await first.until(3);
  assert.equal((await channel.checkQueue(queue)).messageCount, 7);
  assert.equal(second.messages.length, 0);
  channel.ack(first.messages[2], true);
  const before = first.messages.length + second.messages.length;
  while (first.messages.length + second.messages.length < before + 3) await new Promise((resolve) => setImmediate(resolve));
  assert.equal((await channel.checkQueue(queue)).messageCount, 4);
});

test('get counts down to empty', async (world) => {
  const { channel, queue } = await filled(world, 2);
  const first = await channel.get(queue);
  assert.deepEqual([first.fields.messageCount, first.fields.redelivered, first.fields.deliveryTag], [1, false, 1]);
  assert.equal((await channel.get(queue, { noAck: true })).fields.messageCount, 0);
  assert.equal(await channel.get(queue), false);
  channel.ack(first);
});

test('consumers without acks get everything at once', async (world) => {
  const { channel, queue } = await filled(world, 100);
  await channel.prefetch(1);
  const inbox = await new Inbox().consume(channel, queue, { noAck: true });
  assert.deepEqual(bodies(await inbox.until(100)), numbers(0, 100));
});

test('consumers take turns', async (world) => {
  const { channel, queue } = await filled(world, 0);
  const inboxes = [];
  for (let n = 0; n < 3; n += 1) inboxes.push(await new Inbox().consume(channel, queue, { noAck: true }));
  for (const n of numbers(0, 30)) channel.sendToQueue(queue, Buffer.from(n));
  await channel.waitForConfirms();
  await Promise.all(inboxes.map((inbox) => inbox.until(10)));
});

test('a consumer is told that its queue was deleted', async (world) => {
  const { channel, queue } = await filled(world, 0, { exclusive: false, durable: true });
  const inbox = await new Inbox().consume(channel, queue);
  const other = await world.channel();
  await other.deleteQueue(queue);
  assert.deepEqual(await inbox.until(1), [null]);
});

test('cancel', async (world) => {
  const { channel, queue } = await filled(world, 0);
  const inbox = await new Inbox().consume(channel, queue, { consumerTag: 'mine' });
  assert.equal(inbox.tag, 'mine');
  assert.equal((await channel.checkQueue(queue)).consumerCount, 1);
  await channel.cancel('mine');
  await channel.cancel('mine');
  assert.equal((await channel.checkQueue(queue)).consumerCount, 0);
});
