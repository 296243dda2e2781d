/** A real Redis (source) and a real KeyDB (target), in memory only, and the same keyspace on both. */
import { createHash } from 'node:crypto';
import { connect } from 'node:net';
import { findKeydb, findRedis } from '../../shadow-proxy/src/local/program.js';
import { startKeydb, startRedis } from '../../shadow-proxy/src/local/servers.js';
import { LoadtestError } from './errors.js';
import type { Rig, Running } from './rig.js';

export interface Servers {
  readonly source: Server;
  readonly target: Server;
  /** The password of both servers, if they have one. */
  readonly password?: string;
}

export interface Server extends Running {
  /** For example `KeyDB 6.3.4`. */
  readonly label: string;
}

/** KeyDB's own default; more would take cores from the measured programs. */
const TARGET_THREADS = 1;

/** A thousand clients may connect at once: with the default of 511 the others would try again after a second. */
const BACKLOG = 4096;

/** The servers that are missing on this machine, by name and with what to do. */
export async function missingServers(): Promise<string[]> {
  const missing: string[] = [];
  await findRedis().catch((error: Error) => missing.push(error.message));
  const keydb = await findKeydb();
  if (keydb?.container)
    missing.push('keydb-server outside of a container, whose CPU time cannot be told: set KEYDB_SERVER');
  if (keydb === null) missing.push('keydb-server (the target): put it on PATH, or set KEYDB_SERVER');
  return missing;
}

/** Both servers end with the rig. */
export async function startServers(rig: Rig): Promise<Servers> {
  const [source, target] = [
    await startRedis({ config: { 'tcp-backlog': BACKLOG } }),
    await startKeydb({ config: { 'tcp-backlog': BACKLOG, 'server-threads': TARGET_THREADS } }),
  ];
  rig.watch('source', () => source.pid !== undefined);
  rig.watch('target', () => target.pid !== undefined);
  return {
    source: { name: 'source', port: source.port, pid: source.pid!, label: source.label },
    target: {
      name: 'target',
      port: target.port,
      pid: target.pid!,
      label: `${target.label}, server-threads ${TARGET_THREADS}`,
    },
  };
}

/** `memtier-1` to `memtier-<count>`: the keys that memtier_benchmark uses. */
export const KEY_PREFIX = 'memtier-';

/** Commands for `seed` that give every key its own value of `size` bytes, the same in every call. */
export function seedCommands(count: number, size: number): Buffer {
  const commands: string[] = [];
  for (let i = 1; i <= count; i++) commands.push(command('SET', KEY_PREFIX + i, `${i}:`.padEnd(size, 'v')));
  return Buffer.from(commands.join(''));
}

/** Runs the commands of `seedCommands`. @throws {LoadtestError} unless every value was accepted */
export async function seed(server: Running, commands: Buffer, count: number): Promise<void> {
  const replies = await exchange(server, commands);
  if (replies.length !== '+OK\r\n'.length * (count + 1)) {
    const said = replies.subarray(0, 200).toString('latin1');
    throw new LoadtestError('MEASUREMENT', `${server.name} refused the keys it was given: ${said}`);
  }
}

/** Commands for `digest` that read every key, in order. */
export function readCommands(count: number): Buffer {
  const batch = 500;
  const commands: string[] = [];
  for (let from = 1; from <= count; from += batch) {
    const keys = Array.from({ length: Math.min(batch, count - from + 1) }, (_, i) => KEY_PREFIX + (from + i));
    commands.push(command('MGET', ...keys));
  }
  return Buffer.from(commands.join(''));
}

/** One hash over all replies of the server to `commands`. */
export const digest = async (server: Running, commands: Buffer): Promise<string> =>
  createHash('sha256')
    .update(await exchange(server, commands))
    .digest('hex');

/** Number of GET and SET commands that the server has executed since it was started. */
export async function readsAndWrites(server: Running): Promise<number> {
  const info = (await exchange(server, Buffer.from(command('INFO', 'commandstats')))).toString('latin1');
  const calls = (name: string): number => Number(new RegExp(`^cmdstat_${name}:calls=(\\d+)`, 'm').exec(info)?.[1] ?? 0);
  return calls('get') + calls('set');
}

/** Sends the commands on a connection of their own and returns all bytes of the replies. */
export function exchange(server: Running, commands: Buffer): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    const socket = connect(server.port, '127.0.0.1');
    socket.setTimeout(30_000, () => socket.destroy(new Error('no answer for 30 seconds')));
    socket.on('data', (chunk) => chunks.push(chunk));
    socket.once('error', (cause) => reject(new LoadtestError('DIED', `${server.name}: ${cause.message}`)));
    socket.once('end', () => resolve(Buffer.concat(chunks)));
    socket.write(commands);
    socket.write(command('QUIT')); // the server answers, then closes: so the end of the replies is certain
  });
}

const command = (...args: string[]): string =>
  `*${args.length}\r\n${args.map((a) => `$${a.length}\r\n${a}\r\n`).join('')}`;
