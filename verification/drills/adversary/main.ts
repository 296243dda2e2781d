/**
 * `npm run adversary`: random programs against the proxy, until the time is over. A finding is shrunk and written down;
 * kept in verification/drills/adversary/kept, `npm test` runs it ever after.
 * Exit codes: 0 nothing was found, 1 something was, 2 wrong usage, 3 could not tell (there is no KeyDB, or nothing
 * ran).
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Command, InvalidArgumentError, Option } from 'commander';
import { findKeydb } from '../../../shadow-proxy/src/local/program.js';
import { generate, PARTS, type Part } from './generate.js';
import type { Program } from './program.js';
import { Arena, runProgram, type Finding, type Outcome } from './run.js';
import { shrink } from './shrink.js';

interface Options {
  readonly minutes: number;
  readonly seed: number;
  readonly acts: number;
  readonly without: readonly Part[];
  readonly shrinkMinutes: number;
  readonly replay?: string;
  readonly out: string;
}

/** So often a shorter program is tried, for how its connections interleave differs from run to run. */
const TRIES = 3;
/** How often it prints its progress. */
const TELL_MS = 300_000;

function parseOptions(argv: readonly string[]): Options {
  return new Command('adversary')
    .description(
      'Run random programs against the proxy, between a real Redis and a real KeyDB, and look for what it gets wrong.',
    )
    .option('--minutes <n>', 'how long to go on', positive, 10)
    .option(
      '--seed <n>',
      'the first program; each further one has the next number',
      whole,
      Math.floor(Math.random() * 2 ** 31),
    )
    .option('--acts <n>', 'acts of a program', whole, 300)
    .addOption(new Option('--without <part...>', 'leave out of every program').choices(PARTS).default([], 'nothing'))
    .option('--shrink-minutes <n>', 'how long to shrink one finding at most; 0: not at all', positive, 5)
    .option('--replay <file>', 'run this program only, and say what it finds')
    .option('--out <folder>', 'where programs that found something are written', '.')
    .exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : 2))
    .parse(argv)
    .opts<Options>();
}

async function main(): Promise<number> {
  const options = parseOptions(process.argv);
  const keydb = await findKeydb();
  if (keydb === null || keydb.container !== undefined) {
    process.stderr.write(
      'adversary cannot run: it needs an installed keydb-server (set KEYDB_SERVER, or put it on the PATH). Nothing was shown.\n',
    );
    return 3;
  }
  const arena = await Arena.open();
  try {
    return options.replay === undefined ? await search(arena, options) : await replay(arena, options.replay);
  } finally {
    await arena.close();
  }
}

async function search(arena: Arena, { minutes, seed, acts, without, shrinkMinutes, out }: Options): Promise<number> {
  const until = performance.now() + minutes * 60_000;
  const total = { programs: 0, operations: 0, unanswered: 0, faults: 0, kills: 0, stageChanges: 0, findings: 0 };
  let reportedAt = performance.now();
  for (let at = seed; performance.now() < until; at++) {
    if (performance.now() - reportedAt > TELL_MS) {
      say(JSON.stringify(total));
      reportedAt = performance.now();
    }
    const program = generate(at, { acts, without });
    const outcome = await runProgram(arena, program);
    add(total, outcome);
    if (outcome.findings.length === 0) continue;
    total.findings++;
    say(`seed ${at}: ${describe(outcome.findings)}`);
    const [{ kind }] = outcome.findings;
    const shrinkUntil = performance.now() + shrinkMinutes * 60_000;
    const reproduces = async (shorter: Program): Promise<boolean> => {
      for (let n = 0; n < TRIES; n++)
        if ((await runProgram(arena, shorter)).findings.some((each) => each.kind === kind)) return true;
      return false;
    };
    const shorter = await shrink(program, { reproduces, isOver: () => performance.now() > shrinkUntil });
    mkdirSync(out, { recursive: true });
    const file = join(out, `adversary-${at}.json`);
    writeFileSync(file, `${JSON.stringify(shorter, null, 1)}\n`);
    say(
      `seed ${at}: ${program.acts.length} acts shrunk to ${shorter.acts.length}; npm run adversary -- --replay ${file}`,
    );
  }
  process.stdout.write(`${JSON.stringify(total)}\n`);
  return total.findings > 0 ? 1 : total.operations === 0 ? 3 : 0;
}

async function replay(arena: Arena, file: string): Promise<number> {
  const outcome = await runProgram(arena, JSON.parse(readFileSync(file, 'utf8')) as Program);
  process.stdout.write(`${JSON.stringify(outcome, null, 2)}\n`);
  return outcome.findings.length > 0 ? 1 : outcome.operations === 0 ? 3 : 0;
}

function add(total: Record<string, number>, { operations, unanswered, faults, kills, stageChanges }: Outcome): void {
  total.programs++;
  for (const [name, value] of Object.entries({ operations, unanswered, faults, kills, stageChanges }))
    total[name] += value;
}

const describe = (findings: readonly Finding[]): string =>
  findings.map(({ kind, what }) => `\n  ${kind}: ${what}`).join('');
const say = (text: string): void => void process.stderr.write(`${text}\n`);

function whole(text: string): number {
  if (!/^\d{1,10}$/.test(text)) throw new InvalidArgumentError('A whole number is allowed.');
  return Number(text);
}

function positive(text: string): number {
  if (!/^\d{1,6}(\.\d+)?$/.test(text))
    throw new InvalidArgumentError('A number of minutes is allowed, such as 10 or 0.5.');
  return Number(text);
}

// After so many connections Node may wait forever for the last of them, when it is left to end by itself.
process.exit(await main());
