/** How the programs are typed where a process was started. */
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, test } from 'node:test';
import { invocationAt, retyped, typed } from '../../../src/text/invocation.js';

const home = realpathSync(mkdtempSync(join(tmpdir(), 'invocation-')));
after(() => rmSync(home, { recursive: true }));

const put = (...path: string[]): string => {
  const file = join(home, ...path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, '{}');
  return file;
};
const link = (to: string, ...path: string[]): void => {
  const at = join(home, ...path);
  mkdirSync(dirname(at), { recursive: true });
  symlinkSync(to, at);
};
/** An installation of the kit. @returns its folder */
function kit(...path: string[]): string {
  for (const name of ['shadow-compare', 'shadow-proxy']) put(...path, 'shadow-proxy', 'bin', `${name}.mjs`);
  put(...path, 'package.json');
  return join(home, ...path);
}

const checkout = kit('checkout');
put('checkout', 'counters', 'package.json');
mkdirSync(join(checkout, 'docs'));
const at = (root: string, directory: string | null, path = ''): string =>
  invocationAt('shadow-compare', { root, directory: directory === null ? null : join(home, directory), path });
const FILE = join(checkout, 'shadow-proxy', 'bin', 'shadow-compare.mjs');

test('in a checkout the programs are typed with npx --no-install, and outside of one with the path of their file', () => {
  assert.equal(at(checkout, 'checkout'), 'npx --no-install shadow-compare');
  assert.equal(at(checkout, 'checkout/docs'), 'npx --no-install shadow-compare');
  assert.equal(at(checkout, 'checkout/counters'), FILE, 'the package of this folder counts');
  assert.equal(at(checkout, '.'), FILE);
  assert.equal(at(checkout, null), FILE, 'the current directory was removed');
});

test('in a project that has the kit in node_modules, npx finds it, and only there', () => {
  const installed = kit('project', 'node_modules', 'redis-to-keydb');
  link(join(installed, 'shadow-proxy/bin/shadow-compare.mjs'), 'project/node_modules/.bin/shadow-compare');
  put('project', 'package.json');
  put('project', 'packages', 'a', 'package.json');
  assert.equal(at(installed, 'project'), 'npx --no-install shadow-compare');
  assert.equal(at(installed, 'project/packages/a'), 'npx --no-install shadow-compare');
  assert.equal(at(checkout, 'project'), FILE, 'the project has another installation');
});

test('where the PATH leads to this installation, the plain name is typed', () => {
  const installed = kit('usr', 'lib', 'redis-to-keydb');
  link('../lib/redis-to-keydb/shadow-proxy/bin/shadow-compare.mjs', 'usr/bin/shadow-compare');
  const path = [join(home, 'nothing'), join(home, 'usr', 'bin')].join(':');
  assert.equal(at(installed, '.', path), 'shadow-compare');
  assert.equal(at(installed, 'checkout', path), 'shadow-compare');
  assert.equal(at(checkout, '.', path), FILE, 'the PATH leads to another installation');
  // Of a file that another program put on the PATH earlier, the shell takes that one.
  put('other', 'shadow-compare');
  const own = join(installed, 'shadow-proxy', 'bin', 'shadow-compare.mjs');
  assert.equal(at(installed, '.', [join(home, 'other'), path].join(':')), own);
});

test('folders that npm puts on the PATH of what it starts do not count', () => {
  link(FILE, 'npm/node_modules/.bin/shadow-compare');
  assert.equal(at(checkout, '.', join(home, 'npm', 'node_modules', '.bin')), FILE);
});

test('a path with a blank is quoted', () => {
  const root = kit('with a blank');
  assert.equal(at(root, '.'), `'${join(root, 'shadow-proxy', 'bin', 'shadow-compare.mjs')}'`);
});

test('texts are typed as here: one command, or a page of the repository', () => {
  // The tests run in the checkout.
  assert.equal(typed('shadow-proxy --check'), 'npx --no-install shadow-proxy --check');
  assert.equal(typed('run shadow-proxy'), 'run shadow-proxy');
  const page = 'run: npx --no-install shadow-compare status\nundo: npx --no-install shadow-proxy --check\n';
  assert.equal(retyped(page), page);
});
