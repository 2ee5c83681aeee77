// Black-box tests with amqplib. One line per test; see runner.js.
'use strict';

require('./suites/routing');
require('./suites/publishing');
require('./suites/consuming');
require('./suites/queues');
require('./suites/replies');
require('./suites/features');
require('./suites/ours');
require('./suites/web_socket');
require('./suites/errors');
require('./suites/alarms');
require('./runner').runAll();
