/** A suite's results, as a table and as JSON. */
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import Table from 'cli-table3';
import { list } from '../../../shadow-proxy/src/text/figures.js';
import { sum, type ShardSnapshot } from '../../../shadow-proxy/src/telemetry/snapshot.js';
import type { Comparison, Judgement } from './compare.js';
import type { MirrorReport, Outcome } from './result.js';

/** Names of lost tests and differing keys that are shown for one unit; the JSON has all. */
const SHOWN = 40;
const SHOWN_KEYS = 8;
/** The mirror does not know the command: one line of counts says it all. */
const UNSUPPORTED = /^\S+ unsupported /;

/** Writes `<out>/<suite>-results.json`, and prints what a reader needs. */
export function report(suite: string, judgement: Judgement, out: string, json: boolean): void {
  mkdirSync(out, { recursive: true });
  const file = path.resolve(out, `${suite}-results.json`);
  const text = JSON.stringify(judgement, null, 2);
  writeFileSync(file, `${text}\n`);
  process.stdout.write(`${json ? text : asText(judgement)}\n`);
  process.stderr.write(`written to ${file}\n`);
}

export function asText({ comparisons, failures, open }: Judgement): string {
  const table = new Table({
    head: [
      'unit',
      'stage',
      'direct ok/failed/skipped',
      'proxy ok/failed/skipped',
      'lost',
      'listed',
      'mismatches',
      'keys differ',
    ],
    style: { head: [], border: [], compact: true },
  });
  for (const one of comparisons) table.push(rowOf(one));
  table.push([
    'all',
    '',
    totalOf(comparisons.map(({ direct }) => direct.outcome)),
    totalOf(comparisons.map(({ proxied }) => proxied.outcome)),
    ...sums(comparisons),
  ]);
  const lines = [table.toString(), ...comparisons.flatMap(detailsOf)];
  const mismatches = total(comparisons.map(({ proxied }) => proxied.mirror?.mismatches ?? {}));
  if (sum(mismatches) > 0) lines.push('', `Mismatches of all units: ${list(mismatches)}`);
  const indented = (all: readonly string[]): string[] => all.map((what) => `  ${what}`);
  if (open.length > 0) lines.push('', 'Could not tell:', ...indented(open));
  if (failures.length > 0) lines.push('', 'It does NOT hold:', ...indented(failures));
  else if (open.length === 0) lines.push('', 'It holds: nothing that passes directly fails through the proxy.');
  return lines.join('\n');
}

function rowOf({ unit, way, direct, proxied, losses, differences }: Comparison): (string | number)[] {
  const listed = losses.filter(({ reason }) => reason !== null).length;
  const mismatches = proxied.mirror ? sum(ofAll(proxied.mirror, 'mismatches')) : '?';
  return [
    unit,
    way,
    totalOf([direct.outcome]),
    totalOf([proxied.outcome]),
    losses.length - listed,
    listed,
    mismatches,
    differences.length,
  ];
}

function sums(comparisons: readonly Comparison[]): number[] {
  const add = (count: (one: Comparison) => number): number => comparisons.reduce((total, one) => total + count(one), 0);
  return [
    add(({ losses }) => losses.filter(({ reason }) => reason === null).length),
    add(({ losses }) => losses.filter(({ reason }) => reason !== null).length),
    add(({ proxied }) => (proxied.mirror ? sum(ofAll(proxied.mirror, 'mismatches')) : 0)),
    add(({ differences }) => differences.length),
  ];
}

function total(counts: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  const all: Record<string, number> = {};
  for (const [name, n] of counts.flatMap((one) => Object.entries(one))) all[name] = (all[name] ?? 0) + n;
  return all;
}

const ofAll = ({ shards }: MirrorReport, what: 'mismatches' | 'unsupported'): Record<string, number> =>
  total(shards.map((shard) => shard[what]));

function totalOf(outcomes: readonly Outcome[]): string {
  const tests = outcomes.flatMap((outcome) => outcome.tests);
  const count = (status: string): number => tests.filter((test) => test.status === status).length;
  const aborted = outcomes.some(({ aborts, cutShort }) => aborts.length > 0 || cutShort !== null);
  return `${count('ok')}/${count('failed')}/${count('skipped')}${aborted ? ', aborted' : ''}`;
}

function detailsOf({ unit, way, direct, proxied, losses, unsteady, died, differences }: Comparison): string[] {
  const { mirror, outcome } = proxied;
  const unsupported = mirror ? ofAll(mirror, 'unsupported') : {};
  const lines = [
    ...abortsOf('direct', direct.outcome),
    ...abortsOf('proxy', outcome),
    ...(direct.died === null ? [] : [`directly, ended by itself: ${direct.died}`]),
    ...(died === null ? [] : [`ended by itself: ${died}`]),
    ...shown(
      losses.flatMap(({ test, how, detail, reason }) =>
        reason === null ? [`${how}: ${test}${detail ? ` (${short(detail)})` : ''}`] : [],
      ),
    ),
    ...byReason('test', losses),
    ...shown(unsteady.map((test) => `lost in one try, not in another: ${test}`)),
    ...(mirror && sum(mirror.mismatches) > 0 ? [`mismatches: ${list(mirror.mismatches)}`] : []),
    ...shown(mirror?.samples.filter((sample) => !UNSUPPORTED.test(sample)) ?? []),
    ...(sum(unsupported) > 0 ? [`unsupported: ${list(unsupported)}`] : []),
    ...(mirror?.shards ?? []).flatMap(suspectWorkloads).map((why) => `all keys are in doubt: ${why}`),
    ...(mirror?.unsettled ? [`the mirror did not settle: ${mirror.unsettled}`] : []),
    ...shown(
      differences.flatMap(({ line, reason }) => (reason === null ? [`key ${short(line)}`] : [])),
      SHOWN_KEYS,
    ),
    ...byReason('key', differences),
  ];
  return lines.length === 0 ? [] : ['', `${unit} (${way})`, ...lines.map((line) => `  ${line}`)];
}

function abortsOf(who: string, { tests, aborts, cutShort }: Outcome): string[] {
  const came =
    tests.length === 0 ? 'before any test' : `after ${tests.length} tests, the last "${tests[tests.length - 1].name}"`;
  const lines = aborts.map((why) => `${who}: a part of the unit was aborted: ${short(why)}`);
  return cutShort === null ? lines : [...lines, `${who}: the unit was cut short ${came}: ${cutShort}`];
}

/** What the list of exceptions allows, a line for each reason. */
function byReason(what: string, exceptions: readonly { readonly reason: string | null }[]): string[] {
  const counts = new Map<string, number>();
  for (const { reason } of exceptions) if (reason !== null) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  return [...counts].map(([reason, n]) => `listed: ${n} ${n === 1 ? what : `${what}s`}: ${reason}`);
}

const suspectWorkloads = ({ workloads }: ShardSnapshot): string[] =>
  workloads.flatMap(({ name, suspect }) => (suspect === null ? [] : [`${name}, ${suspect}`]));

const shown = (lines: readonly string[], limit = SHOWN): string[] =>
  lines.length <= limit ? [...lines] : [...lines.slice(0, limit), `… and ${lines.length - limit} more`];
const short = (text: string): string => {
  const line = text.split('\n')[0];
  return line.length > 200 ? `${line.slice(0, 200)}…` : line;
};
