/** Which Node the programs accept, and what they say of another one. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../../../..', import.meta.url));

/** Runs a program as a Node of that version would. */
function runAs(t: TestContext, version: string, program: string, ...args: string[]): { code: number; stderr: string } {
  const folder = mkdtempSync(join(tmpdir(), 'node-version-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const preload = join(folder, 'version.cjs');
  const versions = `{ ...process.versions, node: '${version}' }`;
  writeFileSync(preload, `Object.defineProperty(process, 'versions', { value: ${versions} });\n`);
  const file = join(ROOT, 'shadow-proxy/bin', program);
  const { status, stderr } = spawnSync(process.execPath, ['--require', preload, file, ...args], { encoding: 'utf8' });
  return { code: status!, stderr };
}

for (const program of ['run.mjs', 'shadow-compare.mjs', 'shadow-proxy.mjs'])
  test(`${program} says in one sentence that a Node is too old, before anything is installed`, (t) => {
    for (const version of ['12.22.9', '18.20.8', '20.18.3']) {
      const { code, stderr } = runAs(t, version, program, 'build');
      assert.equal(code, 2);
      assert.equal(
        stderr,
        `Node ${version} is too old: Node 20.19 or newer is needed, Node 24 (LTS) is recommended. Nothing was installed.\n`,
      );
    }
  });

test('npm run says in one line that Node 20 ended, and nothing with a newer one', (t) => {
  const said = (version: string): string => runAs(t, version, 'run.mjs', 'no-such-program').stderr;
  assert.match(said('20.19.0'), /^Node 20 ended in April 2026[^\n]*Node 24[^\n]*\nno-such-program cannot be run/);
  for (const version of ['22.12.0', '24.0.0', '26.1.0']) assert.match(said(version), /^no-such-program cannot be run/);
});

test('both packages ask for the same Node', () => {
  const asked = ['package.json', 'counters/package.json'].map(
    (file) => JSON.parse(readFileSync(join(ROOT, file), 'utf8')).engines.node,
  );
  assert.deepEqual(asked, ['>=20.19', '>=20.19']);
});
