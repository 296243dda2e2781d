/**
 * `npm run loadtest`: measures whether KeyDB is faster for this workload on this hardware, by how much, and how certain
 * that is. Exit codes: 0 measured, and all counters are correct; 1 counters are wrong; 2 wrong usage; 3 inconclusive (a
 * program is missing, a server failed).
 */
import { Command } from 'commander';
import { PlanError } from '../../shadow-proxy/src/plan/errors.js';
import { LoadtestError } from '../rig/errors.js';
import { addClean } from './clean.js';
import { addMerge } from './merge.js';
import { addProfiles } from './profiles.js';
import { addReport } from './report.js';
import { addRun } from './run.js';
import { addSoak } from './soak.js';

const program = new Command('loadtest')
  .exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : 2))
  .showHelpAfterError('See npm run loadtest -- --help');

for (const add of [addRun, addReport, addMerge, addSoak, addClean, addProfiles]) add(program);

await program.parseAsync().catch((error: unknown) => {
  const known = error instanceof LoadtestError || error instanceof PlanError;
  process.stderr.write(`loadtest: ${known ? error.message : (error as Error).stack}\n`);
  process.exitCode = error instanceof LoadtestError ? error.exitCode : error instanceof PlanError ? 2 : 3;
});
