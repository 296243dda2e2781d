/** The common parts of the proxy's benches: required programs, numbers on the command line, the exit code. */
import { InvalidArgumentError } from 'commander';
import { LoadtestError } from '../rig/errors.js';
import { onPath } from '../../shadow-proxy/src/local/program.js';
import { missingServers } from '../rig/servers.js';
import { MEMTIER } from './bench/memtier.js';

/** @throws {LoadtestError} that names every missing program */
export async function requirePrograms(): Promise<void> {
  const missing = await missingServers();
  if (!onPath(MEMTIER)) missing.push(`${MEMTIER} (the clients): put it on PATH`);
  if (missing.length > 0)
    throw new LoadtestError('MISSING_PROGRAM', `missing:\n${missing.map((m) => `  ${m}`).join('\n')}`);
}

/** Reads the value of an option. @throws {InvalidArgumentError} */
export function count(text: string): number {
  if (!/^[1-9]\d*$/.test(text)) throw new InvalidArgumentError('A whole number above 0 is allowed.');
  return Number(text);
}

/** Runs a bench, and sets the exit code: 3 if it could not be measured. */
export async function runBench(main: () => Promise<number>): Promise<void> {
  try {
    process.exitCode = await main();
  } catch (error) {
    if (!(error instanceof LoadtestError)) throw error;
    process.stderr.write(`${error.message}\n`);
    process.exitCode = 3;
  }
}
