/** `shadow-compare promote`: a workload's next stage, if its gates are open; each gate with its evidence. */
import { userInfo } from 'node:os';
import { createInterface } from 'node:readline/promises';
import Table from 'cli-table3';
import { Option, type Command } from 'commander';
import type { Answer } from '../stages/gate-answer.js';
import type { Consent } from '../stages/gate-facts.js';
import { closedGates, type Gate } from '../stages/gates.js';
import type { PromoteRequest } from '../stages/promotion.js';
import { formatPoint } from '../storage/state.js';
import { STAGES, type Stage } from '../route/stage.js';
import { number } from '../text/figures.js';
import { AdminClient, addAdminOptions, type AdminClientOptions, type ShardPromotion } from './admin-client.js';
import { confirmKeys, keysConfirmed, YES } from './confirm.js';
import { CliError, exitCode, percentage } from './exit.js';

interface PromoteOptions extends AdminClientOptions {
  readonly shard?: string;
  readonly to?: Stage;
  readonly percent?: number;
  readonly dryRun?: boolean;
  readonly force?: boolean;
  readonly forceUsers?: boolean;
  readonly reason?: string;
  readonly overwrite?: boolean;
  readonly deleteForeign?: boolean;
  readonly yes?: number;
  readonly pointOfNoReturn?: string;
  readonly json?: boolean;
}

export function addPromote(program: Command): void {
  const command = program
    .command('promote')
    .description('Move a workload to its next stage, if its gates are open')
    .argument('<workload>', 'name of the workload, or default')
    .option('--shard <name>', 'on this shard only (default: on all shards of the proxy, or on none)')
    .addOption(new Option('--to <stage>', 'the stage (default: the next one)').choices(STAGES))
    .option('--percent <number>', 'share of the keys, with live (default: 1, then 10, 50, 100)', percentage)
    .option('--dry-run', 'only judge the gates')
    .option(
      '--force',
      'go on where gates are closed, but not the gates target and users; needs --reason, and is written into the history',
    )
    .option(
      '--force-users',
      'go on where the gate users is closed: clients may be locked out, or others let in; needs --reason',
    )
    .option(
      '--overwrite',
      'to dualwrite: keys of the target that the proxy did not write may be overwritten; asks for their number',
    )
    .option(
      '--delete-foreign',
      'to dualwrite: backfill may delete those that the source does not have; asks for their number',
    )
    .option(...YES, keysConfirmed)
    .option('--reason <text>', 'why, for the history')
    .option('--point-of-no-return <workload>', 'with complete: the name of the workload once more')
    .option('--json', 'print JSON');
  addAdminOptions(command).action(async (workload: string, options: PromoteOptions) => {
    process.exitCode = await promote(workload, options);
  });
}

async function promote(workload: string, options: PromoteOptions): Promise<number> {
  const { shard, to, percent, dryRun, force, forceUsers, reason } = options;
  const client = new AdminClient(options);
  const asked = { shard, workload, to, percent, force, forceUsers, reason, by: userInfo().username };
  const [judged, consent] = await judge(client, asked, options);
  const request = { ...asked, consent };
  const all = judged.flatMap(({ gates }) => gates);
  const closed = closedGates(all, dryRun ? {} : options);
  if (dryRun || closed.length > 0) {
    process.stdout.write(
      `${options.json ? JSON.stringify(judged, null, 2) : `${judged.map(render).join('\n\n')}\n${closed.length === 0 ? 'All gates are open.' : `${closed.length === 1 ? 'A gate is' : 'Gates are'} closed: nothing was changed.${hintOf(closed, options)}`}`}\n`,
    );
    if (closed.length === 0) return exitCode.holds;
    return closed.some(({ answer }) => answer === 'no') ? exitCode.fails : exitCode.inconclusive;
  }
  if (judged.some((each) => each.to.stage === 'complete')) await confirmEnd(workload, options);
  const done = await client.promote(request);
  process.stdout.write(`${options.json ? JSON.stringify(done, null, 2) : done.map(render).join('\n\n')}\n`);
  return exitCode.holds;
}

/** Where only the gate `users` is left, because the others were forced. */
const hintOf = (closed: readonly Gate[], { force, forceUsers }: PromoteOptions): string =>
  force && !forceUsers && closed.some(({ name }) => name === 'users')
    ? '\n--force does not open the gate users: make the users of both servers alike, or add --force-users.'
    : '';

/**
 * The gates; where an operator allows that keys of the target are overwritten or deleted, with their number confirmed.
 */
async function judge(
  client: AdminClient,
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
  const foreign = `${number(kept)} that only the target has are ${deleteForeign ? 'deleted by the backfill' : 'kept, until a client writes them'}`;
  const what = `Keys of "${request.workload}" on the target that the proxy did not write: ${number(found - kept)} that the source has, too, are overwritten, ${foreign}`;
  await confirmKeys(found, what, options);
  const consent = { overwrite, deleteForeign, confirm: found };
  return [await judged(consent), consent];
}

/** Asked twice: nothing leads back from there but a backfill the other way. */
async function confirmEnd(workload: string, { pointOfNoReturn, json }: PromoteOptions): Promise<void> {
  const warning = `"${workload}" goes to complete: from then on the source is not written any more. This is the point of no return: what is written afterwards is on the target alone, and going back is a backfill the other way.`;
  const refused = (what: string): CliError => new CliError('point-of-no-return', `${warning}\n${what}`, exitCode.usage);
  if (pointOfNoReturn !== undefined) {
    if (pointOfNoReturn === workload) return;
    throw refused(`--point-of-no-return ${pointOfNoReturn} is not its name: nothing was changed`);
  }
  if (json || !process.stdin.isTTY) throw refused(`Say it twice: add --point-of-no-return ${workload}`);
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    process.stderr.write(`${warning}\n`);
    const first = await terminal.question('Go on? (yes or no) ');
    if (first !== 'yes' || (await terminal.question('Write the name of the workload: ')) !== workload)
      throw refused('Nothing was changed');
  } finally {
    terminal.close();
  }
}

const WORDS: Readonly<Record<Answer, string>> = { yes: 'yes', no: 'NO', unknown: 'UNKNOWN' };

function render({ shard, workload, from, to, gates, change }: ShardPromotion): string {
  const head = `${shard}: ${workload} ${formatPoint(from)} → ${formatPoint(to)}${change === null ? '' : `, done (held its commands for ${change.heldMs.toFixed(1)} ms)`}`;
  return `${head}\n${renderGates(gates)}`;
}

/** Fits 80 columns. */
function renderGates(gates: readonly Gate[]): string {
  const table = new Table({ style: { head: [], border: [] }, colWidths: [9, 14, 55], wordWrap: true });
  for (const { name, answer, evidence } of gates) table.push([WORDS[answer], name, evidence]);
  return table.toString();
}
