/**
 * A trial in which little happened would show little. How much happens in a second is the machine's affair: what is
 * asked of a trial is that each part of the mix had its share of what was driven, and that most of that was compared.
 */
import type { ShardSnapshot } from '../../../src/telemetry/snapshot.js';
import type { Comparison } from './comparer.js';
import type { DriverReport } from './driver.js';
import type { TalkReport } from './pubsub.js';

/** Less shows nothing, whatever its shares. */
const LEAST = 2_000;

/** Commands of which one in so many, or more, succeeded; three times as many do on average. */
const SHARES: readonly { readonly what: string; readonly names: readonly string[]; readonly oneIn: number }[] = [
  {
    what: 'blocking pops',
    names: ['BLPOP', 'BRPOP', 'BLMOVE', 'BRPOPLPUSH', 'BLMPOP', 'BZPOPMIN', 'BZPOPMAX', 'BZMPOP'],
    oneIn: 500,
  },
  { what: 'readings of consumer groups', names: ['XREADGROUP'], oneIn: 500 },
  { what: 'acknowledgements and claims', names: ['XACK', 'XCLAIM', 'XAUTOCLAIM'], oneIn: 500 },
  { what: 'watched keys', names: ['WATCH'], oneIn: 250 },
  { what: 'scripts', names: ['EVAL', 'EVALSHA'], oneIn: 150 },
];
/**
 * A count may be smaller than its average by so many of the average's square roots: some commands come in groups, and
 * some succeed only once others have. Where the average is small, that is more than the share allows.
 */
const CHANCE = 5;
const FUNCTIONS = { what: 'functions', names: ['FCALL'], oneIn: 1_500 };
const TYPES = ['hash', 'list', 'set', 'stream', 'string', 'zset'];

/** What happened too seldom for the trial to mean anything; empty where nothing. */
export function missingIn(
  report: DriverReport,
  snapshot: ShardSnapshot,
  { keys, byType }: Comparison,
  talked: TalkReport,
  hasFunctions = true,
): string[] {
  const { operations, transactions, vanished, commands } = report;
  const share = (oneIn: number): number => Math.floor(operations / oneIn);
  const surely = (oneIn: number): number => {
    const average = (3 * operations) / oneIn;
    return Math.max(0, Math.min(share(oneIn), Math.floor(average - CHANCE * Math.sqrt(average))));
  };
  const found: [what: string, count: number, least: number][] = [
    ...[...SHARES, ...(hasFunctions ? [FUNCTIONS] : [])].map(({ what, names, oneIn }): [string, number, number] => [
      what,
      names.reduce((sum, name) => sum + (commands.get(name)?.ok ?? 0), 0),
      surely(oneIn),
    ]),
    ['operations', operations, LEAST],
    ['transactions', transactions, share(70)],
    ['clients that went away', vanished, share(8_000)],
    ['compared replies', snapshot.compared, share(4)],
    ['keys', keys, Math.min(200, share(30))],
    ['messages', talked.published, share(50)],
    ['messages heard', talked.heard, 4 * talked.published],
    ['listeners that went away', talked.left, share(4_000)],
    ...TYPES.map((type): [string, number, number] => [`keys of type ${type}`, byType[type] ?? 0, 1]),
  ];
  return found
    .filter(([, count, least]) => count < least)
    .map(([what, count, least]) => `${count} ${what} instead of ${least} or more in ${operations} commands`);
}
