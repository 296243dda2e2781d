/** Evidence adds up over processes, and begins anew with a stage. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { EvidenceBook, type Seen } from '../../src/record/evidence.js';
import { scratch } from '../plan/plans.js';

const seen = (compared: number, changes: Partial<Seen> = {}): Seen => ({ name: 'w', stage: 'shadow', percent: 100, compared, explained: new Map(), mismatches: new Map(), inconclusive: 0, ...changes });
const at = (minute: number): Date => new Date(Date.UTC(2026, 0, 1, 10, minute));

test('totals of several processes add up, minutes and hours count once', (t) => {
  const directory = scratch(t);
  const first = new EvidenceBook(directory);
  first.look(at(0), [seen(10, { explained: new Map([['unordered', 4]]) })]);
  first.look(at(0), [seen(15, { explained: new Map([['unordered', 5]]), mismatches: new Map([['value', 1]]), inconclusive: 2 })]);
  first.look(at(1), [seen(15, { explained: new Map([['unordered', 5]]), mismatches: new Map([['value', 1]]), inconclusive: 2 })]);
  first.look(at(70), [seen(20, { explained: new Map([['unordered', 5]]), mismatches: new Map([['value', 1]]), inconclusive: 2 })]);
  first.verified('w', { endedAt: 'then', keys: 3, differences: 0, failed: 0, unsure: 0 });
  first.save();
  const second = new EvidenceBook(directory);
  second.look(at(71), [seen(100)]);
  assert.deepEqual(second.of('w'), {
    stage: 'shadow',
    percent: 100,
    since: at(0).toISOString(),
    compared: 120,
    explained: { unordered: 5 },
    mismatches: { value: 1 },
    inconclusive: 2,
    minutes: 3,
    hours: [10, 11],
    verified: { endedAt: 'then', keys: 3, differences: 0, failed: 0, unsure: 0 },
    drill: null,
  });
});

test('another stage begins anew; what was verified and rehearsed stays', (t) => {
  const book = new EvidenceBook(scratch(t));
  book.look(at(0), [seen(50)]);
  book.drilled('w', { at: 'then', percent: 1, heldMs: 2 });
  book.look(at(5), [seen(60, { stage: 'live', percent: 10 })]);
  const { compared, since, minutes, drill } = book.of('w')!;
  assert.deepEqual([compared, since, minutes, drill], [10, at(5).toISOString(), 1, { at: 'then', percent: 1, heldMs: 2 }]);
});

test('a rehearsed rollback takes nothing of the evidence, and what it saw counts', (t) => {
  const book = new EvidenceBook(scratch(t));
  book.look(at(0), [seen(50)]);
  book.drilling('w', true);
  book.look(at(1), [seen(60, { stage: 'live', percent: 1, mismatches: new Map([['value', 1]]) })]);
  book.look(at(2), [seen(70, { mismatches: new Map([['value', 1]]) })]);
  book.drilling('w', false);
  const { stage, compared, since, mismatches } = book.of('w')!;
  assert.deepEqual([stage, compared, since, mismatches], ['shadow', 70, at(0).toISOString(), { value: 1 }]);
  // One that did not come back begins anew.
  book.drilling('w', true);
  book.drilling('w', false);
  book.look(at(3), [seen(80, { stage: 'live', percent: 1 })]);
  assert.equal(book.of('w')!.compared, 10);
});

test('a damaged file makes less of it, and stops nothing', (t) => {
  const directory = scratch(t);
  writeFileSync(join(directory, 'evidence.json'), '{"version":1,"workloads":{"w":{"compared":1e9');
  const book = new EvidenceBook(directory);
  book.look(at(0), [seen(5)]);
  assert.equal(book.of('w')!.compared, 5);
});
