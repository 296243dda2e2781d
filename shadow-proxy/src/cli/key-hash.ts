/**
 * `shadow-compare key-hash`: prints the hash that replaces a key in the ledger, the log and the reports of each shard.
 */
import { join } from 'node:path';
import type { Command } from 'commander';
import { hashKey } from '../compare/redact.js';
import { openPlan } from '../upstream/open-plan.js';
import { readHashKey } from '../storage/hash-key.js';
import { Router } from '../route/router.js';
import { CliError, exitCode } from './exit.js';
import { withManual } from './manual.js';
import { stdout } from './output.js';

interface KeyHashOptions {
  readonly plan: string;
  readonly shard?: string;
  readonly json?: boolean;
}

interface KeyHash {
  readonly shard: string;
  /** 16 hex digits. */
  readonly hash: string;
  readonly workload: string;
  /** The pattern of the workload; null if the key belongs to no workload. */
  readonly pattern: string | null;
}

export function addKeyHash(program: Command): void {
  const command = program
    .command('key-hash')
    .description('Show the hash that stands for a key in each ledger; run it where the state directory is readable')
    .argument('<key>', 'the key, as clients write it')
    .requiredOption('--plan <file>', 'the migration plan, in YAML')
    .option('--shard <name>', 'only this shard (default: all shards of the plan)')
    .option('--json', 'print JSON')
    .action(async (key: string, options: KeyHashOptions) => {
      const hashes = await hashesOf(Buffer.from(key), options);
      const lines = hashes.map(
        ({ shard, hash, workload, pattern }) =>
          `${shard}  ${hash}  ${workload}${pattern === null ? '' : ` (${pattern})`}`,
      );
      stdout.write(`${options.json ? JSON.stringify(hashes, null, 2) : lines.join('\n')}\n`);
    });
  withManual(command, 'shadow-compare key-hash session:42 --plan migration.yaml', {
    0: 'shown',
    1: 'the state directory is not on this machine, or cannot be read',
  });
}

/** @throws {CliError} if no shard has a hash key here, or one cannot be read */
async function hashesOf(key: Buffer, { plan: file, shard: only }: KeyHashOptions): Promise<readonly KeyHash[]> {
  const plan = await openPlan(file);
  const names = plan.shards.map(({ name }) => name).filter((name) => only === undefined || name === only);
  if (names.length === 0)
    throw new CliError(
      'unknown-shard',
      `--shard ${only}: the plan has no such shard. Its shards: ${plan.shards.map(({ name }) => name).join(', ')}`,
      exitCode.usage,
    );
  const workload = new Router(plan.workloads, plan.default).match(key, 0, key.length);
  const hashes = names.flatMap((shard) => {
    const secret = secretOf(join(plan.state, shard));
    return secret === null
      ? []
      : [{ shard, hash: hashKey(key, secret), workload: workload.name, pattern: workload.patternOf(key) }];
  });
  if (hashes.length > 0) return hashes;
  throw new CliError(
    'no-hash-key',
    `${names.map((name) => join(plan.state, name, 'hash-key')).join(', ')}: not found. Run this command on the machine that has the state directory of the proxy`,
    exitCode.fails,
  );
}

function secretOf(directory: string): Buffer | null {
  try {
    return readHashKey(directory);
  } catch (error) {
    throw new CliError('hash-key', (error as Error).message, exitCode.fails);
  }
}
