/** Evidence adds up over restarts, and starts from zero with a stage. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { EvidenceBook, type WorkloadTotals } from '../../../src/storage/evidence.js';
import { scratch } from '../../support/plans.js';

const AUTHOR = { process: 'p1', before: 'p1' };

const seen = (compared: number, changes: Partial<WorkloadTotals> = {}): WorkloadTotals => ({
  name: 'w',
  stage: 'shadow',
  percent: 100,
  compared,
  allowed: new Map(),
  mismatches: new Map(),
  inconclusive: 0,
  unsupported: new Map(),
  inconclusiveByScript: new Map(),
  ...changes,
});
const at = (minute: number): Date => new Date(Date.UTC(2026, 0, 1, 10, minute));

test('totals of several processes add up, minutes and hours count once', (t) => {
  const directory = scratch(t);
  const first = new EvidenceBook(directory, AUTHOR);
  first.update(at(0), [seen(10, { allowed: new Map([['unordered', 4]]) })]);
  first.update(at(0), [
    seen(15, { allowed: new Map([['unordered', 5]]), mismatches: new Map([['value', 1]]), inconclusive: 2 }),
  ]);
  first.update(at(1), [
    seen(15, { allowed: new Map([['unordered', 5]]), mismatches: new Map([['value', 1]]), inconclusive: 2 }),
  ]);
  first.update(at(70), [
    seen(20, { allowed: new Map([['unordered', 5]]), mismatches: new Map([['value', 1]]), inconclusive: 2 }),
  ]);
  first.verified('w', { endedAt: 'then', keys: 3, differences: 0, failed: 0, unsure: 0 });
  first.save();
  const second = new EvidenceBook(directory, AUTHOR);
  second.update(at(71), [seen(100)]);
  assert.deepEqual(second.of('w'), {
    stage: 'shadow',
    percent: 100,
    since: at(0).toISOString(),
    compared: 120,
    allowed: { unordered: 5 },
    mismatches: { value: 1 },
    inconclusive: 2,
    inconclusiveByScript: {},
    minutes: 3,
    hours: [10, 11],
    verified: { endedAt: 'then', keys: 3, differences: 0, failed: 0, unsure: 0 },
    drill: null,
    unsupported: {},
  });
});

test('what only one server supports is kept over processes and stages, with the time when it was seen last', (t) => {
  const directory = scratch(t);
  const calls = (count: number) => ({ unsupported: new Map([['lmpop', { lacks: 'target' as const, calls: count }]]) });
  const first = new EvidenceBook(directory, AUTHOR);
  assert.equal(first.update(at(0), [seen(0)]), false);
  assert.equal(first.update(at(1), [seen(0, calls(2))]), true, 'a first time is to be written at once');
  assert.equal(first.update(at(2), [seen(0, calls(3))]), false);
  first.save();
  const second = new EvidenceBook(directory, AUTHOR);
  second.update(at(9), [seen(0)]);
  second.update(at(10), [seen(0, { stage: 'live', percent: 1 })]);
  assert.deepEqual(second.of('w')!.unsupported, {
    lmpop: { lacks: 'target', calls: 3, first: at(1).toISOString(), last: at(2).toISOString() },
  });
  second.update(at(11), [seen(0, { stage: 'live', percent: 1, ...calls(1) })]);
  assert.deepEqual(second.of('w')!.unsupported.lmpop, {
    lacks: 'target',
    calls: 4,
    first: at(1).toISOString(),
    last: at(11).toISOString(),
  });
});

test('the evidence of another stage starts from zero; what was verified and rehearsed stays', (t) => {
  const book = new EvidenceBook(scratch(t), AUTHOR);
  book.update(at(0), [seen(50)]);
  book.drilled('w', { at: 'then', percent: 1, heldMs: 2 });
  book.update(at(5), [seen(60, { stage: 'live', percent: 10 })]);
  const { compared, since, minutes, drill } = book.of('w')!;
  assert.deepEqual(
    [compared, since, minutes, drill],
    [10, at(5).toISOString(), 1, { at: 'then', percent: 1, heldMs: 2 }],
  );
});

test('a rehearsed rollback takes nothing of the evidence, and what it saw counts', (t) => {
  const book = new EvidenceBook(scratch(t), AUTHOR);
  book.update(at(0), [seen(50)]);
  book.drilling('w', true);
  book.update(at(1), [seen(60, { stage: 'live', percent: 1, mismatches: new Map([['value', 1]]) })]);
  book.update(at(2), [seen(70, { mismatches: new Map([['value', 1]]) })]);
  book.drilling('w', false);
  const { stage, compared, since, mismatches } = book.of('w')!;
  assert.deepEqual([stage, compared, since, mismatches], ['shadow', 70, at(0).toISOString(), { value: 1 }]);
  // Evidence starts from zero if the rehearsal did not return to the stage.
  book.drilling('w', true);
  book.drilling('w', false);
  book.update(at(3), [seen(80, { stage: 'live', percent: 1 })]);
  assert.equal(book.of('w')!.compared, 10);
});

test('a file that cannot be used makes less of it, says so, and stops nothing', (t) => {
  const directory = scratch(t);
  const file = join(directory, 'evidence.json');
  const first = new EvidenceBook(directory, { process: 'p1', before: null });
  first.update(at(0), [seen(1_000_000)]);
  first.save();
  const good = readFileSync(file, 'utf8');
  const open = (text: string, before = 'p1'): [number, string | null] => {
    writeFileSync(file, text);
    const book = new EvidenceBook(directory, { process: 'p3', before });
    book.update(at(0), [seen(5)]);
    return [book.of('w')!.compared, book.problem?.replace(/^.*used: /, '') ?? null];
  };
  assert.deepEqual(open(good), [1_000_005, null]);
  assert.deepEqual(open(good.replace('1000000', '9000000')), [
    5,
    'its checksum does not match: it was damaged, or changed by hand',
  ]);
  assert.match(open(good.slice(0, -10)).join(), /^5,it is not JSON/);
  assert.deepEqual(open('{"version":1,"workloads":{},"latencies":[]}'), [5, 'it has no checksum']);
  // One that an operator put back from a copy, while another process had served.
  assert.deepEqual(open(good, 'p2'), [5, 'it is an older copy, not that of the process that served last']);
});

test('what closes a gate outlives a sudden end: a mismatch is to be written at once, and writes that bypass the proxy are kept', (t) => {
  const directory = scratch(t);
  const mismatches = (count: number) => ({ mismatches: new Map([['value', count]]) });
  const book = new EvidenceBook(directory, AUTHOR);
  assert.equal(book.passed, null);
  assert.deepEqual(
    [mismatches(0), mismatches(1), mismatches(1), mismatches(2)].map((more) => book.update(at(0), [seen(1, more)])),
    [false, true, false, true],
  );
  book.bypassed({ at: 'then', writes: { set: 2 } });
  book.save();
  assert.deepEqual(new EvidenceBook(directory, AUTHOR).passed, { at: 'then', writes: { set: 2 } });
});
