/**
 * `shadow-compare accept`: the operator's word on an authority that came back as another process. Lists what it lacks
 * or has otherwise than its mirror, and, when that is confirmed, has it taken as it is: the mirror is made equal to it.
 */
import { createInterface } from 'node:readline/promises';
import type { Command } from 'commander';
import { fingerprint } from '../upstream/identity.js';
import { sum, type ShardSnapshot } from '../telemetry/snapshot.js';
import { AdminClient, addAdminOptions, type AdminClientOptions } from './admin-client.js';
import { CliError, exitCode, NO_SHARD } from './exit.js';
import { follow, renderJob, shardsOf, type EndedJob } from './job-progress.js';

interface AcceptOptions extends AdminClientOptions {
  readonly shard?: string;
  readonly dryRun?: boolean;
  readonly fromMirror?: boolean;
  readonly yes?: boolean;
  readonly json?: boolean;
}

export function addAccept(program: Command): void {
  const command = program
    .command('accept')
    .description(
      'An authority came back as another process: list what it lacks or has otherwise than the mirror, and take it as it is',
    )
    .option('--shard <name>', 'this shard only (default: all that are frozen)')
    .option('--dry-run', 'only list')
    .option(
      '--from-mirror',
      'first give back what it has lost, from the mirror: keys that were confirmed there and not written since',
    )
    .option('--yes', 'do not ask: what only the mirror has is deleted there')
    .option('--json', 'print JSON');
  addAdminOptions(command).action(async (options: AcceptOptions) => {
    process.exitCode = await accept(options);
  });
}

async function accept(options: AcceptOptions): Promise<number> {
  const client = new AdminClient(options);
  const shards = await client.status();
  if (shards.length === 0) throw new CliError('no-shard', NO_SHARD, exitCode.inconclusive);
  if (options.shard !== undefined && !shards.some(({ name }) => name === options.shard))
    throw new CliError(
      'unknown-shard',
      `there is no shard ${options.shard} here: ${shards.map(({ name }) => name).join(', ')}`,
      exitCode.usage,
    );
  const frozen = shards.filter(({ name, frozen: why }) => why !== null && (options.shard ?? name) === name);
  if (frozen.length === 0) {
    print(options.json ? '[]' : 'Nothing is frozen: every authority is the server that it was.');
    return exitCode.holds;
  }
  const found = await list(client, frozen, options.json === true);
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
      `nothing was changed: what differs could not be listed (${unfinished.job.reason})`,
      exitCode.inconclusive,
    );
  if (!options.yes) await confirm(found, options.fromMirror === true);
  if (options.fromMirror) await giveBack(client, frozen, options.json === true);
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
        `${shard}: the ${servers.join(' and the ')} is accepted as it is; its mirror is being verified and repaired (shadow-compare status)`,
      );
  return exitCode.holds;
}

/** @throws {CliError} where not all of it could be given back: then nothing is accepted */
async function giveBack(client: AdminClient, frozen: readonly ShardSnapshot[], json: boolean): Promise<void> {
  const begun: string[] = [];
  for (const { name } of frozen) begun.push(...shardsOf(await client.startJob({ kind: 'restore', shard: name })));
  const ended = await follow(client, begun, json);
  if (!json) for (const each of ended) print(renderJob(each));
  const short = ended.find(({ job }) => job.state !== 'done' || job.failed > 0);
  if (short !== undefined)
    throw new CliError(
      'not-restored',
      `${short.shard}: not everything could be given back, and nothing was accepted; what was given back stays. Try again, or accept it without --from-mirror`,
      exitCode.fails,
    );
}

/** Both servers are walked over; nothing is changed. */
async function list(
  client: AdminClient,
  frozen: readonly ShardSnapshot[],
  json: boolean,
): Promise<readonly EndedJob[]> {
  const begun: string[] = [];
  for (const { name } of frozen) begun.push(...shardsOf(await client.startJob({ kind: 'verify', shard: name })));
  return follow(client, begun, json);
}

/** @throws {CliError} where the operator does not want it, or cannot be asked */
async function confirm(found: readonly EndedJob[], fromMirror: boolean): Promise<void> {
  const count = found.reduce((keys, { job }) => keys + (job.differences.extra ?? 0), 0);
  const what = fromMirror
    ? `what cannot be given back of ${count} keys that only the mirror has is`
    : `${count} keys that only the mirror has are`;
  if (!process.stdin.isTTY) {
    throw new CliError(
      'not-confirmed',
      `nothing was changed: ${what} to be deleted there; confirm with --yes, or give the authority up (shadow-compare stage … --force)`,
      exitCode.usage,
    );
  }
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  const answer = await terminal.question(`Take it? ${what} deleted there. Type yes: `);
  terminal.close();
  if (answer.trim() !== 'yes') throw new CliError('not-confirmed', 'nothing was changed', exitCode.fails);
}

const print = (text: string): void => void process.stdout.write(`${text}\n`);
