/** HAProxy in front of a listener, as a load balancer that passes connections on. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { freePort } from '../../src/local/port.js';
import { scratch } from './plans.js';
import { until } from './shard.js';

export interface Way {
  /** Where clients connect to, such as `127.0.0.1` or `::1`. */
  readonly host: string;
  /** The options of the server's line, such as `send-proxy-v2`. */
  readonly server: string;
}

/** Starts HAProxy for the test's time. @returns the port of each way to the listener */
export async function startHaproxy(t: TestContext, listener: number, ways: readonly Way[]): Promise<number[]> {
  const ports = await Promise.all(ways.map(() => freePort()));
  const file = join(scratch(t), 'haproxy.cfg');
  const sections = ways.flatMap(({ host, server }, i) => [
    `listen way-${i}`,
    `  bind ${host}:${ports[i]}`,
    `  server proxy 127.0.0.1:${listener} ${server}`,
  ]);
  const times = ['connect 5s', 'client 1m', 'server 1m', 'check 1s'].map((time) => `  timeout ${time}`);
  writeFileSync(file, ['defaults', '  mode tcp', ...times, ...sections, ''].join('\n'));
  const child = spawn('haproxy', ['-db', '-f', file], { stdio: 'ignore' });
  t.after(async () => {
    if (child.exitCode === null && child.kill('SIGKILL')) await once(child, 'exit');
  });
  for (const [i, { host }] of ways.entries()) await until(() => isOpen(ports[i], host));
  return ports;
}

const isOpen = (port: number, host: string): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect({ port, host });
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
