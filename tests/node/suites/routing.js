// Exchange types and exchange-to-exchange bindings.
'use strict';

const assert = require('node:assert/strict');
const { test, drain } = require('../runner');

async function boundQueue(channel, exchange, key = '', args = {}) {
  const { queue } = await channel.assertQueue('', { exclusive: true });
  await channel.bindQueue(queue, exchange, key, args);
  return queue;
}

async function exchange(channel, world, type, options = {}) {
  const name = world.name(`.${type}`);
  await channel.assertExchange(name, type, { durable: false, autoDelete: true, ...options });
  return name;
}

test('default exchange', async (world) => {
  const channel = await world.confirmChannel();
  const { queue } = await channel.assertQueue('', { exclusive: true });
  channel.publish('', queue, Buffer.from('a'));
  channel.sendToQueue(queue, Buffer.from('b'));
  await channel.waitForConfirms();
  assert.deepEqual(await drain(channel, queue), ['a', 'b']);
});

test('direct exchange', async (world) => {
  const channel = await world.confirmChannel();
  const name = await exchange(channel, world, 'direct');
  const red = await boundQueue(channel, name, 'red');
  const both = await boundQueue(channel, name, 'red');
  await channel.bindQueue(both, name, 'blue');
  for (const key of ['red', 'blue', 'green']) channel.publish(name, key, Buffer.from(key));
  await channel.waitForConfirms();
  assert.deepEqual(await drain(channel, red), ['red']);
  assert.deepEqual(await drain(channel, both), ['red', 'blue']);
});

test('fanout exchange', async (world) => {
  const channel = await world.confirmChannel();
  const name = await exchange(channel, world, 'fanout');
  const queues = [await boundQueue(channel, name), await boundQueue(channel, name, 'ignored'), await boundQueue(channel, name)];
  channel.publish(name, 'any', Buffer.from('x'));
  await channel.waitForConfirms();
  for (const queue of queues) assert.deepEqual(await drain(channel, queue), ['x']);
});

test('topic exchange', async (world) => {
  const channel = await world.confirmChannel();
  const name = await exchange(channel, world, 'topic');
  const expected = {
    'stock.*.nyse': ['stock.ibm.nyse'],
    'stock.#': ['stock', 'stock.ibm', 'stock.ibm.nyse'],
    '#.nyse': ['stock.ibm.nyse', 'nyse'],
    '*': ['stock', 'nyse'],
    '#': ['stock', 'stock.ibm', 'stock.ibm.nyse', 'nyse', 'a.b.c.d'],
    '*.*': ['stock.ibm'],
  };
  const queues = {};
  for (const pattern of Object.keys(expected)) queues[pattern] = await boundQueue(channel, name, pattern);
  for (const key of ['stock', 'stock.ibm', 'stock.ibm.nyse', 'nyse', 'a.b.c.d']) channel.publish(name, key, Buffer.from(key));
  await channel.waitForConfirms();
  for (const [pattern, keys] of Object.entries(expected)) assert.deepEqual(await drain(channel, queues[pattern]), keys, pattern);
});

test('headers exchange with all four kinds of x-match', async (world) => {
  const channel = await world.confirmChannel();
  const name = await exchange(channel, world, 'headers');
  const expected = {
    all: [{ 'x-match': 'all', format: 'pdf', pages: 3 }, ['both']],
    any: [{ 'x-match': 'any', format: 'pdf', pages: 3 }, ['both', 'pdf']],
    'all without x-': [{ 'x-match': 'all', 'x-owner': 'me', format: 'pdf' }, ['both', 'pdf']],
    'all-with-x': [{ 'x-match': 'all-with-x', 'x-owner': 'me', format: 'zip' }, ['owned']],
    'any-with-x': [{ 'x-match': 'any-with-x', 'x-owner': 'me', format: 'pdf' }, ['both', 'pdf', 'owned']],
  };
  const queues = {};
  for (const [kind, [args]] of Object.entries(expected)) queues[kind] = await boundQueue(channel, name, '', args);
  const messages = { both: { format: 'pdf', pages: 3 }, pdf: { format: 'pdf' }, neither: { format: 'doc' }, owned: { format: 'zip', 'x-owner': 'me' } };
  for (const [body, headers] of Object.entries(messages)) channel.publish(name, '', Buffer.from(body), { headers });
  await channel.waitForConfirms();
  for (const [kind, [, bodies]] of Object.entries(expected)) assert.deepEqual(await drain(channel, queues[kind]), bodies, kind);
});

test('exchange-to-exchange bindings', async (world) => {
  const channel = await world.confirmChannel();
  const source = await exchange(channel, world, 'topic', { autoDelete: false });
  const sink = await exchange(channel, world, 'fanout', { autoDelete: false });
  await channel.bindExchange(sink, source, 'to.sink.#');
  const queue = await boundQueue(channel, sink);
  channel.publish(source, 'to.sink.a', Buffer.from('1'));
  channel.publish(source, 'elsewhere', Buffer.from('2'));
  await channel.waitForConfirms();
  assert.deepEqual(await drain(channel, queue), ['1']);
  await channel.unbindExchange(sink, source, 'to.sink.#');
  channel.publish(source, 'to.sink.a', Buffer.from('3'));
  await channel.waitForConfirms();
  assert.deepEqual(await drain(channel, queue), []);
  await channel.deleteExchange(source);
  await channel.deleteExchange(sink);
});

test('unbinding, and deleting what is not there', async (world) => {
  const channel = await world.confirmChannel();
  const name = await exchange(channel, world, 'direct', { autoDelete: false });
  const queue = await boundQueue(channel, name, 'k');
  await channel.unbindQueue(queue, name, 'k');
  await channel.unbindQueue(queue, name, 'k');
  channel.publish(name, 'k', Buffer.from('x'));
  await channel.waitForConfirms();
  assert.deepEqual(await drain(channel, queue), []);
  await channel.deleteExchange(name);
  await channel.deleteExchange(name);
  assert.deepEqual(await channel.deleteQueue(world.name()), { messageCount: 0 });
});
