/** `npm run setup`: what it installs, and what it says of what is missing. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';

interface Machine {
  readonly has: (part: string) => boolean;
  readonly can: (program: string) => boolean;
  readonly root: boolean;
}
const FILE = fileURLToPath(new URL('../../../../../shadow-proxy/build/setup.mjs', import.meta.url));
const { planOf, summaryOf } = (await import(pathToFileURL(FILE).href)) as {
  planOf: (machine: Machine) => { missing: string[]; commands: string[][]; byHand: string[] };
  summaryOf: (skipped: readonly string[]) => string[];
};
/** A machine that lacks these parts, and has these programs. */
const planFor = (lacks: string[], programs: string[], root = false): ReturnType<typeof planOf> =>
  planOf({ has: (part) => !lacks.includes(part), can: (program) => programs.includes(program), root });

test('setup installs what is missing with apt: as root, or with sudo', () => {
  const install = 'env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -y --no-install-recommends';
  for (const [root, sudo] of [
    [true, ''],
    [false, 'sudo '],
  ] as const) {
    const { commands, byHand } = planFor(['chromium', 'python'], ['apt-get', 'sudo', 'go'], root);
    assert.deepEqual(
      commands.map((command) => command.join(' ')),
      [`${sudo}apt-get update -qq`, `${sudo}${install} chromium python3 python3-pip python3-venv`],
    );
    assert.deepEqual(byHand, []);
  }
});

test('setup prints the command where it cannot run it', () => {
  const byHand = (programs: string[]): string[] => {
    const plan = planFor(['promtool', 'helm'], programs);
    assert.deepEqual(plan.commands, []);
    return plan.byHand;
  };
  const tools = 'with Go: sh packaging/tools.sh (helm)';
  assert.deepEqual(byHand(['apt-get']), [
    'as root: apt-get update && apt-get install -y --no-install-recommends prometheus',
    tools,
  ]);
  assert.deepEqual(byHand(['brew']), ['brew install prometheus', tools]);
  assert.deepEqual(byHand([]), ['with the package manager of this system: promtool (on Debian: prometheus)', tools]);
});

test('setup never installs KeyDB, and does nothing where nothing is missing', () => {
  const parts = ['cc', 'openssl', 'chromium', 'promtool', 'amtool', 'bash', 'zsh', 'fish', 'script', 'python', 'helm'];
  assert.doesNotMatch(JSON.stringify(planFor([...parts, 'keydb'], ['apt-get', 'go'], true).commands), /keydb/i);
  assert.deepEqual(planFor(['keydb'], ['apt-get', 'go'], true), { missing: [], commands: [], byHand: [] });
});

test('the skipped tests are counted by the part that they need, with the command that brings it', () => {
  const keydb = 'needs keydb: keydb-server 6.3.4 on the PATH, or KEYDB_SERVER';
  const amtool = 'needs amtool: apt-get install prometheus-alertmanager';
  assert.deepEqual(summaryOf([amtool, keydb, keydb, 'root may write anywhere']), [
    `skipped: 2 tests: ${keydb}`,
    `skipped: 1 test: ${amtool}`,
    'skipped: 1 test: root may write anywhere',
    'npm run setup brings amtool',
    'docs/install.md says how to get KeyDB',
  ]);
  assert.deepEqual(summaryOf([]), []);
});
