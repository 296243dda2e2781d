/**
 * `shadow-compare complete`: workloads and pages for the scripts of `completion`, which run it while a user types. It
 * prints its result at once. If there is none it prints nothing, because an error would appear in the middle of a
 * command line.
 */
import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { Argument, type Command } from 'commander';
import { parse } from 'yaml';
import { shelved } from '../runbook/shelf.js';
import { AdminClient } from './admin-client.js';
import { COMPLETED, type Completed } from './completion.js';
import { stdout } from './output.js';

/** Maximum wait for the proxy, in ms. */
const PATIENCE_MS = 300;
const DEFAULT_PLAN = 'migration.yaml';

export function addComplete(program: Command): void {
  program
    .command('complete', { hidden: true })
    .description('Print the words that a shell may complete')
    .addArgument(new Argument('<kind>', 'what is typed').choices(COMPLETED))
    .argument('[words...]', 'the words of the command line')
    .action(async (kind: Completed, words: readonly string[]) => {
      const found = await (kind === 'pages' ? pages() : workloadsFor(words)).catch(() => []);
      stdout.write(found.map((each) => `${each}\n`).join(''));
    });
}

function pages(): Promise<readonly string[]> {
  const { weeks, others, alerts } = shelved();
  return Promise.resolve([...weeks, ...others, ...alerts]);
}

/**
 * The workloads of the plan on the command line or in this folder; else those of the proxy, if it answers within
 * `waitMs`.
 * @throws {Error} if neither has any
 */
export async function workloadsFor(words: readonly string[], waitMs = PATIENCE_MS): Promise<readonly string[]> {
  const [plan, admin, tokenFile] = ['--plan', '--admin', '--token-file'].map((option) => valueOf(words, option));
  if (plan !== undefined) return inPlan(plan);
  if (admin === undefined) {
    const names = inFolder();
    if (names !== null) return names;
  }
  const shards = await new AdminClient({ admin, tokenFile }, null, waitMs).names();
  return [...new Set(shards.flatMap((shard) => shard.workloads.map(({ name }) => name)))];
}

function inFolder(): readonly string[] | null {
  try {
    return inPlan(DEFAULT_PLAN);
  } catch {
    return null;
  }
}

/** Reads only the names: an incomplete plan, or one without its passwords, has them, too. */
function inPlan(file: string): readonly string[] {
  const plan = parse(readFileSync(file.replace(/^~(?=\/)/, homedir()), 'utf8')) as { workloads: { name: string }[] };
  return [...plan.workloads.map(({ name }) => name), 'default'];
}

/** Bash splits `--plan=file` into three words. */
function valueOf(words: readonly string[], option: string): string | undefined {
  const at = words.lastIndexOf(option);
  const value = at < 0 ? undefined : words[words[at + 1] === '=' ? at + 2 : at + 1];
  return value ?? words.findLast((word) => word.startsWith(`${option}=`))?.slice(option.length + 1);
}
