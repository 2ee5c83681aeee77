// Marks of charts and figures in words; no page is needed.
import { expect, test } from "@playwright/test";
import { marks, type Unit } from "../src/ticks";
import { duration, milliseconds } from "../src/format";
import { drawn, fromSamples, isolated } from "../src/samples";

test("marks of bytes are round numbers of binary units", () => {
  expect(marks(130 * 2 ** 20, "bytes").labels).toEqual(["0", "50 MiB", "100 MiB", "150 MiB"]);
  expect(marks(62 * 2 ** 30, "bytes").labels).toEqual(["0", "20 GiB", "40 GiB", "60 GiB", "80 GiB"]);
  expect(marks(900 * 2 ** 20, "bytes").labels).toEqual(["0", "256 MiB", "512 MiB", "768 MiB", "1 GiB"]);
  expect(marks(1.8 * 2 ** 30, "bytes").labels).toEqual(["0", "512 MiB", "1 GiB", "1.5 GiB", "2 GiB"]);
});

test("an axis without anything on it has marks that differ", () => {
  expect(marks(0, "byteRate").labels).toEqual(["0/s", "50 B/s", "100 B/s"]);
  expect(marks(0, "rate").labels).toEqual(["0/s", "0.5/s", "1/s"]);
  expect(marks(Number.NaN, "count").labels).toEqual(["0", "1", "2", "3", "4"]);
});

test("marks of numbers and times are round, in one unit", () => {
  expect(marks(17_700, "count").labels).toEqual(["0", "5k", "10k", "15k", "20k"]);
  expect(marks(3_100, "count").labels).toEqual(["0", "1,000", "2,000", "3,000", "4,000"]);
  expect(marks(330, "rate").labels).toEqual(["0/s", "100/s", "200/s", "300/s", "400/s"]);
  expect(marks(170, "time").labels).toEqual(["0", "50 ms", "100 ms", "150 ms", "200 ms"]);
  expect(marks(100_000, "time").labels).toEqual(["0", "30 s", "60 s", "90 s", "120 s"]);
  expect(marks(134_000, "time").labels).toEqual(["0", "1 min", "2 min", "3 min"]);
});

test("whatever is drawn, no two marks are alike, all fit beside the chart, and the last one is above the line", () => {
  for (const unit of ["count", "rate", "bytes", "byteRate", "time"] as Unit[]) {
    for (let power = -4; power < 13; power++) {
      for (const digit of [1, 1.3, 2, 2.7, 3.14, 4.9, 7, 9.99]) {
        const high = digit * 10 ** power;
        const { values, labels } = marks(high, unit);
        const what = `${unit} ${high}: ${labels.join(", ")}`;
        expect(new Set(labels).size, what).toBe(labels.length);
        expect(labels.length, what).toBeLessThanOrEqual(6);
        expect(Math.max(...labels.map((label) => label.length)), what).toBeLessThanOrEqual(11);
        expect(values.at(-1)!, what).toBeGreaterThanOrEqual(high * 0.999);
      }
    }
  }
});

test("short times have a digit more, long ones two units", () => {
  expect([milliseconds(0.052), milliseconds(3.24), milliseconds(45)]).toEqual(["0.05 ms", "3.2 ms", "45 ms"]);
  expect([milliseconds(1_460), milliseconds(14_200), milliseconds(100_000)]).toEqual(["1.5 s", "14.2 s", "1 min 40 s"]);
  expect([duration(3_600_000), duration(60_000)]).toEqual(["1 h", "1 min"]);
});

test("what was timed alone is a point, and what lies between others is none", () => {
  const samples = [0, 5, 60, 120].map((second) => ({ timestamp: second * 1000, p50_ms: 1, p95_ms: 2, p99_ms: 3 }));
  const trail = drawn(samples, { age: 600, step: 10 }, 200);
  expect(trail.window).toEqual([-400, 200]);
  const points = isolated(trail.series[0]!.values).map((at) => trail.times[at]);
  expect(points).toEqual([60, 120]);
  expect(isolated([1, 2, 3])).toEqual([]);
  expect(isolated([null, 4])).toEqual([1]);
});

test("rates are made of what samples gained, and what was never counted is zero", () => {
  const details = { samples: [{ sample: 30, timestamp: 20_000 }, { sample: 10, timestamp: 10_000 }, { sample: 10, timestamp: 0 }] };
  const body = { messages_ready: 50, messages_ready_details: details };
  const lines = [{ label: "Ready", path: "messages_ready" }, { label: "Gain", path: "messages_ready", rate: true }, { label: "Ack", path: "message_stats.ack", rate: true }];
  const trail = fromSamples(body, { age: 20, step: 10 }, lines, 21);
  expect(trail.times).toEqual([0, 10, 20]);
  expect(trail.series.map(({ values }) => values)).toEqual([[10, 10, 30], [null, 0, 2], [0, 0, 0]]);
  // Between two coarse samples the present is the last point.
  const later = fromSamples(body, { age: 20, step: 10 }, lines, 30);
  expect([later.times.at(-1), ...later.series.map(({ values }) => values.at(-1))]).toEqual([30, 50, 2, 0]);
  expect(fromSamples(undefined, { age: 20, step: 10 }, lines, 100).series[2]!.values).toEqual([null, null]);
});
