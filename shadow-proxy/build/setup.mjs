/**
 * `npm run setup`: brings the parts of the machine that tests use and that npm does not have. It says what it installs,
 * and how, before it does so. Redis comes by itself with `npm test`; KeyDB is in no distribution, and never installed.
 */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const TOOLS = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'redis-to-keydb/tools');

const onPath = (name) =>
  [...(process.env.PATH ?? '').split(delimiter), join(TOOLS, 'bin')].some((folder) =>
    existsSync(join(folder || '.', name)),
  );
const python = (code) => spawnSync('python3', ['-c', code], { stdio: 'ignore' }).status === 0;

/** By the name that a skipped test gives as its reason: the packages of Debian and Ubuntu, and of Homebrew. */
const PARTS = {
  cc: { apt: ['gcc', 'libc6-dev'] },
  openssl: { apt: ['openssl'], brew: ['openssl'] },
  chromium: { apt: ['chromium'], brew: ['--cask chromium'], has: () => onPath('chromium') || !!process.env.CHROMIUM },
  promtool: { apt: ['prometheus'], brew: ['prometheus'] },
  amtool: { apt: ['prometheus-alertmanager'], brew: ['alertmanager'] },
  bash: { apt: ['bash'], brew: ['bash'] },
  zsh: { apt: ['zsh'], brew: ['zsh'] },
  fish: { apt: ['fish'], brew: ['fish'] },
  script: { apt: ['bsdutils'] },
  python: {
    apt: ['python3', 'python3-pip', 'python3-venv'],
    brew: ['python'],
    has: () => python('import ensurepip, venv, pip'),
  },
};
/** What `packaging/tools.sh` builds with Go. */
const BUILT = ['helm', 'kubeconform', 'actionlint'];

/** The names of the parts that this command brings. */
export const BROUGHT = new Set([...Object.keys(PARTS), ...BUILT, 'kubernetes-schemas']);

/**
 * What is missing, and how it is installed on this machine.
 * @param machine `has`: whether the part of that name is there; `can`: whether a program is on the PATH
 * @returns commands to run, and what only a person can do
 */
export function planOf({ has, can, root }) {
  const missing = Object.keys(PARTS).filter((name) => !has(name));
  const commands = [];
  const byHand = [];
  const packages = (manager) => missing.flatMap((name) => PARTS[name][manager] ?? []);
  if (missing.length > 0) {
    const apt = ['apt-get', 'install', '-y', '--no-install-recommends', ...packages('apt')];
    if (!can('apt-get')) {
      byHand.push(
        can('brew')
          ? `brew install ${packages('brew').join(' ')}`
          : `with the package manager of this system: ${missing.join(', ')} (on Debian: ${packages('apt').join(' ')})`,
      );
    } else if (root || can('sudo')) {
      // RUNLEVEL=1 keeps a package from starting a server of its own.
      const settings = ['env', 'DEBIAN_FRONTEND=noninteractive', 'RUNLEVEL=1'];
      const first = root ? [] : ['sudo'];
      commands.push([...first, 'apt-get', 'update', '-qq'], [...first, ...settings, ...apt]);
    } else byHand.push(`as root: apt-get update && ${apt.join(' ')}`);
  }
  const unbuilt = BUILT.filter((name) => !has(name));
  if (unbuilt.length > 0) {
    if (can('go')) commands.push(['sh', 'packaging/tools.sh']);
    else byHand.push(`with Go: sh packaging/tools.sh (${unbuilt.join(', ')})`);
  }
  return { missing: [...missing, ...unbuilt], commands, byHand };
}

/** @returns the exit code: 1 where a part is still missing */
export function setUp(args) {
  const say = (line) => process.stdout.write(`${line}\n`);
  const has = (name) => (PARTS[name]?.has ?? (() => onPath(name)))();
  const { missing, commands, byHand } = planOf({ has, can: onPath, root: process.getuid?.() === 0 });
  if (missing.length === 0) {
    say('All parts that tests use are here, KeyDB aside: docs/install.md says how to get it.');
    return 0;
  }
  say(`Missing: ${missing.join(', ')}.`);
  for (const command of commands) say(`${args.includes('--dry-run') ? 'Would run' : 'Will run'}: ${command.join(' ')}`);
  for (const line of byHand) say(`Install by hand, ${line}`);
  if (args.includes('--dry-run')) return 0;
  for (const [program, ...rest] of commands) {
    const { status, error } = spawnSync(program, rest, { cwd: ROOT, stdio: 'inherit' });
    if (status !== 0) {
      say(`${program} failed (${error?.message ?? `exit code ${status}`}): ${[program, ...rest].join(' ')}`);
      return 1;
    }
  }
  return byHand.length === 0 ? 0 : 1;
}

/**
 * What was skipped, by the part that was missing, and what brings the parts.
 * @param skipped the reasons, one for each test: `needs PART: how to get it`, or another sentence
 */
export function summaryOf(skipped) {
  const counts = new Map();
  const parts = new Set();
  for (const reason of skipped) {
    const [, part] = /^needs ([^:]+):/.exec(reason) ?? [];
    if (part !== undefined) parts.add(part);
    counts.set(reason, (counts.get(reason) ?? 0) + 1);
  }
  const brought = [...parts].filter((part) => BROUGHT.has(part));
  return [
    ...[...counts]
      .toSorted(([, one], [, other]) => other - one)
      .map(([reason, count]) => `skipped: ${count} ${count === 1 ? 'test' : 'tests'}: ${reason}`),
    ...(brought.length > 0 ? [`npm run setup brings ${brought.join(', ')}`] : []),
    ...(parts.has('keydb') ? ['docs/install.md says how to get KeyDB'] : []),
  ];
}
