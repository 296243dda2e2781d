/** `shadow-compare notify`: lists receivers and their events. With `--test`, it sends a test and shows each answer. */
import { existsSync } from 'node:fs';
import Table from 'cli-table3';
import type { Command } from 'commander';
import type { Happening } from '../notify/notice.js';
import { noticeOf } from '../notify/notifier.js';
import { addressOf, send } from '../notify/send.js';
import { loadPlan } from '../plan/load.js';
import type { Plan, ReceiverPlan } from '../plan/plan.js';
import { CliError, exitCode } from './exit.js';
import { withManual } from './manual.js';
import { stdout } from './output.js';

interface NotifyOptions {
  readonly plan?: string;
  readonly test?: boolean;
  readonly json?: boolean;
}

interface Row {
  readonly receiver: string;
  readonly kind: string;
  /** Without parts that may be a secret. */
  readonly address: string;
  readonly events: readonly string[];
  /** Null without `--test`. */
  readonly accepted: boolean | null;
  readonly answer: string | null;
}

const DEFAULT_PLAN = 'migration.yaml';

export function addNotify(program: Command): void {
  const command = program
    .command('notify')
    .description('List who is notified of what; with --test, send a test to each receiver and show what it answers')
    .option('--plan <file>', 'the migration plan, in YAML (default: migration.yaml)')
    .option('--test', 'send a test that begins and ends; in PagerDuty it is an incident that is resolved at once')
    .option('--json', 'print JSON')
    .action(async (options: NotifyOptions) => {
      const plan = loadPlan(planFile(options));
      const rows = await Promise.all(plan.notify.map((receiver) => rowOf(plan, receiver, options.test === true)));
      stdout.write(`${options.json ? JSON.stringify(rows, null, 2) : render(rows)}\n`);
      if (options.test && (rows.length === 0 || rows.some(({ accepted }) => accepted === false)))
        process.exitCode = exitCode.fails;
    });
  withManual(command, 'shadow-compare notify --plan migration.yaml --test', {
    0: 'listed; with --test: every receiver accepted the test',
    1: 'with --test: a receiver did not accept it, or the plan has none',
  });
}

function planFile({ plan }: NotifyOptions): string {
  if (plan !== undefined) return plan;
  if (existsSync(DEFAULT_PLAN)) return DEFAULT_PLAN;
  throw new CliError('option', `--plan is missing, and there is no ${DEFAULT_PLAN} in this directory`, exitCode.usage);
}

async function rowOf(plan: Plan, receiver: ReceiverPlan, isTest: boolean): Promise<Row> {
  const { name, kind, events } = receiver;
  const row = { receiver: name, kind, address: addressOf(receiver), events };
  if (!isTest) return { ...row, accepted: null, answer: null };
  const begun = await send(noticeOf(plan.name, test(plan, 'firing')), receiver);
  if (begun.outcome !== 'accepted') return { ...row, accepted: false, answer: begun.text };
  const ended = await send(noticeOf(plan.name, test(plan, 'resolved')), receiver);
  return { ...row, accepted: ended.outcome === 'accepted', answer: ended.text };
}

const test = ({ shards: [shard] }: Plan, state: Happening['state']): Happening => ({
  event: 'test',
  state,
  severity: 'info',
  key: `${shard.name}/test`,
  since: Date.now(),
  shard: shard.name,
  workload: null,
  summary: `${state === 'resolved' ? 'Over: ' : ''}Test of shadow-compare notify: nothing has happened`,
  details: {},
});

/** The table fits 80 columns. */
function render(rows: readonly Row[]): string {
  if (rows.length === 0) return 'The plan has no notify: nobody is notified';
  const table = new Table({
    head: ['receiver', 'address', rows[0].answer === null ? 'notified of' : 'answer'],
    style: { head: [], border: [] },
    colWidths: [18, 28, 31],
    wordWrap: true,
  });
  for (const { receiver, kind, address, events, accepted, answer } of rows)
    table.push([
      receiver === kind ? receiver : `${receiver}\n(${kind})`,
      address,
      answer === null ? events.join(', ') : `${accepted ? 'accepted' : 'NOT ACCEPTED'}: ${answer}`,
    ]);
  return table.toString();
}
