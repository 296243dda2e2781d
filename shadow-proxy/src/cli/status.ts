/** `shadow-compare status`: shows the shards and workloads of a running proxy, in 80 columns. */
import Table from 'cli-table3';
import type { Command } from 'commander';
import { attentionOfAutomatic } from '../page/attention.js';
import { NOT_COPIED } from '../telemetry/snapshot.js';
import { SIDES, shadowsReads } from '../route/stage.js';
import { originsOf } from '../telemetry/error-origins.js';
import { describeRefused, evictionNote } from '../telemetry/server-notes.js';
import { count, duration, list, number, unlessUp } from '../text/figures.js';
import { typed } from '../text/invocation.js';
import { quoted } from '../text/shell.js';
import {
  OLD_RESERVATION_MS,
  sum,
  type LatencySnapshot,
  type OutageSnapshot,
  type ReservationsSnapshot,
} from '../telemetry/snapshot.js';
import type { ServerSnapshot, ShardSnapshot, WorkloadSnapshot } from '../telemetry/snapshot.js';
import type { CountingKind } from '../command/counting-kind.js';
import { formatPoint } from '../storage/state.js';
import { tell } from '../guard/judge.js';
import { countsByClass } from '../plan/counters.js';
import { backfillOf, isDown, rollbackOf, type NextCommand, type WorkloadCondition } from '../telemetry/advice.js';
import { addAdminOptions, commandLine, type AdminClientOptions } from './admin-client.js';
import { CliError, exitCode, NO_SHARD, repeat } from './exit.js';
import { Fleet, reportSilent, type FleetStatus } from './fleet.js';
import { MANY_SHARDS, renderFleet } from './fleet-status.js';
import { renderJob } from './job-progress.js';
import { withManual } from './manual.js';
import { PLAIN, short } from './table.js';
import { unfreeze } from './view.js';
import { stdout } from './output.js';

interface StatusOptions extends AdminClientOptions {
  readonly shard?: readonly string[];
  readonly each?: boolean;
  readonly watch?: boolean;
  readonly json?: boolean;
}

const WATCH_MS = 1_000;

export function addStatus(program: Command): void {
  const command = program.command('status').description('Show the shards and workloads of a running proxy');
  withManual(command, 'shadow-compare status --watch', {
    0: 'shown',
    3: 'no proxy answers, or not for every shard: the others are shown',
  });
  addAdminOptions(command)
    .option('--shard <names...>', 'these shards in full')
    .option('--each', `every shard in full; without it, ${MANY_SHARDS} shards or more are summed up`)
    .option('--watch', 'repeat every second until Ctrl-C')
    .option('--json', 'print JSON: every shard, or those of --shard')
    .action(async (options: StatusOptions) => {
      const fleet = await Fleet.open(options);
      if (options.watch) return watch(fleet, options);
      const [text, status] = await readStatus(fleet, options);
      stdout.write(`${text || NO_SHARD}\n`);
      process.exitCode = reportSilent(status);
      // A shard may not be shown: it is starting, its proxy is a standby, or no proxy answers.
      if (status.shards.length === 0 || status.unserved.length > 0) process.exitCode = exitCode.inconclusive;
    });
}

/** Redraws on a terminal, else prints one status after the other. Waits while no proxy can be reached. */
const watch = (fleet: Fleet, options: StatusOptions): Promise<void> =>
  repeat(WATCH_MS, async () => {
    process.exitCode = exitCode.holds;
    const drawn = await readStatus(fleet, options).then(
      ([text, { silent }]) => [text, ...silent.map(({ error }) => error.message)].join('\n'),
      (error: unknown) => {
        if (!(error instanceof CliError) || error.code !== 'unreachable') throw error;
        process.exitCode = error.exit;
        return error.message;
      },
    );
    if (process.stdout.isTTY && !options.json) (await import('./redraw.js')).redraw(drawn);
    else stdout.write(`${drawn}\n`);
  });

async function readStatus(fleet: Fleet, options: StatusOptions): Promise<[text: string, status: FleetStatus]> {
  const status = await fleet.status();
  const { shard: names, each, json } = options;
  const isAsked = (name: string): boolean => names?.includes(name) !== false;
  const shards = status.shards.filter(({ name }) => isAsked(name));
  const known = [
    ...status.shards.map(({ name }) => name),
    ...status.starting.map(({ shard }) => shard),
    ...status.unserved,
  ];
  const wrong = names?.find((name) => !known.includes(name));
  if (wrong !== undefined)
    throw new CliError(
      'unknown-shard',
      `--shard ${wrong}: there is no such shard. The shards: ${known.join(', ')}`,
      exitCode.usage,
    );
  if (json) return [JSON.stringify(shards, null, 2), status];
  if (names === undefined && !each && known.length >= MANY_SHARDS)
    return [renderFleet(status, options), { ...status, silent: [] }];
  const text = [
    ...shards.map((shard) => renderShard(shard, options)),
    ...status.starting
      .filter(({ shard }) => isAsked(shard))
      .map(({ shard, problem }) => `shard ${shard}\nNOT STARTED, next try in 1 s: ${problem}`),
    ...status.unserved.filter(isAsked).map((shard) => `shard ${shard}\nNOT SERVED: no proxy answers for it`),
  ].join('\n\n');
  return [text, status];
}

const NAME_COLUMNS = 13;
/** The width that the other columns leave of 80; a longer name is wrapped. */
const MAX_WORKLOAD_COLUMNS = 20;
/** @param options the options that reach the proxy: suggested commands include them */
export function renderShard(shard: ShardSnapshot, options: AdminClientOptions = {}): string {
  const facts = factsOf(shard, options).map(renderFact).join('\n');
  const workloads = new Table({
    ...PLAIN,
    chars: { ...PLAIN.chars, middle: ' ' },
    wordWrap: true,
    wrapOnWordBoundary: false,
    colWidths: [Math.min(MAX_WORKLOAD_COLUMNS, Math.max(...shard.workloads.map(({ name }) => name.length), 8))],
    // cspell:ignore incon nclusive
    head: ['workload', 'stage', 'cmds', 'compared', 'allowed', 'mismatch', 'incon-\nclusive', 'suspect'],
    colAligns: ['left', 'left', 'right', 'right', 'right', 'right', 'right', 'right'],
  });
  for (const w of shard.workloads)
    workloads.push([
      w.name,
      formatPoint(w),
      ...[w.operations, w.compared, w.allowed, w.mismatches, w.inconclusive].map(short),
      w.suspect === null ? short(w.suspects) : 'all',
    ]);
  const notes = shard.workloads.flatMap((workload) =>
    noteOf(workload, { frozen: shard.frozen, down: isDown(shard) }, options),
  );
  const job = shard.job === null ? [] : [renderJob({ shard: shard.name, job: shard.job })];
  return [`shard ${shard.name}`, facts, '', workloads.toString(), ...notes, ...job].join('\n').replace(/ +$/gm, '');
}

/** A fact in 80 columns. `next` is not wrapped, because commands are copied from it. */
type Fact = readonly [name: string, value: string, next?: string];

function renderFact([name, value, next]: Fact): string {
  const table = new Table({ ...PLAIN, colWidths: [NAME_COLUMNS, 80 - NAME_COLUMNS - 2], wordWrap: true });
  table.push([name, value]);
  return next === undefined ? table.toString() : `${table.toString()}\n${next}`;
}

/** Kinds whose value is a number that is increased or a limiter's window. */
const COUNTER_KINDS: ReadonlySet<CountingKind> = new Set(['increment', 'float', 'window', 'rewrite']);

/**
 * Counting commands on keys that the plan does not class as counters.
 * @param isCounter whether to list the commands of COUNTER_KINDS, or the others: two active nodes may apply those in
 * different orders
 */
function unplanned({ counting, workloads }: ShardSnapshot, isCounter: boolean): string {
  const classOf = new Map(workloads.map((workload) => [workload.name, workload.class]));
  return tell(
    counting.filter(
      ({ workload, kind }) =>
        COUNTER_KINDS.has(kind) === isCounter && !countsByClass(classOf.get(workload) ?? 'general'),
    ),
  );
}

function factsOf(shard: ShardSnapshot, options: AdminClientOptions): Fact[] {
  const {
    source,
    target,
    operations,
    clients,
    allowed,
    mismatches,
    inconclusive,
    latency,
    mirror,
    reservations,
    suspects,
    fieldTtls,
    unsupported,
    otherShardCommands,
    clockAheadMs,
    frozen,
    outage,
  } = shard;
  const [counters, ordered] = [true, false].map((isCounter) => unplanned(shard, isCounter));
  const plan = options.plan === undefined ? 'PLAN' : quoted(options.plan);
  const guard = `To check them:\n  ${typed(`shadow-compare guard --plan ${plan}`)}`;
  const facts: Fact[] = [
    ['source', server(source)],
    ['target', server(target)],
    ['commands', `${number(operations)}, ${count(clients, 'client')}`],
    ['p50 / p99', `source ${times(latency.source)}, target ${times(latency.target)}`],
    [
      'mirror',
      `${mirror.connected ? '' : 'DISCONNECTED, '}${number(mirror.lagMs)} ms behind, ${count(mirror.queuedEffects, 'effect')} queued${mirror.dropped > 0 ? `, ${number(mirror.dropped)} dropped` : ''}`,
    ],
  ];
  const more: [boolean, ...Fact][] = [
    [sum(mismatches) > 0, 'MISMATCHES', list(mismatches)],
    [sum(allowed) > 0, 'allowed', list(allowed)],
    [sum(inconclusive) > 0, 'inconclusive', list(inconclusive)],
    [suspects.total > 0, 'suspects', `${count(suspects.total, 'key')}: ${list(suspects.byReason)}`],
    [
      fieldTtls !== null && fieldTtls.stripped > 0,
      'field TTLs',
      `${count(fieldTtls?.keys ?? 0, 'key')} with fields that expire; copies have left out ${count(fieldTtls?.stripped ?? 0, 'TTL')}`,
    ],
    [reservations.oldestMs >= OLD_RESERVATION_MS, 'KEYS HELD', reserved(reservations)],
    ...SIDES.map((side): [boolean, ...Fact] => [
      sum(shard.clientErrors[side]) > 0,
      'errors',
      `clients received from the ${side}: ${list(shard.clientErrors[side])}${originsOf(shard.clientErrorOrigins, side)}`,
    ]),
    [
      sum(shard.clientsClosed) > 0,
      'closed',
      `clients closed, by the limit they exceeded, by their PROXY header (header), or by a failure of the proxy: ${list(shard.clientsClosed)}`,
    ],
    [
      shard.replyFailures > 0,
      'FAILED',
      `the proxy failed at ${count(shard.replyFailures, 'reply', 'replies')}: their keys are copied again, and the log has each with its stack`,
    ],
    [sum(unsupported) > 0, 'unsupported', `only one server supports: ${list(unsupported)}`],
    [otherShardCommands > 0, 'other shards', `${count(otherShardCommands, 'command')} on keys of other shards`],
    [clockAheadMs !== 0, 'clocks', `the clock of the target is ${number(clockAheadMs)} ms ahead`],
    [counters !== '', 'counters', `${counters}\nthe plan does not class these as counters`, guard],
    [
      ordered !== '',
      'one writer',
      `${ordered}\nlists, streams, locks, APPEND and scripts, no counters: correct while one node of the target accepts writes`,
      counters === '' ? guard : undefined,
    ],
    ...SIDES.map((side): [boolean, ...Fact] => [
      shard[side].evicted > 0,
      shard[side].evicting ? 'EVICTING' : 'evicted',
      evictionNote(side, shard[side], Date.now()),
    ]),
    [frozen !== null, 'FROZEN', frozen ?? '', unfreeze(options)],
    [
      outage !== null,
      outage?.endedAt === null ? 'OUTAGE' : 'outage',
      ...(outage === null ? ([''] as const) : outageOf(outage, options)),
    ],
  ];
  return [...facts, ...more.filter(([applies]) => applies).map(([, ...fact]): Fact => fact)];
}

/** Keys that one command has locked for too long. */
const reserved = ({ byAge, oldestMs, longestWaitMs }: ReservationsSnapshot): string =>
  `${count(byAge.older, 'old reservation')}, the oldest for ${duration(oldestMs / 1000)}; a command has waited for ${duration(longestWaitMs / 1000)}` +
  '\nnext: runbooks/KeysReserved.md';

/** The outage of each workload, and what can be done. */
function outageOf(
  { side, since, endedAt, workloads }: OutageSnapshot,
  options: AdminClientOptions,
): [value: string, next: string] {
  const head =
    endedAt === null ? `the ${side} is down since ${since}` : `the ${side} was down from ${since} to ${endedAt}`;
  const each = workloads.map(({ name, movedTo, why, unanswered, keys }) => {
    const lost =
      unanswered === 0
        ? ''
        : `; ${count(unanswered, 'write')} in flight, result unknown: ${keys.join(', ')}${unanswered > keys.length ? ', …' : ''}`;
    return `${name}: ${movedTo === null ? `no failover: ${why ?? ''}` : `failed over to ${formatPoint(movedTo)}`}${lost}`;
  });
  const ways = workloads.flatMap(({ name, next, instead }) => [
    `next, ${name}: ${next}`,
    ...(instead === undefined || endedAt !== null
      ? []
      : [`or ${instead.text}:\n  ${commandLine(instead.command, options)}`]),
  ]);
  return [[head, ...each].join('\n'), ways.join('\n')];
}

/** What an operator must do about a workload. */
function noteOf(
  workload: WorkloadSnapshot,
  condition: Pick<WorkloadCondition, 'frozen' | 'down'>,
  options: AdminClientOptions,
): string[] {
  const { name, stage, suspect, secondWriterWrites, newErrors, shadowReads = 100 } = workload;
  const next = (command: NextCommand): string =>
    command === undefined ? '' : `; next:\n  ${commandLine(command, options)}`;
  const errors = `${name}: the target sent clients ${count(sum(newErrors), 'error')} that the source would not have sent: ${list(newErrors)}`;
  const notes = [
    ...(sum(newErrors) === 0 ? [] : [`${errors}${next(rollbackOf({ name, stage }))}`]),
    ...attentionOfAutomatic(workload).map(
      ({ text, command }) => `${text.replace(/\.$/, '')}${next(command === 'status' ? undefined : command)}`,
    ),
    ...secondWriterNotes(name, secondWriterWrites),
    ...(shadowReads < 100 && shadowsReads(workload)
      ? [`${name}: ${shadowReads} % of reads compared (shadowReads of the plan)`]
      : []),
  ];
  if (suspect === null) return notes;
  return [
    ...notes,
    `${name}: every key is suspect: ${suspect}${suspect === NOT_COPIED ? next(backfillOf({ name, stage, ...condition })) : ''}`,
  ];
}

const secondWriterNotes = (name: string, secondWriterWrites: number): string[] =>
  secondWriterWrites === 0
    ? []
    : [`${name}: ${count(secondWriterWrites, 'write')} arrived here, but another region is the only writer`];

const server = ({ url, version, role, up, silentMs, problem, refusedDatabases }: ServerSnapshot): string =>
  `${url}${version === null ? '' : ` (${version}${role === null || role === 'master' ? '' : `, ${role}`})`}${unlessUp(silentMs > 0 ? false : up)}${problem === null ? '' : `\nNOT USED: ${problem}`}${refusedDatabases.length === 0 ? '' : `\nREFUSES ${describeRefused(refusedDatabases)}`}`;
const times = ({ p50, p99, count }: LatencySnapshot): string =>
  count === 0 ? '–' : `${(p50 / 1000).toFixed(2)} / ${(p99 / 1000).toFixed(2)} ms`;
