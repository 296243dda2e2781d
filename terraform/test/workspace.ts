/**
 * One directory of Terraform's, as the tests run it: with the stand-in provider, and nothing written beside the
 * sources.
 */
import { mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { run, type Program, type Result } from './program.js';

export class Workspace {
  readonly #data = mkdtempSync(join(tmpdir(), 'terraform-'));

  constructor(
    t: TestContext,
    private readonly terraform: Program,
    private readonly directory: string,
    private readonly env: NodeJS.ProcessEnv = {},
  ) {
    t.after(() => rm(this.#data, { recursive: true, force: true }));
  }

  /** Where its state is. */
  get state(): string {
    return join(this.#data, 'migration.tfstate');
  }

  init(...more: string[]): Promise<Result> {
    return this.run('init', '-backend=false', '-input=false', '-no-color', ...more);
  }

  run(...args: string[]): Promise<Result> {
    return run(this.terraform, args, {
      cwd: this.directory,
      // Less garbage collection: a test's plans are small, and half of their time went there.
      env: {
        TF_DATA_DIR: this.#data,
        TF_CLI_CONFIG_FILE: '/dev/null',
        TF_IN_AUTOMATION: '1',
        CHECKPOINT_DISABLE: '1',
        GOGC: '800',
        ...this.env,
      },
    });
  }
}
