/** The versions that the programs of a run report. */
import { execFileSync } from 'node:child_process';
import { findEnvoy } from '../../rig/programs.js';
import { onPath } from '../../../shadow-proxy/src/local/program.js';
import type { Servers } from '../../rig/servers.js';
import { MEMTIER } from './memtier.js';
import type { Options } from './options.js';
import { isShadow, nodeOf } from './peers.js';

/** The versions, by the program's role in the run. */
export function versionsOf({ source, target }: Servers, { peers, proxyCommand }: Options): Record<string, string> {
  const files = { haproxy: onPath('haproxy'), twemproxy: onPath('nutcracker'), envoy: findEnvoy() };
  const measured = Object.entries(files).filter(([name]) => peers.some((peer) => peer === name));
  const said = measured.map(([name, file]) => [name, versionOf(name, file!)]);
  return {
    source: source.label,
    target: target.label,
    [MEMTIER]: versionOf(MEMTIER, onPath(MEMTIER)!),
    ...Object.fromEntries(said),
    ...(peers.some(isShadow) && { 'shadow proxy': `Node ${nodeOf(proxyCommand) ?? 'unknown'}` }),
  };
}

function versionOf(name: string, file: string): string {
  const flag = name === 'haproxy' ? '-v' : '--version';
  try {
    // twemproxy writes its version to standard error
    const said = execFileSync('/bin/sh', ['-c', `"$0" ${flag} 2>&1`, file], { encoding: 'utf8' });
    return /\d+\.\d+\.\d+/.exec(said)?.[0] ?? 'unknown';
  } catch {
    return 'unknown';
  }
}
