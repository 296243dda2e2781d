/**
 * `shadow-compare accept`: accepts an authority that was restarted or replaced (its run ID changed). Lists the
 * keys that differ from the mirror. After a confirmation, repairs resume: the mirror is made equal to the authority.
 */
import type { Command } from 'commander';
import { fingerprint } from '../upstream/identity.js';
import { sum, type ShardSnapshot } from '../telemetry/snapshot.js';
import { addAdminOptions, commandLine, type AdminClientOptions } from './admin-client.js';
import { confirmKeys, confirmYes, keysConfirmed, YES } from './confirm.js';
import { CliError, exitCode, NO_SHARD } from './exit.js';
import { Fleet } from './fleet.js';
import { NO_PROXY, withManual } from './manual.js';
import { follow, renderJob, shardsOf, type EndedJob } from './job-progress.js';
import { print } from './output.js';

interface AcceptOptions extends AdminClientOptions {
  readonly shard?: string;
  readonly dryRun?: boolean;
  readonly fromMirror?: boolean;
  readonly yes?: number;
  readonly json?: boolean;
}

export function addAccept(program: Command): void {
  const command = program
    .command('accept')
    .description(
      'Accept an authority that was restarted or replaced (run ID changed): list the keys that differ, then resume repairs',
    )
    .option('--shard <name>', 'only this shard (default: all shards whose repairs are frozen)')
    .option('--dry-run', 'only list the differences')
    .option(
      '--from-mirror',
      'first restore lost keys from the mirror: keys that the mirror confirmed and that were not written since',
    )
    .option(...YES, keysConfirmed)
    .option('--json', 'print JSON');
  withManual(command, 'shadow-compare accept --dry-run', {
    0: 'accepted, or repairs are not frozen; with --dry-run: no key differs',
    1: 'not confirmed, or lost keys not restored; with --dry-run: keys differ',
    3: `the differences could not be listed; ${NO_PROXY}`,
  });
  addAdminOptions(command).action(async (options: AcceptOptions) => {
    process.exitCode = await accept(options);
  });
}

async function accept(options: AcceptOptions): Promise<number> {
  const client = await Fleet.open(options);
  const { shards } = await client.status();
  if (shards.length === 0) throw new CliError('no-shard', NO_SHARD, exitCode.inconclusive);
  if (options.shard !== undefined && !shards.some(({ name }) => name === options.shard))
    throw new CliError(
      'unknown-shard',
      `--shard ${options.shard}: the proxy has no such shard. Its shards: ${shards.map(({ name }) => name).join(', ')}`,
      exitCode.usage,
    );
  const frozen = shards.filter(({ name, frozen: why }) => why !== null && (options.shard ?? name) === name);
  if (frozen.length === 0) {
    print(options.json ? '[]' : 'Repairs are not frozen on any shard: there is nothing to accept.');
    return exitCode.holds;
  }
  const found = await list(client, frozen, options);
  if (!options.json)
    for (const each of found) print(`${frozen.find(({ name }) => name === each.shard)!.frozen}\n${renderJob(each)}`);
  if (options.dryRun) {
    if (options.json) print(JSON.stringify(found, null, 2));
    if (found.some(({ job }) => sum(job.differences) > 0)) return exitCode.fails;
    return found.every(({ job }) => job.state === 'done') ? exitCode.holds : exitCode.inconclusive;
  }
  const unfinished = found.find(({ job }) => job.state !== 'done');
  if (unfinished !== undefined)
    throw new CliError(
      'not-listed',
      `Nothing was changed. The differences could not be listed: ${unfinished.job.reason}. Run accept again`,
      exitCode.inconclusive,
    );
  await confirm(found, options);
  if (options.fromMirror) await restoreLost(client, frozen, options);
  const accepted = [];
  for (const { name, source, target } of frozen)
    accepted.push(
      ...(await client.accept({
        shard: name,
        runIds: [source, target].map(({ runId, replId }) => fingerprint({ runId: runId ?? '', replId: replId ?? '' })),
      })),
    );
  if (options.json)
    print(
      JSON.stringify(
        accepted.map((each) => ({ ...each, found: found.find(({ shard }) => shard === each.shard)?.job })),
        null,
        2,
      ),
    );
  else
    for (const { shard, servers } of accepted)
      print(
        `${shard}: accepted the ${servers.join(' and the ')}. The mirror is now verified and repaired; watch it: ${commandLine('status', options)}`,
      );
  return exitCode.holds;
}

/** @throws {CliError} if some keys could not be restored: then nothing is accepted */
async function restoreLost(client: Fleet, frozen: readonly ShardSnapshot[], options: AcceptOptions): Promise<void> {
  const begun: string[] = [];
  for (const { name } of frozen) begun.push(...shardsOf(await client.startJob({ kind: 'restore', shard: name })));
  const ended = await follow(client, begun, 'restore', options);
  if (!options.json) for (const each of ended) print(renderJob(each));
  const short = ended.find(({ job }) => job.state !== 'done' || job.failed > 0);
  if (short !== undefined)
    throw new CliError(
      'not-restored',
      `${short.shard}: not every lost key could be restored, and nothing was accepted. Restored keys stay. Try again, or accept without --from-mirror`,
      exitCode.fails,
    );
}

/** Scans both servers. Read-only. */
async function list(
  client: Fleet,
  frozen: readonly ShardSnapshot[],
  options: AcceptOptions,
): Promise<readonly EndedJob[]> {
  const begun: string[] = [];
  for (const { name } of frozen) begun.push(...shardsOf(await client.startJob({ kind: 'verify', shard: name })));
  return follow(client, begun, 'verify', options);
}

/** Differences in which the mirror has data that the authority lacks or has changed. */
const LOST = ['extra', 'foreign', 'type', 'value', 'ttl'];

/** @throws {CliError} if the operator declines, or cannot be asked */
async function confirm(found: readonly EndedJob[], { fromMirror, yes, json }: AcceptOptions): Promise<void> {
  const keys = found.reduce(
    (all, { job }) => all + LOST.reduce((sum, kind) => sum + (job.differences[kind] ?? 0), 0),
    0,
  );
  if (keys > 0) {
    const what = `The mirror is made equal to the authority. Keys on the mirror that ${fromMirror ? 'cannot be restored will be' : 'will be'} deleted or overwritten${fromMirror ? ', at most' : ''}`;
    await confirmKeys(keys, { what, json, otherwise: 'nothing was changed' }, yes);
  } else if (yes === undefined) {
    const what = 'No key on the mirror would be deleted or overwritten';
    await confirmYes({ what }, 'Accept the authority?', '--yes 0');
  }
}
