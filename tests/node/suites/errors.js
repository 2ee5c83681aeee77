// Errors as amqplib shows them: code, class and method, scope.
'use strict';

const assert = require('node:assert/strict');
const { test, event, quiet } = require('../runner');

async function rejectsWith(promise, code, classId, methodId, text) {
  await assert.rejects(promise, (error) => {
    assert.deepEqual([error.code, error.classId, error.methodId], [code, classId, methodId], error.message);
    assert.ok(error.message.includes(text), error.message);
    return true;
  });
}

test('404 of queues and exchanges', async (world) => {
  const name = world.name();
  await rejectsWith((await world.channel()).checkQueue(name), 404, 50, 10, `NOT_FOUND - no queue '${name}' in vhost '/'`);
  await rejectsWith((await world.channel()).checkExchange(name), 404, 40, 10, `NOT_FOUND - no exchange '${name}' in vhost '/'`);
  await rejectsWith((await world.channel()).get(name), 404, 60, 70, `NOT_FOUND - no queue '${name}' in vhost '/'`);
  await rejectsWith((await world.channel()).consume(name, () => {}), 404, 60, 20, `NOT_FOUND - no queue '${name}' in vhost '/'`);
  await rejectsWith((await world.channel()).purgeQueue(name), 404, 50, 30, `NOT_FOUND - no queue '${name}' in vhost '/'`);
  await rejectsWith((await world.channel()).bindQueue(name, 'amq.direct', 'k'), 404, 50, 20, `NOT_FOUND - no queue '${name}' in vhost '/'`);
  await rejectsWith((await world.channel()).bindExchange(name, 'amq.direct', 'k'), 404, 40, 30, `NOT_FOUND - no exchange '${name}' in vhost '/'`);
});

test('404 of a publish closes the channel', async (world) => {
  const channel = await world.channel();
  const failed = event(channel, 'error');
  const name = world.name();
  channel.publish(name, 'k', Buffer.from('x'));
  const error = await failed;
  assert.deepEqual([error.code, error.classId, error.methodId], [404, 60, 40]);
  assert.ok(error.message.includes(`NOT_FOUND - no exchange '${name}' in vhost '/'`), error.message);
});

test('406 of unequal redeclarations', async (world) => {
  const channel = await world.channel();
  const name = world.name();
  await channel.assertQueue(name, { durable: false, exclusive: true });
  await channel.assertExchange(name, 'direct', { durable: false });
  const again = quiet(await world.connections[0].createChannel());
  await rejectsWith(again.assertQueue(name, { durable: false, exclusive: true, autoDelete: true }), 406, 50, 10, "inequivalent arg 'auto_delete'");
  const third = quiet(await world.connections[0].createChannel());
  await rejectsWith(third.assertExchange(name, 'topic', { durable: false }), 406, 40, 10, "received 'topic' but current is 'direct'");
  await channel.deleteExchange(name);
});

test('406 of an unknown delivery tag', async (world) => {
  const channel = await world.channel();
  const failed = event(channel, 'error');
  channel.ack({ fields: { deliveryTag: 99 } });
  const error = await failed;
  assert.deepEqual([error.code, error.classId, error.methodId], [406, 60, 80]);
  assert.ok(error.message.includes('unknown delivery tag 99'), error.message);
});

test('406 of a bad argument', async (world) => {
  await rejectsWith((await world.channel()).assertQueue('', { exclusive: true, maxLength: -1 }), 406, 50, 10, "invalid arg 'x-max-length'");
});

test('403 of what is reserved', async (world) => {
  await rejectsWith((await world.channel()).assertQueue('amq.mine'), 403, 50, 10, "queue name 'amq.mine' contains reserved prefix 'amq.*'");
  await rejectsWith((await world.channel()).deleteExchange('amq.topic'), 403, 40, 20, "deletion of system exchange 'amq.topic'");
});

test('a channel error leaves the connection and its other channels alone', async (world) => {
  const channel = await world.channel();
  const sibling = quiet(await world.connections[0].createChannel());
  await assert.rejects(channel.checkQueue(world.name()));
  await sibling.assertQueue('', { exclusive: true });
  await (await world.connections[0].createChannel()).close();
});

test('530 of a consumer tag used twice closes the connection', async (world) => {
  const connection = await world.connect();
  const channel = quiet(await connection.createChannel());
  const { queue } = await channel.assertQueue('', { exclusive: true });
  await channel.consume(queue, () => {}, { consumerTag: 'twice' });
  const failed = event(connection, 'error');
  channel.consume(queue, () => {}, { consumerTag: 'twice' }).catch(() => {});
  const error = await failed;
  assert.equal(error.code, 530);
  assert.ok(error.message.includes("NOT_ALLOWED - attempt to reuse consumer tag 'twice'"), error.message);
});

test('405 of a locked queue', async (world) => {
  const owner = await world.channel();
  const { queue } = await owner.assertQueue('', { exclusive: true });
  await rejectsWith((await world.channel()).consume(queue, () => {}), 405, 60, 20, `cannot obtain exclusive access to locked queue '${queue}' in vhost '/'`);
});

test('403 of a wrong password', async (world) => {
  await assert.rejects(world.connect(undefined, { username: 'guest', password: 'wrong' }), /ACCESS_REFUSED|403/);
});

test('530 of an unknown vhost', async (world) => {
  await assert.rejects(world.connect(undefined, { vhost: 'nope' }), /vhost nope not found|got <ConnectionClose channel:0>/);
});
