/**
 * Hostile clients do not harm the others: the worst attacks of `npm run soak -- --hostile`, about a second each.
 *
 * Needs real sockets: what a process and a kernel keep for hostile clients.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { ATTACKS } from '../proxy/hostile/attacks.js';
import { runBattery } from '../proxy/hostile/battery.js';
import { asLine, failuresOf } from '../proxy/hostile/report.js';
import { QUEUE_BYTES } from '../proxy/hostile/run.js';
import { judge, neededRss, type Finding, type Tolerance } from '../proxy/hostile/verdict.js';
import { DEFAULT_PROXY_COMMAND } from '../rig/proxy.js';
import { Rig } from '../rig/rig.js';
import { needs } from '../../shadow-proxy/test/support/needs.js';

const MIB = 2 ** 20;
const TOTAL_CLIENT_BYTES = 64 * MIB;
const TOLERANCE: Tolerance = {
  factor: 5,
  floorMs: 20,
  leeway: 2,
  stallMs: 20_000,
  // What is not collected yet follows the pace of the machine: what holds is what `--check` asks for.
  maxRss: neededRss(TOTAL_CLIENT_BYTES, QUEUE_BYTES),
};
const WORST = [
  'silent-commands',
  'large-reads',
  'giant-pipelines',
  'slow-readers',
  'large-arguments',
  'deaf-subscribers',
];

test('beside hostile clients the others are answered in time, nobody is disconnected, and memory is bounded', async (t) => {
  if (!(await needs(t, 'keydb'))) return;
  const rig = new Rig();
  try {
    const findings = await runBattery(rig, {
      attacks: ATTACKS.filter(({ name }) => WORST.includes(name)),
      seconds: 1,
      calmMs: 500,
      tolerance: TOLERANCE,
      proxyCommand: DEFAULT_PROXY_COMMAND,
      totalClientBytes: TOTAL_CLIENT_BYTES,
      retries: 1,
      report: (finding) => t.diagnostic(asLine(finding)),
    });
    assert.equal(findings.length, WORST.length);
    assert.deepEqual(failuresOf(findings, TOLERANCE), {});
  } finally {
    await rig.close();
  }
});

const seen = (p99: number, changes: object = {}): Finding['seen'] => {
  const times = { p50: p99 / 10, p99, worst: p99 * 2 };
  return { replies: 1000, wall: times, work: times, lost: 0, wrong: [], ...changes };
};
const tolerance: Tolerance = { factor: 5, floorMs: 10, leeway: 1, stallMs: 10_000, maxRss: 500 * MIB };
const finding = (changes: Partial<Finding> = {}): Finding => ({
  attack: 'a',
  does: 'x',
  calm: seen(3),
  seen: seen(15),
  peak: 400 * MIB,
  outage: false,
  ...changes,
});

test('an attack holds while the p99 of the others is 5 times what it was, at most the floor, or what it is allowed', () => {
  assert.deepEqual(judge(finding(), tolerance), []);
  assert.deepEqual(judge(finding({ calm: seen(0.1), seen: seen(10) }), tolerance), []);
  assert.match(judge(finding({ seen: seen(15.1) }), tolerance)[0], /rose from 3.0 to 15.1 ms, more than 15.0 ms/);
  assert.deepEqual(judge(finding({ seen: seen(50), allowed: { ms: 50, because: 'x' } }), tolerance), []);
  assert.equal(judge(finding({ seen: seen(51), allowed: { ms: 50, because: 'x' } }), tolerance).length, 1);
  assert.deepEqual(judge(finding({ seen: seen(45) }), { ...tolerance, leeway: 3 }), []);
});

test('a stall, a lost connection, a wrong reply, no reply, too much memory, a server declared lost: each harms the others', () => {
  const harmed: Partial<Finding>[] = [
    { seen: seen(15, { wall: { p50: 1, p99: 2, worst: 10_000 } }) },
    { seen: seen(15, { lost: 1 }) },
    { seen: seen(15, { wrong: ['GET a: -ERR'] }) },
    { seen: seen(NaN, { replies: 0, work: { p50: 0, p99: 0, worst: 0 } }) },
    { peak: 501 * MIB },
    { outage: true },
  ];
  for (const change of harmed) assert.equal(judge(finding(change), tolerance).length, 1, JSON.stringify(change));
});

const soak = (...args: string[]): Promise<{ code: unknown; stderr: string }> =>
  new Promise((resolve) => {
    const main = fileURLToPath(new URL('../proxy/soak/main.js', import.meta.url));
    execFile(process.execPath, [main, ...args], (problem, _stdout, stderr) =>
      resolve({ code: problem?.code ?? 0, stderr }),
    );
  });

test('wrong options of the soak end it with 2, and are named', async () => {
  const wrong: [args: string[], says: RegExp][] = [
    [['--hostile', '--attacks', 'large-reads,x'], /"x" is no attack. Allowed: refused-commands, /],
    [['--hostile', '--rate', '5'], /--rate is not allowed with --hostile/],
    [['--seconds', '5'], /--seconds is allowed with --hostile only/],
    [['--hostile', '--seconds', '0'], /a number above 0/],
  ];
  for (const [args, says] of wrong) {
    const { code, stderr } = await soak(...args);
    assert.equal(code, 2, args.join(' '));
    assert.match(stderr, says);
  }
});
