/** Redis's own tests: `runtest` of a Redis source tree, against a server that runs already. */
import { readFileSync } from 'node:fs';
import { freePorts } from '../../../shadow-proxy/src/local/port.js';
import { LEFT_OUT } from '../exceptions.js';
import { runLimited } from '../run/program.js';
import type { Outcome, TestResult } from '../run/result.js';
import { AUTHORITY_PORT, viewOf } from './settings.js';

export interface TclOptions {
  readonly source: string;
  /** Seconds without any sign of progress before a test counts as hung. */
  readonly stall: number;
  /** Whether the server is a node of a cluster. */
  readonly cluster: boolean;
  /** Seconds for a whole unit. */
  readonly limit: number;
}

/** What `runtest` prints, as far as it came. */
export interface Parsed extends Outcome {
  /** Tests that were under way when the suite timed out. */
  readonly hung: readonly string[];
}

/** A test that hangs is left out, and its unit begun again, this often. */
const MAX_HUNG = 3;

/**
 * Runs one unit. Errors end a test and not the unit (`--durable`); where a test hangs, the others are run without it.
 * @param authority the port of the server that answers, where that is not `port`
 */
export async function runTcl(
  unit: string,
  port: number,
  log: string,
  options: TclOptions,
  authority = port,
): Promise<Outcome> {
  const { source, stall, limit, cluster } = options;
  const hung: string[] = [];
  const cwd = viewOf(source, `${log}.tree`);
  for (const deadline = Date.now() + limit * 1000; ;) {
    const file = `${log}${hung.length > 0 ? `.${hung.length}` : ''}.log`;
    const skipped = [...LEFT_OUT.map(({ test }) => test), ...hung].flatMap((name) => ['--skiptest', name]);
    // The suite's own processes talk to each other at 32 ports below its base, of which it takes the first.
    const base = 32 + (await freePorts(33));
    const args = [
      '--baseport',
      String(base),
      '--host',
      '127.0.0.1',
      '--port',
      String(port),
      ...(cluster ? ['--cluster-mode'] : []),
      '--durable',
      '--timeout',
      String(stall),
      ...skipped,
      '--single',
      unit,
    ];
    const env = { TERM: 'dumb', [AUTHORITY_PORT]: String(authority) };
    const ended = await runLimited({ command: './runtest', args, cwd, env, log: file, limitMs: deadline - Date.now() });
    const parsed = parseTcl(readFileSync(file, 'latin1'));
    const asFailed = hung.map((name): TestResult => ({
      name,
      status: 'failed',
      detail: `hung: no progress for ${stall} s`,
    }));
    const outcome: Outcome = {
      tests: [...parsed.tests.filter(({ name, status }) => status !== 'skipped' || !hung.includes(name)), ...asFailed],
      aborts: parsed.aborts,
      cutShort: ended.timedOut ? `after the limit of ${limit} s` : parsed.cutShort,
    };
    if (ended.timedOut || parsed.hung.length === 0) return outcome;
    hung.push(...parsed.hung);
    if (hung.length > MAX_HUNG)
      return { ...outcome, cutShort: `hung in ${hung.map((name) => `"${name}"`).join(', ')}` };
  }
}

const STATUS = /^\[(ok|err|skip|ignore|exception|TIMEOUT|ready|\d+\/\d+ done)\]: ?(.*)$/;
const STATE = /^\S+ => \((IN PROGRESS)\) (.*)$/;
/** How `test` in tests/support/test.tcl names what failed. */
const FAILED = /^(.*) in tests\/\S+\.tcl$/;

/** Reads the lines of tests/test_helper.tcl `read_from_test_client`. */
export function parseTcl(output: string): Parsed {
  const tests: TestResult[] = [];
  const aborts: string[] = [];
  const hung: string[] = [];
  let cutShort: string | null = 'it did not come to its end';
  for (const [status, first, rest] of records(output)) {
    const detail = whole(rest.join('\n').trimEnd());
    if (status === 'ok') tests.push({ name: first.replace(/ \(\d+ ms\)$/, ''), status: 'ok' });
    else if (status === 'skip') tests.push({ name: first, status: 'skipped' });
    else if (status === 'ignore') tests.push(ignored(first));
    else if (status === 'err') {
      const name = FAILED.exec(first)?.[1];
      if (name === undefined) aborts.push(whole([first, ...rest].join('\n').trimEnd()));
      else tests.push({ name, status: 'failed', detail });
    } else if (status === 'exception') cutShort = firstLine(first);
    else if (status === 'TIMEOUT') {
      cutShort = 'no progress';
      hung.push(...rest.flatMap((line) => STATE.exec(line)?.[2] ?? []));
    } else if (status.endsWith('done')) cutShort = null;
  }
  return { tests, aborts, cutShort, hung };
}

/** Each line with a status, and the lines behind it that have none. */
function records(output: string): [status: string, first: string, rest: string[]][] {
  const found: [string, string, string[]][] = [];
  const lines = output.replaceAll(/\x1b\[[\d;]*m/g, '').split('\n');
  for (const line of lines) {
    if (line.trim() === 'The End') break; // what failed is printed once more
    const match = STATUS.exec(line);
    if (match) found.push([match[1], match[2], []]);
    else found.at(-1)?.[2].push(line);
  }
  return found;
}

/**
 * The suite cuts the first ten characters off an error that is no failed assertion, and prints all of it behind that.
 */
function whole(detail: string): string {
  const [cut, ...others] = detail.split('\n');
  const at = others.findIndex((line) => line.length === cut.length + 'assertion:'.length && line.endsWith(cut));
  return at === -1 ? detail : others.slice(at).join('\n');
}

/** `NAME: REASON` for a test, `REASON` for a whole block of tags. */
function ignored(text: string): TestResult {
  const at = text.lastIndexOf(': ');
  const reason = /^(Tag: |Not supported |large memory )/;
  if (reason.test(text) || at === -1) return { name: `(a block) ${text}`, status: 'skipped', detail: text };
  const tag = /^(.*): (Tag: .*)$/.exec(text);
  return tag
    ? { name: tag[1], status: 'skipped', detail: tag[2] }
    : { name: text.slice(0, at), status: 'skipped', detail: text.slice(at + 2) };
}

const firstLine = (text: string): string => text.split('\n')[0];
