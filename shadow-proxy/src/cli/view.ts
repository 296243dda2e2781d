/**
 * Shows a running shard to people: a table that is redrawn, or a line now and then without a terminal.
 */
import Table from 'cli-table3';
import { count, list, milliseconds, number, unlessUp } from '../text/figures.js';
import type { LedgerEntry } from '../telemetry/ledger.js';
import { sum, type LatencySnapshot, type ServerSnapshot, type ShardSnapshot } from '../telemetry/snapshot.js';
import { ACCEPT } from '../telemetry/advice.js';
import { commandLine, type AdminClientOptions } from './admin-client.js';
import type { RunVerdict } from './run-verdict.js';
import { stdout } from './output.js';
import { drawn, redraw } from './redraw.js';

const TABLE_MS = 500;
const LINE_MS = 5_000;

/** Two snapshots, which give rates. */
export interface Frame {
  readonly now: ShardSnapshot;
  readonly before: ShardSnapshot | null;
  /** Milliseconds that are left; null: until Ctrl-C. */
  readonly leftMs: number | null;
}

/** The live table. Colours are left out if the terminal has none; nothing depends on them. */
export function renderTable({ now, before, leftMs }: Frame): string {
  const table = new Table({ style: { head: [], border: [] } });
  const left = leftMs === null ? 'Ctrl-C stops and prints the verdict' : `${Math.ceil(leftMs / 1000)} s left`;
  table.push(
    ['source', server(now.source)],
    ['target', server(now.target)],
    [
      'operations',
      `${number(now.operations)} (${number(rate(now, before))} per second), ${count(now.clients, 'client')}`,
    ],
    ['compared', `${number(now.compared)}: ${number(now.matched)} matched, ${number(sum(now.allowed))} allowed`],
    ['allowed by', list(now.allowed) || '–'],
    ['mismatches', list(now.mismatches) || '0'],
    ['inconclusive', list(now.inconclusive) || '0'],
    ['source p50 / p99', latency(now.latency.source)],
    ['target p50 / p99', latency(now.latency.target)],
    ['mirror', mirror(now)],
    ['suspects', now.suspects.total === 0 ? '0' : `${number(now.suspects.total)}: ${list(now.suspects.byReason)}`],
  );
  if (sum(now.unsupported) > 0) table.push(['unsupported', list(now.unsupported)]);
  if (now.otherShardCommands > 0)
    table.push(['other shards', `${count(now.otherShardCommands, 'command')} on keys of other shards`]);
  if (now.clockAheadMs !== 0) table.push(['clocks', `the clock of the target is ${number(now.clockAheadMs)} ms ahead`]);
  if (now.frozen !== null) table.push(['frozen', now.frozen]);
  const next = now.frozen === null ? '' : `${unfreeze({})}\n`;
  return `${table.toString()}\n${next}${left}`;
}

/** How to unfreeze repairs. Each command has a line of its own, so that it can be copied. */
export const unfreeze = (options: AdminClientOptions): string =>
  [
    'To list the lost keys (without --dry-run: resume repairs):',
    `  ${commandLine(ACCEPT, options)}`,
    'To keep the data of the mirror instead, where the source answered:',
    `  ${commandLine(`promote WORKLOAD --to live --percent 100 --force --force-suspects --reason REASON`, options)}`,
    'Or where the target answered:',
    `  ${commandLine('rollback WORKLOAD --force --reason REASON', options)}`,
  ].join('\n');

/** The same in one line. */
export function renderLine({ now, before }: Frame): string {
  return [
    `${number(now.operations)} operations`,
    `${number(rate(now, before))}/s`,
    `${number(now.compared)} compared`,
    `${number(sum(now.allowed))} allowed`,
    `${number(sum(now.mismatches))} mismatches`,
    `p99 ${milliseconds(now.latency.source.p99)} / ${milliseconds(now.latency.target.p99)}`,
    now.mirror.connected ? `lag ${number(now.mirror.lagMs)} ms` : 'mirror disconnected',
    `${number(now.suspects.total)} suspects`,
  ].join(', ');
}

/** Operations per second between two snapshots, or since the start. */
export function rate(now: ShardSnapshot, before: ShardSnapshot | null): number {
  const ms = now.uptimeMs - (before?.uptimeMs ?? 0);
  return ms <= 0 ? 0 : ((now.operations - (before?.operations ?? 0)) / ms) * 1000;
}

const server = ({ url, version, up, full }: ServerSnapshot): string =>
  `${url}${version === null ? '' : ` (${version})`}${unlessUp(up)}${full ? ', OUT OF MEMORY' : ''}`;
const latency = ({ p50, p99, count }: LatencySnapshot): string =>
  count === 0 ? '–' : `${milliseconds(p50)} / ${milliseconds(p99)}`;

function mirror({ mirror: { connected, lagMs, queuedEffects, queuedBytes, dropped } }: ShardSnapshot): string {
  const lost = dropped === 0 ? '' : `, ${number(dropped)} dropped`;
  return `${connected ? '' : 'disconnected, '}${number(lagMs)} ms behind, ${count(queuedEffects, 'effect')} (${number(queuedBytes)} bytes) queued${lost}`;
}

/** One mismatch in two lines. */
export function renderMismatch(entry: LedgerEntry): string {
  const key =
    entry.key === null ? 'no key' : (entry.key.text ?? `key ${entry.key.hash} (${entry.key.bytes} bytes, redacted)`);
  const reply = (side: 'source' | 'target'): string => {
    const { type, bytes, hash, reply: full } = entry[side];
    return `${side} ${full ?? `${type} ${bytes} bytes ${hash}`}`;
  };
  const where = entry.differsAt < 0 ? 'the bytes are equal' : `first difference at byte ${entry.differsAt}`;
  const pattern = entry.pattern === null ? '' : ` (${entry.pattern})`;
  return `${entry.kind} in ${entry.workload}${pattern}: ${entry.command}, ${key}\n    ${reply('source')}; ${reply('target')}; ${where}`;
}

/** The verdict at the end of a run. */
export function renderVerdict({ outcome, reasons, notes }: RunVerdict): string {
  return [
    `${outcome.toUpperCase()}: ${reasons[0]}`,
    ...reasons.slice(1).map((reason) => `  and ${reason}`),
    ...notes.map((note) => `  note: ${note}`),
  ].join('\n');
}

/** Shows a shard until `stop`: on a terminal as a table, else as lines. */
export class LiveView {
  readonly #isTerminal = process.stdout.isTTY === true;
  readonly #timer: NodeJS.Timeout;
  #before: ShardSnapshot | null = null;

  constructor(
    private readonly snapshot: () => ShardSnapshot,
    private readonly leftMs: () => number | null,
  ) {
    this.#timer = setInterval(() => this.#draw(), this.#isTerminal ? TABLE_MS : LINE_MS);
    if (this.#isTerminal) this.#draw();
  }

  /** Keeps the last table on the screen. */
  stop(): void {
    clearInterval(this.#timer);
    if (!this.#isTerminal) return;
    this.#draw();
    drawn();
  }

  #draw(): void {
    const frame = { now: this.snapshot(), before: this.#before, leftMs: this.leftMs() };
    this.#before = frame.now;
    if (this.#isTerminal) redraw(renderTable(frame));
    else stdout.write(`${renderLine(frame)}\n`);
  }
}
