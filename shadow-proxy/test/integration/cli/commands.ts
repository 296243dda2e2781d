/** Every command of both programs, as commander knows them, with arguments that lead it to one peer. */
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import type { Command } from 'commander';
import { stringify } from 'yaml';
import { manualOf } from '../../../src/cli/manual.js';
import { operatorProgram } from '../../../src/cli/program.js';
import { proxyProgram } from '../../../src/cli/proxy-program.js';
import { HostilePeer, SLOW as SLOW_PEERS, type Behaviour } from '../../support/hostile.js';
import { assertPrintable } from '../../support/raw-text.js';
import { scratch } from '../../support/plans.js';
import type { Ended } from './many-commands.js';
import { Program, runCommandWith } from './process.js';

/** A process of its own, or one that runs a command after the other. */
type How = 'process' | 'shared';

/** A command, and more options than those that lead it to the peer. */
export interface Case {
  readonly program: 'shadow-compare' | 'shadow-proxy';
  readonly command: Command;
  readonly words: readonly string[];
  readonly more: readonly string[];
  /** Instead of the options that lead to the peer: a plan, or the URLs. */
  readonly only?: 'plan';
}

export const nameOf = ({ program, words, more, only }: Case): string =>
  [program, ...words, ...more, ...(only === undefined ? [] : [`(${only})`])].join(' ');

/** Options that lead a command to a server or a proxy. A command that has none talks to nobody. */
const LEADS = ['--plan', '--admin', '--from', '--source', '--target'];
/** Further ways through some commands. */
const MORE: Readonly<Record<string, readonly (readonly string[])[]>> = {
  notify: [['--test']],
  rollback: [['--offline'], ['--all']],
  verify: [['--repair'], ['--stop']],
  backfill: [['--delete-foreign'], ['--dry-run']],
  job: [['--pause']],
  promote: [['--dry-run'], ['--overwrite', '--yes', '1']],
  guard: [['--no-proxy']],
  assess: [['--monitor', '300ms']],
  init: [['--monitor', '300ms']],
  'shadow-proxy': [['--check']],
};

export async function casesOf(): Promise<Case[]> {
  const found: Case[] = [];
  const add = (program: Case['program'], command: Command, words: readonly string[]): void => {
    const below = command.commands.filter((each) => each.name() !== 'help');
    for (const each of below) add(program, each, [...words, each.name()]);
    if (below.length > 0 || !command.options.some(({ long }) => LEADS.includes(long!))) return;
    const each = { program, command, words };
    // The daemon goes on where its servers do not answer yet.
    if (program === 'shadow-compare') found.push({ ...each, more: [] });
    found.push(...(MORE[command.name()] ?? []).map((more) => ({ ...each, more })));
    if (command.name() === 'assess') found.push({ ...each, more: [], only: 'plan' });
  };
  add('shadow-compare', await operatorProgram(), []);
  add('shadow-proxy', proxyProgram(), []);
  return found;
}

/** What a command is given for each of its arguments, and for its options that it needs or that lead to the peer. */
function valuesOf(directory: string, port: number): Readonly<Record<string, string>> {
  const url = `redis://:secret@127.0.0.1:${port}`;
  return {
    source: url,
    workload: 'sessions',
    side: 'target',
    command: 'ping',
    stage: 'shadow',
    name: 'week-1',
    key: 'session:1',
    shell: 'bash',
    '--plan': join(directory, 'plan.yaml'),
    '--admin': `http://127.0.0.1:${port}`,
    '--from': url,
    '--source': url,
    // Another server than the source, though it is the same peer.
    '--target': `redis://:secret@localhost:${port}`,
    '--listen': '127.0.0.1:0',
    '--out': join(directory, 'out'),
    '--log': join(directory, 'runbooks.jsonl'),
    '--log-level': 'silent',
    '--for': '300ms',
  };
}

const TOKEN = 'a-token';

/** The plan of a migration whose servers, proxy and receiver are that peer. */
function planOf(directory: string, port: number): string {
  mkdirSync(join(directory, 'secret'), { recursive: true });
  writeFileSync(join(directory, 'secret', 'token'), TOKEN);
  return stringify({
    version: 1,
    name: 'test',
    shards: [
      {
        name: 'a',
        listen: 'redis://127.0.0.1:0',
        source: `redis://:secret@127.0.0.1:${port}`,
        target: `redis://:secret@localhost:${port}`,
      },
    ],
    workloads: [{ name: 'sessions', keys: ['session:*'] }],
    admin: { listen: `127.0.0.1:${port}`, tokenFile: 'secret/token' },
    notify: [{ kind: 'slack', url: `http://127.0.0.1:${port}/hook` }],
  });
}

/** @throws {AssertionError} for an argument that a new command has, and this table does not */
export function argumentsOf({ command, words, more, only }: Case, directory: string, port: number): string[] {
  const values = valuesOf(directory, port);
  const named = (name: string): string => {
    assert.ok(values[name] !== undefined, `give a value for ${name} of ${command.name()} in commands.ts`);
    return values[name];
  };
  const options = command.options.filter(
    ({ long, mandatory }) =>
      mandatory || (values[long!] !== undefined && (long !== '--plan' || !leadsByUrl(command, only))),
  );
  const args =
    only === 'plan' || more.includes('--all') ? [] : command.registeredArguments.map((each) => named(each.name()));
  return [...words, ...options.flatMap(({ long }) => [long!, named(long!)]), ...more, '--', ...args];
}

/** `assess` takes URLs or a plan. */
const leadsByUrl = (command: Command, only: Case['only']): boolean =>
  only !== 'plan' && command.registeredArguments.some((each) => each.name() === 'source');

/** Longer than any command waits: 30 s for a proxy, on a machine that does other things meanwhile. */
const DEADLINE_MS = 90_000;

/** Commands wait for them, and need no CPU meanwhile. */
const SLOW = Object.values(SLOW_PEERS);

/**
 * A test for each of the commands with each of the peers. With those that are slow each command is a process of its
 * own, for so many wait at the same time; with the others, processes run one command after the other.
 */
export function testAgainst(peers: Readonly<Record<string, Behaviour>>, cases: readonly Case[]): void {
  for (const [peer, behaviour] of Object.entries(peers))
    describe(`a peer that ${peer}:`, { concurrency: SLOW.includes(behaviour) ? 24 : 1 }, () => {
      for (const each of cases)
        test(nameOf(each), async (t) => {
          const hostile = await HostilePeer.start(behaviour);
          t.after(() => hostile.stop());
          await endsWell(t, each, hostile.port, SLOW.includes(behaviour) ? 'process' : 'shared');
        });
    });
}

/** What a command may say of itself: no stack, no file of ours, nothing of JavaScript's. */
const RAW = / {4}at |node_modules|file:\/\/|node:internal|\bTypeError\b|\[object |Trace:/;

/** Runs it to its end, as a process of its own or in one that others share. */
async function ended(t: TestContext, each: Case, how: How, args: readonly string[], tmp: string): Promise<Ended> {
  const env = { TMPDIR: tmp, SHADOW_PROXY_TOKEN: null };
  if (how === 'shared' && each.program === 'shadow-compare') return runCommandWith(env, args, DEADLINE_MS);
  const program = new Program(t, each.program, args, { ...env, SHADOW_PROXY_TOKEN: undefined });
  return { code: await program.exit(DEADLINE_MS), stdout: program.stdout, stderr: program.stderr };
}

/**
 * Runs it to its end: in time, with an exit code that its manual has, with a sentence and no stack, and with nothing
 * left in the folder for temporary files.
 */
export async function endsWell(t: TestContext, each: Case, port: number, how: How): Promise<string> {
  const directory = scratch(t, { 'plan.yaml': '' });
  writeFileSync(join(directory, 'plan.yaml'), planOf(directory, port));
  const temporary = join(directory, 'tmp');
  mkdirSync(temporary);
  const began = performance.now();
  const { code, stdout, stderr } = await ended(t, each, how, argumentsOf(each, directory, port), temporary);
  const printed = stdout + stderr;
  const took = Math.round(performance.now() - began);
  const summary = `${nameOf(each)} ended with ${code} after ${took} ms: ${printed}`;
  const codes = manualOf(each.command)!.exits.map(([documented]) => documented);
  assert.ok(codes.includes(code!), `${summary}\n${codes.join()} are documented`);
  assert.doesNotMatch(printed, RAW, summary);
  assert.doesNotMatch(printed, /secret|unexpected error/, summary);
  assertPrintable(printed, summary);
  if (code !== 0) assert.notEqual(printed, '', summary);
  assert.deepEqual(readdirSync(temporary), [], summary);
  return summary;
}
