/** Which server programs this machine has: by environment variable, on the PATH, or in a container. */
import { execFile } from 'node:child_process';
import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** No program for a server that is needed. */
export class ServerMissing extends Error {
  override readonly name = 'ServerMissing';
  readonly code = 'SERVER_MISSING';
}

/** A way to run a server: a program of this machine, or an image in a container engine. */
export interface Program {
  readonly name: 'redis' | 'keydb' | 'valkey';
  /** The executable's path; inside the image where there is one. */
  readonly path: string;
  readonly container?: { readonly engine: string; readonly image: string };
  readonly version: string;
}

const KEYDB_IMAGE = 'eqalpha/keydb';

/**
 * `REDIS_SERVER`, then `redis-server` on the PATH.
 * @throws {ServerMissing} when there is neither
 */
export async function findRedis(): Promise<Program> {
  const found = await installed('redis', 'REDIS_SERVER', 'redis-server');
  if (found !== null) return found;
  throw new ServerMissing(
    'no redis-server: install Redis 7 (apt install redis-server, brew install redis), or set REDIS_SERVER to its path',
  );
}

/** The value of `KEYDB_SERVER` with which this machine is taken for one without KeyDB. */
const NONE = 'none';

/**
 * `KEYDB_SERVER`, then `keydb-server` on the PATH, then the image in a running container engine. Null where
 * `KEYDB_SERVER` is `none`, or names a Redis or a Valkey: that one stands in for KeyDB.
 */
export async function findKeydb(): Promise<Program | null> {
  if (process.env.KEYDB_SERVER === NONE) return null;
  const found = (await installed('keydb', 'KEYDB_SERVER', 'keydb-server')) ?? (await contained());
  return found?.name === 'keydb' ? found : null;
}

/** `VALKEY_SERVER`, then `valkey-server` on the PATH. */
export const findValkey = (): Promise<Program | null> => installed('valkey', 'VALKEY_SERVER', 'valkey-server');

/** What may stand in for KeyDB: what `KEYDB_SERVER` names, then Valkey, else Redis itself. */
export async function findStandIn(): Promise<Program> {
  const { KEYDB_SERVER: chosen } = process.env;
  const named = chosen && chosen !== NONE ? await installed('keydb', 'KEYDB_SERVER', 'keydb-server') : null;
  return named ?? (await findValkey()) ?? (await findRedis());
}

async function installed(name: Program['name'], variable: string, file: string): Promise<Program | null> {
  const chosen = process.env[variable];
  if (chosen) {
    const path = chosen.includes('/') ? chosen : onPath(chosen);
    if (path === null || !executable(path)) throw new ServerMissing(`${variable}=${chosen} is not an executable file`);
    return describe(name, path);
  }
  const path = onPath(file);
  return path === null ? null : describe(name, path);
}

async function contained(): Promise<Program | null> {
  for (const engine of ['docker', 'podman']) {
    const path = onPath(engine);
    if (path === null) continue;
    try {
      await run(path, ['info'], { timeout: 5000 });
      const asked = ['run', '--rm', KEYDB_IMAGE, 'keydb-server', '--version'];
      const { stdout } = await run(path, asked, { timeout: 120_000 });
      return {
        name: 'keydb',
        path: 'keydb-server',
        container: { engine: path, image: KEYDB_IMAGE },
        version: parseVersion(stdout),
      };
    } catch {
      // No running engine, or the image cannot be had: the next one.
    }
  }
  return null;
}

/** A server says itself what it is, whichever variable leads to it. */
async function describe(name: Program['name'], path: string): Promise<Program> {
  const { stdout } = await run(path, ['--version'], { timeout: 10_000 });
  const said = /^(redis|keydb|valkey) server /i.exec(stdout)?.[1].toLowerCase() as Program['name'] | undefined;
  return { name: said ?? name, path, version: parseVersion(stdout) };
}

/** `Redis server v=7.0.15 sha=…`: the same form for Redis, KeyDB and Valkey. */
const parseVersion = (line: string): string => /\bv=(\S+)/.exec(line)?.[1] ?? 'of unknown version';

function onPath(file: string): string | null {
  for (const dir of (process.env.PATH ?? '').split(delimiter)) {
    const path = join(dir || '.', file);
    if (executable(path)) return path;
  }
  return null;
}

function executable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
