/**
 * `npm run pack:check`: both npm packages as strangers have them. They are packed as for npm, and what is in them is
 * judged. Each is installed in an empty folder and used with real servers, on each version of Node that can be had.
 *
 * Exit code 0: all of it works (a version of Node that is missing is named); 1: it does not; 3: no redis-server.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command } from 'commander';
import { afterDeath } from '../../shadow-proxy/src/local/guard.js';
import { ServerMissing, startRedis, startTarget, stopServers } from '../../shadow-proxy/src/local/servers.js';
import { findNodes } from './nodes.js';
import { packAll, problemsOf } from './pack.js';
import { install, useCounters, useKit, useWithoutModule } from './use.js';

const say = (text: string): void => void process.stdout.write(`${text}\n`);
/** @returns whether everything works */
async function check(folder: string): Promise<boolean> {
  const packed = await packAll(folder);
  const problems = packed.flatMap((one) => problemsOf(one).map((problem) => `${one.name}: ${problem}`));
  for (const problem of problems) say(`✖ ${problem}`);
  if (problems.length > 0) return false;
  for (const { name, size, files } of packed)
    say(`✔ ${name}: ${files.length} files, ${Math.ceil(size / 1000)} kB packed`);

  const [kit, counters, { nodes, missing }] = await Promise.all([
    install(join(folder, 'kit'), [packed[0].file]),
    install(join(folder, 'counters'), [packed[1].file, 'ioredis']),
    findNodes(join(folder, 'nodes')),
  ]);
  const servers = { source: await startRedis(), target: await startTarget() };
  for (const node of nodes) {
    await useKit({ folder: kit, node }, servers);
    await useCounters({ folder: counters, node }, servers.source.url);
    say(`✔ Node ${node.version}: run, local, shadow-proxy --check, runbook, demo, and the snippet of the counters`);
  }
  await useWithoutModule({ folder: kit, node: nodes[0] });
  say(`✔ Node ${nodes[0].version}: serves without its native module, and says so`);
  for (const line of missing) say(`NOTE: not checked with ${line}`);
  return true;
}

async function main(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'pack-check-'));
  const callOff = afterDeath('rm -rf -- "$1"', folder);
  try {
    process.exitCode = (await check(folder)) ? 0 : 1;
  } catch (error) {
    say(`✖ ${(error as Error).message}`);
    process.exitCode = error instanceof ServerMissing ? 3 : 1;
  } finally {
    await stopServers();
    rmSync(folder, { recursive: true, force: true });
    callOff();
  }
}

await new Command('pack:check')
  .description('Packs both npm packages, installs them in an empty folder, and uses them')
  .action(main)
  .parseAsync();
