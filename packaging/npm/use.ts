/** What a stranger does with the packages, as their pages say it: with npx, in a folder that has nothing else. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../shadow-proxy/src/local/port.js';
import { Redis } from 'ioredis';
import { run, type Ran } from '../../verification/rehearsal/run.js';
import type { LocalServer } from '../../shadow-proxy/src/local/servers.js';
import type { Node } from './nodes.js';

/** Packages that are installed in a folder, and the Node to run them with. */
interface Place {
  readonly folder: string;
  readonly node: Node;
}

const WITHOUT_MODULE = /the native module cannot be loaded/;
const REPLIES = 200;

/** @param what as `npm install` takes it. @returns the folder */
export async function install(folder: string, what: readonly string[]): Promise<string> {
  mkdirSync(folder, { recursive: true });
  await run(['npm', 'install', '--no-audit', '--no-fund', '--prefer-offline', ...what], { cwd: folder });
  return folder;
}

/** In order: each command is one of README.md or docs/getting-started.md. @throws {Error} where one fails */
export async function useKit(place: Place, servers: { source: LocalServer; target: LocalServer }): Promise<void> {
  await compareTwoServers(place, servers.source.url, servers.target.url);
  // A second run would find keys on the target that are not its own.
  for (const { url } of [servers.source, servers.target]) await flush(url);
  await withLocal(place, async (log) => {
    expect(!WITHOUT_MODULE.test(log), `the native module is not used:\n${log}`);
    const plan = ['--plan', 'local-migration/migration.yaml'];
    const checked = await npx(place, ['shadow-proxy', '--check', ...plan]);
    expect(checked.stdout.includes('the plan is valid'), checked.stdout);
    await npx(place, ['shadow-compare', 'runbook', 'week-1', '--step', 'dualwrite-gates:sessions', ...plan]);
  });
  const demo = await npx(place, ['shadow-compare', 'demo', '--for', '1s', '--json']);
  expect((JSON.parse(demo.stdout) as { holds: boolean }).holds, demo.stdout);
}

async function compareTwoServers(place: Place, source: string, target: string): Promise<void> {
  const port = await freePort();
  const ends = ['--source', source, '--target', target, '--listen', `127.0.0.1:${port}`];
  const verdict = npx(place, ['shadow-compare', 'run', ...ends, '--for', '2s', '--overwrite', '--json']);
  const client = new Redis({ port, retryStrategy: () => 50, maxRetriesPerRequest: null });
  client.on('error', () => undefined);
  try {
    const all = Promise.all(Array.from({ length: REPLIES }, (_, key) => client.set(`key:${key}`, 'value')));
    await Promise.race([all, verdict]);
    const { snapshot } = JSON.parse((await verdict).stdout) as { snapshot: { compared: number } };
    expect(snapshot.compared >= REPLIES, `${snapshot.compared} replies compared, of ${REPLIES}`);
  } finally {
    client.disconnect();
  }
}

/** The proxy as it is where the module is another platform's. */
export async function useWithoutModule(place: Place): Promise<void> {
  const file = join(place.folder, 'node_modules/redis-to-keydb/dist/shadow-proxy/native/front.node');
  writeFileSync(file, 'of another platform');
  await withLocal(place, async (log) => {
    expect(WITHOUT_MODULE.test(log), `nothing says that Node's sockets are used:\n${log}`);
    await npx(place, ['shadow-compare', 'local', 'traffic', '--for', '1s']);
  });
}

/** @param use is given what the proxy logged */
async function withLocal(place: Place, use: (log: string) => Promise<void>): Promise<void> {
  const { stdout } = await npx(place, ['shadow-compare', 'local', 'up', '--json']);
  try {
    const { proxy } = JSON.parse(stdout) as { proxy: string };
    const client = new Redis(proxy);
    expect((await client.ping()) === 'PONG', `${proxy} does not answer`);
    client.disconnect();
    await use(readFileSync(join(place.folder, 'local-migration', 'log'), 'utf8'));
  } finally {
    await npx(place, ['shadow-compare', 'local', 'down']);
  }
}

/** The snippet of its README, as it is written there; and that CommonJS has the same. */
export async function useCounters(place: Place, url: string): Promise<void> {
  const page = readFileSync(join(place.folder, 'node_modules/redis-to-keydb-counters/README.md'), 'utf8');
  writeFileSync(join(place.folder, 'snippet.mjs'), /^```ts\n([^]*?)^```$/m.exec(page)![1]);
  const snippet = withNode(place, [place.node.path, 'snippet.mjs'], { REDIS_URL: url });
  const ended = await Promise.race([snippet, sleep(20_000, null, { ref: false })]);
  expect(ended !== null, "the snippet of the counters' README does not end");
  expect(/^visits 1$/m.test(ended!.stdout), `the snippet of the counters' README printed: ${ended!.stdout}`);
  const parts = ['', '/ioredis', '/node-redis'].map((part) => `require('redis-to-keydb-counters${part}')`);
  await withNode(place, [place.node.path, '-e', `${parts.join(';')};${parts[0]}.Counters.open.call`]);
  await flush(url);
}

async function flush(url: string): Promise<void> {
  const client = new Redis(url);
  await client.flushall();
  client.disconnect();
}

/** Never what npm could fetch instead. */
const npx = (place: Place, command: readonly string[]): Promise<Ran> =>
  withNode(place, ['npx', '--no-install', ...command]);

const withNode = ({ folder, node }: Place, command: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Ran> =>
  run(command, { cwd: folder, env: { ...env, PATH: `${dirname(node.path)}${delimiter}${process.env.PATH}` } });

function expect(holds: boolean, message: string): void {
  if (!holds) throw new Error(message);
}
