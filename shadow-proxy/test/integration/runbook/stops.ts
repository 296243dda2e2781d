/** A walk through a runbook as an operator goes it: step after step, and a closed gate is asked again later. */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type { TestContext } from 'node:test';
import { Program } from '../cli/process.js';

/** A step may have to wait for a gate. */
const GATE_MS = 600_000;
const STEP_MS = 120_000;
/** A gate that is closed is asked again soon: the command that asks takes as long. */
const AGAIN_MS = 1_000;
/** The name of every migration that a runbook runs on: that of `local up`. */
export const MIGRATION = 'practice';

export interface StopReport {
  readonly stop: string;
  readonly command: string;
  readonly held: boolean;
  readonly failed: readonly string[];
  readonly printed: string;
}

export type Tool = (...args: readonly string[]) => Promise<{ code: number | null; stdout: string; stderr: string }>;

export const toolOf =
  (t: TestContext): Tool =>
  async (...args) => {
    const program = new Program(t, 'shadow-compare', args);
    const code = await program.exit(STEP_MS);
    return { code, stdout: program.stdout, stderr: program.stderr };
  };

/** Each stop when it held. @throws {AssertionError} where one does not hold, or a gate stays closed */
export async function* stopsOf(tool: Tool, name: string, ...options: readonly string[]): AsyncGenerator<StopReport> {
  for (let deadline = Date.now() + GATE_MS; ;) {
    const confirmed = ['--yes', '--point-of-no-return', MIGRATION];
    const { code, stdout, stderr } = await tool('runbook', name, '--next', ...confirmed, '--json', ...options);
    assert.notEqual(stdout, '', stderr);
    const report = JSON.parse(stdout) as StopReport | { readonly next: null };
    if ('next' in report) return;
    if (report.held) {
      deadline = Date.now() + GATE_MS;
      yield report;
      continue;
    }
    assert.ok(
      / promote | --drill/.test(report.command) && Date.now() < deadline,
      `${name} ${report.stop}: ${code} ${report.failed.join('; ')}\n${report.printed}\n${stderr}`,
    );
    await sleep(AGAIN_MS);
  }
}
