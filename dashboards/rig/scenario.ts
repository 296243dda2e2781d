/**
 * A small migration with traffic: backfill, verify, a slow mirror, a promotion, a difference that is caught, a cut
 * link, a rollback.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { AdminClient } from '../../shadow-proxy/src/cli/admin-client.js';
import { connectApps, drive, type App } from '../../shadow-proxy/src/cli/demo/traffic.js';
import type { ShardSnapshot } from '../../shadow-proxy/src/telemetry/snapshot.js';
import type { LocalServer } from '../../shadow-proxy/src/local/servers.js';
import type { Stack } from './stack.js';

/** Between two commands of one of the 32 workers: some 600 commands a second. */
const PAUSE_MS = 50;
/** How long each part goes on, so that it can be seen on a plot. */
const SCENE_MS = 8_000;
const LIMIT_MS = 60_000;

/** What is there before the migration begins. */
export async function seed(source: LocalServer): Promise<void> {
  const apps = await connectApps(source.port);
  const stopAt = performance.now() + 1_500;
  await drive(apps, () => performance.now() > stopAt);
  for (const app of apps) app.close();
}

/** Plays it to its end. @param say is given what happens now */
export async function play(stack: Stack, say: (line: string) => void = () => undefined): Promise<void> {
  const apps = await connectApps(stack.proxy.port);
  let over = false;
  const traffic = drive(apps.map(paced), () => over);
  try {
    await story(new AdminClient({ admin: stack.proxy.admin }), stack, apps[0], say);
  } finally {
    over = true;
    await traffic;
    for (const app of apps) app.close();
  }
}

async function story(admin: AdminClient, { pair }: Stack, client: App, say: (line: string) => void): Promise<void> {
  const moving = ['sessions', 'api-cache', 'rate-limits', 'auth-cache'];
  const stage = async (workload: string, to: 'dualwrite' | 'shadow' | 'live', percent?: number): Promise<void> =>
    void (await admin.promote({
      workload,
      to,
      percent: to === 'live' ? (percent ?? 100) : undefined,
      force: true,
      forceSuspects: true,
      forceUsers: true,
      reason: 'the rig plays a migration',
    }));
  await sleep(SCENE_MS / 2);
  say('dualwrite');
  for (const workload of moving) await stage(workload, 'dualwrite');
  say('backfill');
  await job(admin, 'backfill');
  say('shadow');
  for (const workload of moving) await stage(workload, 'shadow');
  await sleep(SCENE_MS);
  say('verify');
  await job(admin, 'verify');
  say('the mirror stands still');
  await pair.nodes.a.kill('SIGSTOP');
  await sleep(SCENE_MS / 4);
  say('and loses its lane with commands on it');
  const cut = pair.clients.a.call('CLIENT', 'KILL', 'TYPE', 'normal');
  await pair.nodes.a.kill('SIGCONT');
  await cut;
  await settled(admin);
  say('sessions: live');
  await stage('sessions', 'live', 25);
  await sleep(SCENE_MS);
  await stage('sessions', 'live', 100);
  await sleep(SCENE_MS);
  say('a value is changed behind the proxy’s back, and read');
  await client.call(['SET', 'auth:nobody-else', 'right']);
  await settled(admin);
  await pair.clients.a.set('auth:nobody-else', 'wrong');
  await client.call(['GET', 'auth:nobody-else']);
  await sleep(SCENE_MS / 2);
  say('the link between the nodes is cut');
  await pair.cut();
  await sleep(SCENE_MS / 2);
  await pair.rejoin();
  say('sessions: back');
  await stage('sessions', 'shadow');
  await sleep(SCENE_MS / 2);
}

/** The commands of an app, with a pause before each. */
const paced = (app: App): App => ({
  ...app,
  call: async (command) => {
    await sleep(PAUSE_MS);
    return app.call(command);
  },
});

async function job(admin: AdminClient, kind: 'backfill' | 'verify'): Promise<void> {
  await admin.startJob({ kind });
  await until(admin, `the ${kind} ends`, (shard) => shard.job?.kind === kind && shard.job.state !== 'running');
}

/** Nothing waits for the mirror, and nothing is suspect. */
const settled = (admin: AdminClient): Promise<void> =>
  until(
    admin,
    'the mirror has all',
    ({ mirror, suspects }) => mirror.connected && mirror.queuedEffects < 50 && suspects.total === 0,
  );

async function until(admin: AdminClient, what: string, holds: (shard: ShardSnapshot) => boolean): Promise<void> {
  for (const deadline = performance.now() + LIMIT_MS; performance.now() < deadline; await sleep(200))
    if ((await admin.status()).shards.every(holds)) return;
  throw new Error(`${what}: not within ${LIMIT_MS / 1000} s: ${JSON.stringify(await admin.status())}`);
}
