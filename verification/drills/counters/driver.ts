/** Who sends the increments: memtier_benchmark, or, where that is missing, a client of ours. */
import { readFileSync } from 'node:fs';
import { Redis } from 'ioredis';
import type { Rig } from '../../../loadtest/rig/rig.js';
import type { Driver } from './place.js';

export const MEMTIER = 'memtier_benchmark';
const CLIENTS = 2;
const LIMIT_MS = 120_000;

/** The part of memtier's JSON that is used. */
interface Output {
  readonly 'ALL STATS': { readonly Totals: { readonly Count: number; readonly 'Connection Errors': number } };
}

/** Counts what memtier got replies to. */
export function memtierDriver(rig: Rig): Driver {
  let runs = 0;
  return async (port, times, command) => {
    const name = `memtier-${runs++}`;
    const json = rig.file(`${name}.json`);
    const options = [
      '--server=127.0.0.1',
      `--port=${port}`,
      '--threads=1',
      `--clients=${CLIENTS}`,
      `--requests=${Math.ceil(times / CLIENTS)}`,
      `--command=${command.join(' ')}`,
      '--hide-histogram',
      `--json-out-file=${json}`,
    ];
    await rig.run(name, MEMTIER, options, LIMIT_MS);
    return (JSON.parse(readFileSync(json, 'utf8')) as Output)['ALL STATS'].Totals.Count;
  };
}

export const ownDriver: Driver = async (port, times, command) => {
  const clients = Array.from(
    { length: CLIENTS },
    () => new Redis({ host: '127.0.0.1', port, maxRetriesPerRequest: null }),
  );
  let [left, acknowledged] = [times, 0];
  const worker = async (client: Redis): Promise<void> => {
    while (left-- > 0)
      acknowledged += await client.call(command[0], ...command.slice(1)).then(
        () => 1,
        () => 0,
      );
  };
  await Promise.all(clients.map(worker));
  for (const client of clients) client.disconnect();
  return acknowledged;
};
