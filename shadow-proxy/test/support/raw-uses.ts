/**
 * Uses of Node's own clock, timers, random numbers, sockets and files: each call is recorded with the file that made
 * it, and goes on.
 */
import crypto from 'node:crypto';
import fs from 'node:fs';
import http from 'node:http';
import { syncBuiltinESMExports } from 'node:module';
import net from 'node:net';
import timers from 'node:timers/promises';
import tls from 'node:tls';

type Call = (...args: unknown[]) => unknown;

/** Functions that bring something from outside. */
const RAW: readonly [name: string, object: object, names: readonly string[]][] = [
  ['', globalThis, ['setTimeout', 'setInterval', 'setImmediate', 'clearTimeout', 'clearInterval', 'fetch']],
  ['performance.', performance, ['now']],
  ['Date.', Date, ['now']],
  ['Math.', Math, ['random']],
  ['AbortSignal.', AbortSignal, ['timeout']],
  ['process.', process, ['hrtime', 'uptime']],
  ['timers.', timers, ['setTimeout', 'setInterval', 'setImmediate']],
  ['fs.', fs, Object.keys(fs).filter((name) => /^[a-z]/.test(name) && name !== 'promises')],
  ['fs.promises.', fs.promises, Object.keys(fs.promises).filter((name) => name !== 'constants')],
  ['net.', net, ['connect', 'createConnection', 'createServer']],
  ['tls.', tls, ['connect', 'createServer']],
  ['http.', http, ['request', 'get', 'createServer']],
  ['crypto.', crypto, ['randomBytes', 'randomUUID', 'randomInt', 'randomFill', 'randomFillSync']],
];

export interface RawUses {
  /** How often, by `function of file`; the file is of this repository, or a package. */
  readonly calls: ReadonlyMap<string, number>;
  /** Puts back what was there. */
  stop(): void;
}

export function watchRawUses(): RawUses {
  const calls = new Map<string, number>();
  const undo: (() => void)[] = [];
  const note = (what: string): void => {
    const caller = new Error().stack!.split('\n').find((line, at) => at > 2 && !line.includes('node:'));
    const file = /(?:dist\/|node_modules\/)([^:)]+)/.exec(caller ?? '')?.[1];
    if (file === undefined) return;
    const key = `${what} of ${file}`;
    calls.set(key, (calls.get(key) ?? 0) + 1);
  };
  for (const [prefix, object, names] of RAW)
    for (const name of names) {
      const of = object as Record<string, Call>;
      const own = of[name];
      if (typeof own !== 'function') continue;
      // Their own properties, too: `hrtime.bigint`, and what `promisify` looks for.
      of[name] = new Proxy(own, {
        apply(call, self, args: unknown[]) {
          note(prefix + name);
          return Reflect.apply(call, self, args) as unknown;
        },
      });
      undo.push(() => (of[name] = own));
    }
  const OwnDate = Date;
  globalThis.Date = new Proxy(OwnDate, {
    construct(made, args: unknown[]) {
      if (args.length === 0) note('new Date()');
      return Reflect.construct(made, args) as object;
    },
  });
  syncBuiltinESMExports();
  return {
    calls,
    stop() {
      globalThis.Date = OwnDate;
      for (const each of undo) each();
      syncBuiltinESMExports();
    },
  };
}
