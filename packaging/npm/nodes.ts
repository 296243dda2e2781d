/** The versions of Node that the packages are tried with. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { run } from '../../verification/rehearsal/run.js';

/** Besides the one that runs this: the oldest, both LTS, and the newest. */
const MAJORS = [20, 22, 24, 26];

export interface Node {
  readonly version: string;
  readonly path: string;
}

/**
 * This one, and those that `NODE_20`, `NODE_22`, `NODE_24` and `NODE_26` name; where they name none, npm's packages of
 * Node's binaries.
 * @param folder for what is fetched
 */
export async function findNodes(folder: string): Promise<{ nodes: Node[]; missing: string[] }> {
  const nodes: Node[] = [{ version: process.versions.node, path: process.execPath }];
  const missing: string[] = [];
  for (const major of MAJORS.filter((one) => !nodes[0].version.startsWith(`${one}.`))) {
    try {
      const path = process.env[`NODE_${major}`] ?? (await fetchNode(join(folder, String(major)), major));
      const { stdout } = await run([path, '--version']);
      if (!stdout.startsWith(`v${major}.`)) throw new Error(`${path} is ${stdout.trim()}`);
      nodes.push({ version: stdout.trim().slice(1), path });
    } catch (error) {
      const reason = (error as Error).message.split('\n').find((line) => /^npm error |^.* is v/.test(line));
      missing.push(`Node ${major}, which could not be had (${reason ?? 'npm failed'}): set NODE_${major} to its path`);
    }
  }
  return { nodes, missing };
}

/** npm's package `node` takes its binary from this one, with a script at installation. @returns the binary's path */
export async function fetchNode(folder: string, major: number, arch: string = process.arch): Promise<string> {
  const name = `node-${process.platform}-${arch}`;
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), '{}');
  const foreign = arch === process.arch ? [] : ['--force'];
  const options = ['--no-audit', '--no-fund', '--prefer-offline', ...foreign];
  await run(['npm', 'install', ...options, `${name}@${major}`], { cwd: folder });
  return join(folder, 'node_modules', name, 'bin', 'node');
}
