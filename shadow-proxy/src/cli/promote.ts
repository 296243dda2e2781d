/**
 * `shadow-compare promote`: moves a workload to its next stage if its gates are open, and shows each gate with its
 * evidence.
 */
import { userInfo } from 'node:os';
import { Option, type Command } from 'commander';
import type { Consent } from '../stages/gate-facts.js';
import { closedGates, type Gate } from '../stages/gates.js';
import { about } from '../stages/pace.js';
import type { PromoteRequest } from '../stages/promotion.js';
import { formatPoint } from '../storage/state.js';
import { STAGES, type Stage } from '../route/stage.js';
import { count } from '../text/figures.js';
import { addAdminOptions, commandLine, type AdminClientOptions, type ShardPromotion } from './admin-client.js';
import { confirmEnd, confirmKeys, endOf, keysConfirmed, POINT_OF_NO_RETURN, YES } from './confirm.js';
import { CliError, exitCode, percentage } from './exit.js';
import { Fleet } from './fleet.js';
import { nextOf, renderGates } from './gates.js';
import { hooksRun, hooksToRun } from './hooks.js';
import { NO_PROXY, withManual } from './manual.js';
import { withStages } from './stages-help.js';
import { addScheduleOptions, clock, openingOf, Waiting, type Opening, type ScheduleOptions } from './schedule.js';
import { addWaitOptions, awaitGates, opensWithin, WAIT_MS, type WaitOptions } from './wait.js';
import { stdout } from './output.js';

interface PromoteOptions extends AdminClientOptions, WaitOptions, ScheduleOptions {
  readonly shard?: string;
  readonly to?: Stage;
  readonly percent?: number;
  readonly dryRun?: boolean;
  readonly force?: boolean;
  readonly forceSuspects?: boolean;
  readonly forceUsers?: boolean;
  readonly acceptVersion?: boolean;
  readonly reason?: string;
  readonly overwrite?: boolean;
  readonly deleteForeign?: boolean;
  readonly yes?: number;
  readonly pointOfNoReturn?: string;
}

export function addPromote(program: Command): void {
  const command = program
    .command('promote')
    .description('Move a workload to its next stage, if its gates are open')
    .argument('<workload>', 'name of the workload, or default')
    .option('--shard <name>', 'only on this shard (default: all shards of the plan, or none)')
    .addOption(new Option('--to <stage>', 'the stage (default: the next one)').choices(STAGES))
    .option('--percent <number>', 'share of the keys, with live (default: 1, then 10, 50, 100)', percentage)
    .option('--dry-run', 'judge the gates and all else that could refuse the change; change nothing')
    .option(
      '--force',
      'continue although gates are closed (not the gates target and users); needs --reason, which is kept in the history',
    )
    .option(
      '--force-suspects',
      'continue although the mirror has suspects, and lose the writes that it lacks; needs --reason',
    )
    .option(
      '--force-users',
      'continue although the gate users is closed: clients may lose access, or gain it; needs --reason',
    )
    .option(
      '--accept-version',
      'accept servers that are newer than this release knows, on this shard from now on; needs --reason',
    )
    .option(
      '--overwrite',
      'with dualwrite: allow overwriting keys on the target that the kit did not write; asks for their number',
    )
    .option('--delete-foreign', 'with dualwrite: allow backfill to delete foreign keys; asks for their number')
    .option(...YES, keysConfirmed)
    .option('--reason <text>', 'reason, kept in the history')
    .option(...POINT_OF_NO_RETURN)
    .option('--json', 'print JSON');
  withStages(command, true);
  withManual(command, 'shadow-compare promote sessions --dry-run', {
    0: 'the workload was moved; with --dry-run: it would be',
    1: 'a gate is closed (NO), or the move was refused: nothing was changed',
    3: `gates are UNKNOWN, and none is NO: nothing was changed; ${NO_PROXY}`,
  });
  addAdminOptions(addScheduleOptions(addWaitOptions(command))).action(
    async (workload: string, options: PromoteOptions) => {
      process.exitCode = await promote(workload, options);
    },
  );
}

async function promote(workload: string, options: PromoteOptions): Promise<number> {
  const { shard, to, percent, dryRun, force, forceSuspects, forceUsers, acceptVersion, reason } = options;
  const client = await Fleet.open(options);
  const by = userInfo().username;
  const wanted = { shard, workload, to, percent, force, forceSuspects, forceUsers, acceptVersion, reason, by };
  const closedOf = (promotions: readonly ShardPromotion[]): Gate[] =>
    closedGates(
      promotions.flatMap(({ gates }) => gates),
      options,
    );
  const opening = dryRun ? null : openingOf(options, Date.now());
  const scheduled = opening === null ? null : await schedule(client, wanted, opening, closedOf, options);
  if (typeof scheduled === 'number') return scheduled;
  try {
    return await make(client, scheduled?.asked ?? wanted, opening, closedOf, options);
  } finally {
    await scheduled?.waiting.end('it was promoted, or refused');
  }
}

/** Waits for gates that open by waiting, and then makes the change. @returns the exit code */
async function make(
  client: Fleet,
  asked: WantedPromotion,
  opening: Opening | null,
  closedOf: (promotions: readonly ShardPromotion[]) => Gate[],
  options: PromoteOptions,
): Promise<number> {
  const { workload } = asked;
  const { dryRun } = options;
  const [judged, consent] = await awaitGates(
    () => judge(client, asked, options),
    ([promotions]) => closedOf(promotions),
    opening === null ? options : { ...options, wait: waitWithin(opening, options) },
  );
  const closed = closedOf(judged);
  if (opening?.to && Date.now() >= opening.to)
    throw new CliError('too-late', `The window ended ${clock(opening.to)}: nothing was changed`, exitCode.fails);
  if (dryRun || closed.length > 0) {
    const text = `${judged.map(render).join('\n\n')}\n${closed.length === 0 ? openOf(judged) : `${closed.length === 1 ? 'A gate is' : 'Gates are'} closed: nothing was changed.${hintOf(closed, options)}${whenOf(closed)}${nextOf(closed, (each) => commandLine(each, options))}`}`;
    stdout.write(`${options.json ? JSON.stringify(judged, null, 2) : text}\n`);
    if (closed.length === 0) return exitCode.holds;
    return closed.some(({ answer }) => answer === 'no') ? exitCode.fails : exitCode.inconclusive;
  }
  let pointOfNoReturn: string | undefined;
  if (judged.some((each) => each.to.stage === 'complete')) {
    pointOfNoReturn = await migrationOf(client);
    // If it waited, the operator was asked before.
    if (opening === null)
      await confirmEnd(pointOfNoReturn, { what: endOf([workload]), json: options.json }, options.pointOfNoReturn);
  }
  const done = await client.promote({ ...asked, consent, pointOfNoReturn });
  stdout.write(`${options.json ? JSON.stringify(done, null, 2) : done.map(render).join('\n\n')}\n`);
  return exitCode.holds;
}

/** The name that confirms the move to `complete`. @throws {CliError} if the proxy does not send it */
async function migrationOf(client: Fleet): Promise<string> {
  const { migration } = await client.status();
  if (migration !== null) return migration;
  throw new CliError(
    'unreachable',
    'the proxy does not say the name of its migration, which confirms the move to complete. Upgrade the proxy',
    exitCode.inconclusive,
  );
}

type WantedPromotion = PromoteRequest & { readonly shard?: string };

/** The maximum wait: in a window, until its end; at a time of the day, as long as a terminal waits. */
function waitWithin({ to }: Opening, { wait }: PromoteOptions): number | false {
  if (wait === false) return false;
  const leftMs = to === null ? Infinity : Math.max(1, to - Date.now());
  return Math.min(wait ?? (to === null ? WAIT_MS : leftMs), leftMs);
}

/**
 * Judges the gates, asks for all confirmations while the operator is there, and waits for the opening.
 * @returns the change as it is then (another operator may have made the first step meanwhile); or the exit code, if a
 * gate will not be open by then
 */
async function schedule(
  client: Fleet,
  wanted: WantedPromotion,
  opening: Opening,
  closedOf: (promotions: readonly ShardPromotion[]) => readonly Gate[],
  options: PromoteOptions,
): Promise<{ readonly asked: WantedPromotion; readonly waiting: Waiting } | number> {
  if ((options.overwrite || options.deleteForeign) && options.yes === undefined)
    throw new CliError(
      'option',
      '--at and --window need --yes NUMBER with --overwrite and --delete-foreign: nobody can be asked then',
      exitCode.usage,
    );
  const [judged] = await judge(client, wanted, options);
  const [{ to }] = judged;
  const closed = closedOf(judged);
  const lastMs = Math.max(opening.from + (waitWithin(opening, options) || 0), opening.to ?? 0) - Date.now();
  if (closed.length > 0 && !opensWithin(closed, lastMs)) {
    const late = closed.filter((gate) => !opensWithin([gate], lastMs)).map(({ name }) => name);
    stdout.write(
      `${options.json ? JSON.stringify(judged, null, 2) : `${judged.map(render).join('\n\n')}\nNot open by then without an action: ${late.join(', ')}. Nothing waits, and nothing was changed.${nextOf(closed, (each) => commandLine(each, options))}`}\n`,
    );
    return exitCode.fails;
  }
  if (to.stage === 'complete') {
    const migration = await migrationOf(client);
    await confirmEnd(migration, { what: endOf([wanted.workload]), json: options.json }, options.pointOfNoReturn);
  }
  const waiting = new Waiting(client, wanted.workload, `${wanted.workload} to ${formatPoint(to)}`);
  const open =
    closed.length === 0 ? 'all gates are open' : `not open yet: ${closed.map(({ name }) => name).join(', ')}`;
  await waiting.until(opening, `; ${open}`);
  const percent = to.stage === 'live' ? to.percent : undefined;
  return { asked: { ...wanted, to: to.stage, percent }, waiting };
}

/** The result of a dry run that no gate blocks. */
function openOf(judged: readonly ShardPromotion[]): string {
  const forced = new Set(closedGates(judged.flatMap(({ gates }) => gates)).map(({ name }) => name));
  return forced.size === 0
    ? 'All gates are open.'
    : `Closed gates that the options pass: ${[...forced].join(', ')}. The other gates are open.`;
}

/** The hint if only the gate `users` is left, because the others were forced. */
const hintOf = (closed: readonly Gate[], { force, forceUsers }: PromoteOptions): string =>
  force && !forceUsers && closed.some(({ name }) => name === 'users')
    ? '\n--force does not open the gate users: give both servers the same users, or add --force-users.'
    : '';

/** The text if only waiting is needed. */
function whenOf(closed: readonly Gate[]): string {
  const left = closed.map(({ opensInMs }) => opensInMs);
  return left.every((ms) => typeof ms === 'number')
    ? `\nAll gates open in ${about(Math.max(...left))} at the present rate, if nothing else changes. Run the command again then.`
    : '';
}

/** Judges the gates. If an operator allows overwriting or deleting keys of the target, their number is confirmed. */
async function judge(
  client: Fleet,
  request: PromoteRequest & { readonly shard?: string },
  options: PromoteOptions,
): Promise<[readonly ShardPromotion[], Consent | undefined]> {
  const { overwrite = false, deleteForeign = false, yes = 0, dryRun } = options;
  const judged = (consent?: Consent): Promise<readonly ShardPromotion[]> =>
    client.promote({ ...request, consent, dryRun: true });
  if (!overwrite && !deleteForeign) return [await judged(), undefined];
  const first = await judged({ overwrite, deleteForeign, confirm: yes });
  const keys = first.map(({ targetKeys }) => targetKeys).filter((each) => each !== null);
  const found = keys.reduce((all, each) => all + each.found, 0);
  const uncovered = !overwrite && keys.some(({ onSource }) => onSource > 0);
  if (dryRun || found === 0 || uncovered || keys.some(({ complete }) => !complete))
    return [first, { overwrite, deleteForeign, confirm: yes }];
  const kept = found - keys.reduce((all, { onSource }) => all + onSource, 0);
  const foreign = `${count(kept, 'foreign key')}: ${deleteForeign ? 'deleted by the backfill' : 'kept until a client writes them'}`;
  const what = `Keys of "${request.workload}" on the target that the kit did not write: ${count(found - kept, 'key')} also on the source: overwritten; ${foreign}`;
  await confirmKeys(found, { what, json: options.json }, options.yes);
  const consent = { overwrite, deleteForeign, confirm: found };
  return [await judged(consent), consent];
}

function render({ shard, workload, from, to, gates, hooks, change }: ShardPromotion): string {
  const head = `${shard}: ${workload} ${formatPoint(from)} → ${formatPoint(to)}${change === null ? '' : `, done (commands held for ${change.heldMs.toFixed(1)} ms)`}`;
  return [head, renderGates(gates), ...hooksToRun(hooks), ...hooksRun(change?.hooks)].join('\n');
}
