/** What is done with each version: tests that there are anyway, with that version as the source or the target. */
import type { ServerProgram } from './servers.js';

export interface Step {
  readonly name: string;
  /** In the page. */
  readonly title: string;
  readonly tests: readonly TestFile[] | ((server: ServerProgram) => readonly TestFile[]);
  /** Which server the version stands for. */
  readonly as: 'source' | 'target';
  /** How the tests get to know it; absent: `REDIS_SERVER`. */
  readonly env?: (server: ServerProgram) => Readonly<Record<string, string>>;
}

/** A test file, and which of its tests are run; null for all. */
export type TestFile = readonly [file: string, names: readonly string[] | null];

const INTEGRATION = 'shadow-proxy/test/integration';

export const STEPS: readonly Step[] = [
  {
    name: 'random',
    title: 'random commands of 32 connections',
    as: 'source',
    tests: [[`${INTEGRATION}/random/trial.test.ts`, null]],
  },
  {
    name: 'copy',
    title: 'backfill and verify',
    as: 'source',
    tests: [
      [`${INTEGRATION}/copy/backfill.test.ts`, null],
      [`${INTEGRATION}/copy/verify.test.ts`, null],
    ],
  },
  {
    name: 'newer',
    title: 'what only newer servers have',
    as: 'source',
    tests: [
      [`${INTEGRATION}/copy/field-expiry.test.ts`, null],
      [`${INTEGRATION}/rules/newer-servers.test.ts`, null],
      [`${INTEGRATION}/rules/since-redis-8.test.ts`, null],
    ],
  },
  {
    name: 'faults',
    title: 'mirror, source and proxy killed under load',
    as: 'source',
    tests: [
      [`${INTEGRATION}/faults/rehearsal-mirror.long.test.ts`, ['the mirror is killed and restarts empty (shadow)']],
      [`${INTEGRATION}/faults/rehearsal-authority.long.test.ts`, ['the authority is killed and restarts with its AOF']],
      [
        `${INTEGRATION}/faults/rehearsal-proxy.long.test.ts`,
        ['the proxy is killed in mid-traffic, three times (shadow)'],
      ],
    ],
  },
  {
    name: 'clients',
    title: 'what clients see of each command',
    as: 'source',
    tests: [
      [`${INTEGRATION}/compare/live.test.ts`, null],
      [`${INTEGRATION}/protocol/everything.test.ts`, null],
    ],
  },
  {
    name: 'cutover',
    title: 'cutover by the gates, rollback, emergency rollback',
    as: 'source',
    tests: [[`${INTEGRATION}/cli/promote.test.ts`, null]],
  },
  {
    name: 'target',
    title: 'random commands, and backfill, with it in the place of KeyDB',
    as: 'target',
    env: ({ path }) => ({ KEYDB_SERVER: path }),
    tests: [
      [`${INTEGRATION}/random/trial.test.ts`, null],
      [`${INTEGRATION}/copy/backfill.test.ts`, null],
    ],
  },
  {
    name: 'leave',
    title: 'the way out, from KeyDB to it',
    as: 'target',
    env: ({ name, path }) => ({ [name === 'valkey' ? 'VALKEY_SERVER' : 'REDIS_SERVER']: path }),
    tests: ({ name }) =>
      name === 'valkey'
        ? [[`${INTEGRATION}/runbook/leave-valkey.long.test.ts`, null]]
        : [[`${INTEGRATION}/runbook/leave.long.test.ts`, ['from KeyDB to Redis']]],
  },
];
