/** A simulated run notices a gross fault, and what cannot be noticed is named with its reason. */
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Fault } from '../fault.js';
import { FAULTS } from '../faults/index.js';
import { PROFILES } from '../../simulation/run/profiles.js';
import { ROOT } from '../root.js';
import { outsideOf } from '../simulated/reach.js';
import { trySimulated } from '../simulated/try-simulated.js';

const tests = ['unit/route/stage'];
const GROSS: Fault = {
  id: 'shadow-mirrors-nothing',
  file: 'shadow-proxy/src/route/stage.ts',
  from: "shadow: {\n    authority: 'source',\n    mirrorsWrites: true,",
  to: "shadow: {\n    authority: 'source',\n    mirrorsWrites: false,",
  tests,
};
/** In a function that no run calls. */
const UNUSED: Fault = {
  id: 'a-tls-socket-is-plain',
  file: 'shadow-proxy/src/io/sockets.ts',
  from: 'world.connectTls(to)',
  to: 'world.connectTcp(to)',
  tests,
};
const UNSEEN: Fault = { ...GROSS, id: 'nobody-could-tell', unseen: 'Clients get the same replies.' };
const KEPT: Fault = FAULTS.find(({ kept }) => kept !== undefined)!;
const OUTSIDE: Fault = FAULTS.find(({ file }) => file.includes('/notify/'))!;

test('Each profile and kept program that a fault names exists, and no such fault is one that no run can notice', () => {
  const profiles = PROFILES.map(({ name }) => name);
  const isKept = (name: string): boolean => existsSync(`${ROOT}verification/simulation/test/kept/${name}.test.ts`);
  const wrong = FAULTS.filter((each) => {
    const { profile, kept } = each;
    if (profile === undefined && kept === undefined) return false;
    const exists = profile === undefined ? isKept(kept!) : kept === undefined && profiles.includes(profile);
    return !exists || outsideOf(each) !== null;
  });
  assert.deepEqual(wrong, []);
});

test('A fault is noticed by a run with its seed; the next start tries only what was not noticed', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'simulated-'));
  t.after(() => rmSync(directory, { recursive: true }));
  const lines: string[] = [];
  const report = join(directory, 'table');
  const options = {
    parallel: 1,
    seconds: 60,
    operations: 300,
    profiles: ['crashes'],
    seedsToCount: 1,
    again: false,
    report,
    signal: t.signal,
  };
  const start = (): ReturnType<typeof trySimulated> =>
    trySimulated([GROSS, UNUSED, UNSEEN, OUTSIDE, KEPT], { ...options, say: (line) => void lines.push(line) });
  const [gross, unused, unseen, outside, kept] = await start();
  assert.ok(gross.noticed, gross.why);
  assert.match(gross.why, /^(a key differs|the shard is not clean|the run does not end)/);
  assert.ok(gross.seed === 1 && gross.operations > 0 && gross.seconds > 0);
  assert.deepEqual([unused.noticed, unused.why], [false, 'its line never runs']);
  assert.deepEqual([unseen.noticed, unseen.why], [false, 'Clients get the same replies.']);
  assert.deepEqual([outside.noticed, outside.why], [false, outsideOf(OUTSIDE)]);
  assert.match(readFileSync(`${report}.md`, 'utf8'), /^\| route \| 2 \| 1 \| 0 \| 1 \|$/m);
  assert.ok(lines.includes('cannot be seen  nobody-could-tell: Clients get the same replies.'));
  assert.ok(
    kept.noticed && kept.kept === KEPT.kept && lines.at(-1)!.includes(`kept program ${KEPT.kept}: "`),
    kept.why,
  );
  lines.length = 0;
  assert.deepEqual(await start(), [gross, unused, unseen, outside, kept]);
  assert.deepEqual(lines, ['5 faults, 0 to try']);
});
