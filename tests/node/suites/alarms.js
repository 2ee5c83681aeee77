// connection.blocked and connection.unblocked.
'use strict';

const assert = require('node:assert/strict');
const { test, event, control, drain, ALARM_PORT } = require('../runner');

test('a publisher is blocked and unblocked, a consumer is not', { control: true }, async (world) => {
  const connection = await world.connect(ALARM_PORT);
  const channel = await connection.createConfirmChannel();
  const consumer = await (await world.connect(ALARM_PORT)).createChannel();
  const queue = world.name();
  await channel.assertQueue(queue, { durable: true });
  await control('alarm-on');
  try {
    const blocked = event(connection, 'blocked');
    const publishing = setInterval(() => channel.sendToQueue(queue, Buffer.from('x')), 100);
    const reason = await blocked.finally(() => clearInterval(publishing));
    assert.equal(reason, 'low on disk');
    await consumer.checkQueue(queue);
    await drain(consumer, queue);
    channel.sendToQueue(queue, Buffer.from('late'));
    const unblocked = event(connection, 'unblocked');
    await control('alarm-off');
    await unblocked;
    await channel.waitForConfirms();
    assert.equal((await drain(consumer, queue)).pop(), 'late');
  } finally {
    await control('alarm-off');
    await consumer.deleteQueue(queue);
  }
});
