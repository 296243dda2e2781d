/**
 * `npm run drill:counters`: counters and limiters on two or three active-active nodes, through every way in which they
 * resync after a cut. Exit codes: 0 the library and the proxy's rewriting lost nothing, 1 they did, 2 wrong usage, 3
 * inconclusive (there is no KeyDB, or a resync went otherwise).
 */
import { Command, InvalidArgumentError } from 'commander';
import { LoadtestError } from '../../../loadtest/rig/errors.js';
import { Rig } from '../../../loadtest/rig/rig.js';
import { ActiveNodes } from '../../../shadow-proxy/src/local/active-nodes.js';
import { findKeydb, ServerMissing, onPath } from '../../../shadow-proxy/src/local/program.js';
import { MEMTIER, memtierDriver, ownDriver } from './driver.js';
import { KINDS, type Kind } from './layouts.js';
import { NAMES, type Name } from './mesh.js';
import type { Driver, Place } from './place.js';
import { Proxies } from './proxies.js';
import { countedExactly, failuresOf, lostIn, notesOf, render, rowsOf, type Report } from './report.js';
import { playRound, SITUATIONS, situationsOf, WrongResync, type Outcome, type Situation } from './rounds.js';

interface Options {
  readonly nodes: number;
  readonly rounds: number;
  readonly situation: readonly Situation[];
  readonly json: boolean;
}

/** Room for what a round writes on one node while the links are cut, so that a partial resync is partial. */
const ROUND_BYTES = 4 << 20;

function parseOptions(argv: readonly string[]): Options {
  const command = new Command('drill:counters')
    .description(
      'Count on active-active KeyDB nodes through delays, cuts and heals, and see what is lost. Nothing is left behind.',
    )
    .option('--nodes <n>', 'nodes, 2 or 3, each a replica of all others', nodes, 2)
    .option('--rounds <n>', 'rounds of each situation', whole, 5)
    .option('--situation <name...>', `only these: ${SITUATIONS.join(', ')}`, situation)
    .option('--json', 'print JSON, with every round', false)
    .exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : 2))
    .parse(argv);
  const options = command.opts<Partial<Pick<Options, 'situation'>> & Omit<Options, 'situation'>>();
  const allowed = situationsOf(options.nodes);
  const chosen = options.situation ?? allowed;
  const wrong = chosen.find((each) => !allowed.includes(each));
  if (wrong !== undefined)
    command.error(
      `error: --situation ${wrong} is not there with --nodes ${options.nodes}. Allowed are ${allowed.join(', ')}.`,
    );
  return { ...options, situation: chosen };
}

async function main(): Promise<number> {
  const { nodes: count, rounds, situation: situations, json } = parseOptions(process.argv);
  const keydb = await findKeydb();
  if (keydb === null || keydb.container !== undefined) {
    process.stderr.write(
      'drill:counters cannot run: it needs an installed keydb-server (set KEYDB_SERVER, or put it on the PATH). Nothing was shown.\n',
    );
    return 3;
  }
  const rig = new Rig();
  const withMemtier = onPath(MEMTIER) !== null;
  const memtier = withMemtier ? memtierDriver(rig) : ownDriver;
  const mesh = await ActiveNodes.start<Name>(NAMES.slice(0, count), {
    // A node passes on what the others wrote.
    backlogBytes: count * ROUND_BYTES,
  });
  let proxies: Proxies | undefined;
  try {
    proxies = await Proxies.start(mesh);
    const outcomes = await play({ mesh, proxies }, situations, rounds, (kind) => (kind.memtier ? memtier : ownDriver));
    const rows = rowsOf(outcomes);
    const driver = withMemtier
      ? `${MEMTIER}; of limiters, pinned counters and\nthe library, which go by replies, by a client of ours`
      : `a client of ours: ${MEMTIER} is missing\n(apt install memtier-benchmark, or build it)`;
    const report: Report = {
      keydb: `KeyDB ${keydb.version}`,
      driver,
      rows,
      failures: failuresOf(rows),
      notes: notesOf(rows),
    };
    process.stdout.write(`${json ? JSON.stringify({ ...report, outcomes }, null, 2) : render(report)}\n`);
    if (report.failures.length > 0) return 1;
    return countedExactly(rows) > 0 ? 0 : 3;
  } finally {
    await proxies?.stop();
    await mesh.stop();
    await rig.close();
  }
}

async function play(
  where: Pick<Place, 'mesh' | 'proxies'>,
  situations: readonly Situation[],
  rounds: number,
  drives: (kind: Kind) => Driver,
): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  for (let round = 1; round <= rounds; round++) {
    for (const situation of situations) {
      const since = performance.now();
      const played = await playRound(where, KINDS, drives, situation, round);
      outcomes.push(...played);
      const losing = played.filter((each) => lostIn(each) > 0).map((each) => `${each.layout} ${lostIn(each)}`);
      process.stderr.write(
        `round ${round}, ${situation}: lost ${losing.join(', ') || 'nothing'} (${((performance.now() - since) / 1000).toFixed(0)} s)\n`,
      );
    }
  }
  return outcomes;
}

function nodes(text: string): number {
  if (text !== '2' && text !== '3') throw new InvalidArgumentError('Allowed are 2 and 3.');
  return Number(text);
}

function whole(text: string): number {
  if (!/^[1-9]\d{0,3}$/.test(text)) throw new InvalidArgumentError('A whole number from 1 to 9999 is allowed.');
  return Number(text);
}

function situation(text: string, before: readonly Situation[] = []): Situation[] {
  const found = SITUATIONS.find((each) => each === text);
  if (found === undefined) throw new InvalidArgumentError(`Allowed are ${SITUATIONS.join(', ')}.`);
  return [...before, found];
}

process.exitCode = await main().catch((error: unknown) => {
  const foreseen = error instanceof LoadtestError || error instanceof WrongResync || error instanceof ServerMissing;
  process.stderr.write(`drill:counters: ${foreseen ? error.message : (error as Error).stack}\n`);
  return 3;
});
