/**
 * `shadow-compare fence`: shows who may not write to the source while the target answers, and raises or lifts the fence
 * by hand.
 */
import { userInfo } from 'node:os';
import type { Command } from 'commander';
import { count } from '../text/figures.js';
import { describeClient } from '../stages/fence-gate.js';
import { addAdminOptions, type AdminClientOptions, type ShardFence } from './admin-client.js';
import { exitCode } from './exit.js';
import { Fleet, reportSilent } from './fleet.js';
import { NO_PROXY, withManual } from './manual.js';
import { print } from './output.js';

interface FenceOptions extends AdminClientOptions {
  readonly shard?: string;
  readonly reason?: string;
  readonly json?: boolean;
}

const JSON_OPTION = ['--json', 'print JSON'] as const;

export function addFence(program: Command): void {
  const fence = program
    .command('fence')
    .description('Keep clients from writing to the source directly: show who would lose writes, apply, lift');
  const show = fence
    .command('show')
    .description('Show the users of the source that have no writes, or would lose them, and their direct clients')
    .option(...JSON_OPTION);
  withManual(show, 'shadow-compare fence show --plan migration.yaml', {
    0: 'shown',
    1: 'the plan wants a fence, and a source cannot be fenced, or not whole',
    3: `${NO_PROXY}, or not each: the others are shown`,
  });
  addAdminOptions(show).action(async (options: FenceOptions) => {
    const fleet = await Fleet.open(options);
    process.exitCode = printFences(await fleet.fences(), options) || reportSilent(fleet);
  });
  addChange(fence, {
    action: 'apply',
    description: "Take the writes from the source's users now, until fence lift; clients of the proxy keep theirs",
    example: 'shadow-compare fence apply --reason "a job still writes" --plan migration.yaml',
    holds: 'every source is fenced',
    fails: 'a source cannot be fenced: nothing was changed there',
  });
  addChange(fence, {
    action: 'lift',
    description: "Give the source's users their writes back; the next promotion to live takes them again",
    example: 'shadow-compare fence lift --plan migration.yaml',
    holds: 'every user may do what it might do before',
    fails: 'refused by a source',
  });
}

interface Change {
  readonly action: 'apply' | 'lift';
  readonly description: string;
  readonly example: string;
  /** The meaning of the exit codes 0 and 1. */
  readonly holds: string;
  readonly fails: string;
}

function addChange(fence: Command, { action, description, example, holds, fails }: Change): void {
  const command = fence
    .command(action)
    .description(description)
    .option('--shard <name>', 'only this shard (default: all shards of the plan)')
    .option('--reason <text>', 'reason, kept in the history')
    .option(...JSON_OPTION);
  withManual(command, example, { 0: holds, 1: fails, 3: NO_PROXY });
  addAdminOptions(command).action((options: FenceOptions) => change(action, options));
}

async function change(action: Change['action'], options: FenceOptions): Promise<void> {
  const { shard, reason } = options;
  const fleet = await Fleet.open(options);
  const fences = await fleet.fence({ shard, action, reason, by: userInfo().username });
  process.exitCode = printFences(fences, options) || reportSilent(fleet);
}

/** @returns the exit code */
function printFences(fences: readonly ShardFence[], { json }: FenceOptions): number {
  print(json ? JSON.stringify(fences, null, 2) : fences.map(render).join('\n'));
  const isWrong = ({ plan, since, problem }: ShardFence): boolean =>
    problem !== null && (plan !== 'off' || since !== null);
  return fences.some(isWrong) ? exitCode.fails : exitCode.holds;
}

function render({ shard, plan, since, hand, problem, users, clients }: ShardFence): string {
  const by = hand === null ? '' : `, ${hand} by hand`;
  const names = users.length === 0 ? 'no user' : users.join(', ');
  const standing =
    since === null
      ? `not fenced${by} (fence: ${plan} in the plan); ${names} would lose writes`
      : `fenced since ${since}${by}; without writes: ${names}`;
  const direct = clients.map((client) => `  ${describeClient(client)}, idle for ${client.idleSeconds} s`);
  return [
    `${shard}: ${standing}; ${count(clients.length, 'client')} connected directly as one of them`,
    ...direct,
    ...(problem === null ? [] : [`  ${problem}`]),
  ].join('\n');
}
