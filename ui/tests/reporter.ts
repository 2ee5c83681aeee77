// One line a test, as the black-box tests of the other clients print it.
import type { FullResult, Reporter, TestCase, TestResult } from "@playwright/test/reporter";

const plain = (text: string) => text.replace(/\u001b\[[0-9;]*m/g, "");

export default class Lines implements Reporter {
  onTestEnd(test: TestCase, result: TestResult): void {
    const name = `ui ${test.title}`;
    if (result.status === "skipped") {
      console.log(`skip ${name}: ${test.annotations[0]?.description ?? "not asked for"}`);
    } else if (result.status === test.expectedStatus) {
      console.log(`ok   ${name} (${(result.duration / 1000).toFixed(2)} s)`);
    } else {
      console.log(`FAIL ${name}`);
      for (const error of result.errors) {
        const lines = plain(error.message ?? String(error.value)).split("\n").slice(0, 25);
        const where = error.location ? [`at ${error.location.file}:${error.location.line}`] : [];
        for (const line of [...lines, ...where]) console.log(`     ${line}`);
      }
    }
  }

  /** What a test measures. */
  onStdOut(words: string | Buffer): void {
    process.stdout.write(words);
  }

  onError(error: { message?: string }): void {
    console.log(`FAIL ui suite\n     ${plain(error.message ?? "unknown")}`);
  }

  onEnd(_: FullResult): void {
    return;
  }
}
