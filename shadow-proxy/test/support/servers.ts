/** The real thing for tests: a Redis, a KeyDB, what is between them, and no leftovers. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { findKeydb } from '../../src/local/program.js';
import { afterDeath } from '../../src/local/guard.js';
import { startKeydb, startRedis, type LocalServer, type ServerOptions } from '../../src/local/servers.js';

export interface Pair {
  /** Redis. */
  readonly source: LocalServer;
  /** KeyDB. */
  readonly target: LocalServer;
}

/** Starts both servers, and stops them after `body`, however it ends. */
export async function withServers<T>(
  body: (servers: Pair) => Promise<T>,
  options: { readonly source?: ServerOptions; readonly target?: ServerOptions } = {},
): Promise<T> {
  const source = await startRedis(options.source);
  try {
    const target = await startKeydb(options.target);
    try {
      return await body({ source, target });
    } finally {
      await target.stop();
    }
  } finally {
    await source.stop();
  }
}

/**
 * False, with the test skipped and a line on stderr that names it, where there is no KeyDB:
 * `if (!(await needsKeydb(t))) return;`
 */
export async function needsKeydb(t: TestContext): Promise<boolean> {
  if ((await findKeydb()) !== null) return true;
  const reason = `NOT TESTED AGAINST KEYDB: "${t.name}" needs a keydb-server (set KEYDB_SERVER, or put it on the PATH)`;
  process.stderr.write(`${reason}\n`);
  t.skip(reason);
  return false;
}

/** Paths of PEM files, for `ServerOptions.tls`. */
export interface Certificates {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

/** A new authority and a certificate of it for 127.0.0.1 and localhost, made with openssl; gone when the process ends. */
export function makeCertificates(): Certificates {
  const dir = mkdtempSync(join(tmpdir(), 'certificates-'));
  afterDeath('rm -rf -- "$1"', dir);
  const openssl = (...args: string[]): unknown => execFileSync('openssl', args, { cwd: dir, stdio: 'pipe' });
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
  openssl('req', '-x509', ...newKey, '-keyout', 'ca.key', '-out', 'ca.crt', '-days', '2', '-subj', '/CN=test authority');
  openssl('req', ...newKey, '-keyout', 'server.key', '-out', 'server.csr', '-subj', '/CN=localhost');
  writeFileSync(join(dir, 'names'), 'subjectAltName=IP:127.0.0.1,DNS:localhost\n');
  const signing = ['-CA', 'ca.crt', '-CAkey', 'ca.key', '-CAcreateserial', '-days', '2', '-extfile', 'names'];
  openssl('x509', '-req', '-in', 'server.csr', '-out', 'server.crt', ...signing);
  return { ca: join(dir, 'ca.crt'), cert: join(dir, 'server.crt'), key: join(dir, 'server.key') };
}
