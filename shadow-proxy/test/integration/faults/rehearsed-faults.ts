/** Faults that several rehearsals have. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import type { LocalServer } from '../../../src/local/servers.js';
import type { Scene } from './rehearsal.js';

/** Asks a server itself, bypassing the proxy. */
export async function ask<T>({ port }: LocalServer, question: (client: Redis) => Promise<T>): Promise<T> {
  const client = new Redis({ port, retryStrategy: () => null });
  client.on('error', () => undefined);
  return question(client).finally(() => client.disconnect());
}

export async function restartMirrorEmpty({ mirror }: Scene): Promise<void> {
  await mirror.kill('SIGKILL');
  await sleep(1_000);
  await mirror.start();
}

export async function resetMirror({ mirror }: Scene): Promise<void> {
  await ask(mirror, async (client) => {
    for (let i = 0; i < 50; i++) {
      await client.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
      await sleep(100);
    }
  });
}

export async function killProxy(scene: Scene): Promise<void> {
  scene.proxy.daemon.signal('SIGKILL');
  await scene.proxy.daemon.exit();
  await sleep(500);
  await scene.startProxy();
}
