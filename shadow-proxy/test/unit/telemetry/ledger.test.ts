/** The ledger of differences: what it shows, and what it hides. */
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { readLatest } from '../../../src/telemetry/ledger-tail.js';
import {
  firstDifference,
  Ledger,
  type LedgerEntry,
  type LedgerOptions,
  type Mismatch,
} from '../../../src/telemetry/ledger.js';
import { scratch } from '../../support/plans.js';

const HASH_KEY = Buffer.alloc(32, 1);

const mismatch = (change: Partial<Mismatch> = {}): Mismatch => ({
  workload: 'sessions',
  command: 'GET',
  key: Buffer.from('session:42'),
  pattern: 'session:*',
  db: 0,
  kind: 'value',
  authority: 'source',
  source: Buffer.from('$6\r\nsecret\r\n'),
  target: Buffer.from('$6\r\nSECRET\r\n'),
  ...change,
});

const open = (file: string | null, options: Partial<LedgerOptions> = {}): Ledger =>
  new Ledger({ shard: 'cache-0', file, hashKey: HASH_KEY, ...options });
const read = (file: string): LedgerEntry[] =>
  readFileSync(file, 'utf8')
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as LedgerEntry);

describe('the ledger', () => {
  test('writes what differed, and neither key nor replies', async (t) => {
    const file = join(scratch(t), 'deep', 'ledger.jsonl');
    const ledger = open(file);
    ledger.record(mismatch());
    await ledger.close();
    const text = readFileSync(file, 'utf8');
    assert.doesNotMatch(text, /secret|SECRET|session:42/);
    const [entry] = read(file);
    const { time, source, target, ...rest } = entry;
    assert.ok(Math.abs(Date.parse(time) - Date.now()) < 60_000);
    assert.deepEqual(rest, {
      shard: 'cache-0',
      workload: 'sessions',
      command: 'GET',
      db: 0,
      kind: 'value',
      authority: 'source',
      pattern: 'session:*',
      key: { hash: createHmac('sha256', HASH_KEY).update('session:42').digest('hex').slice(0, 16), bytes: 10 },
      differsAt: 4,
    });
    assert.deepEqual([source.type, source.bytes, target.bytes], ['$', 12, 12]);
    assert.notEqual(source.hash, target.hash);
    assert.equal(statSync(file).mode & 0o077, 0, 'nobody else may read it');
  });

  test('shows equal replies by their hash, which another process cannot look up', () => {
    const hashes = (ledger: Ledger): string[] => {
      ledger.record(mismatch({ target: mismatch().source }));
      const [entry] = ledger.latest();
      assert.equal(entry.differsAt, -1);
      return [entry.source.hash, entry.target.hash];
    };
    const [a, b] = [hashes(open(null)), hashes(open(null))];
    assert.equal(a[0], a[1]);
    assert.notEqual(a[0], b[0]);
  });

  test('shows key and replies in full where redaction is off', () => {
    const ledger = open(null, { redact: false });
    ledger.record(mismatch({ key: Buffer.from([0x6b, 0xff, 0x5c]) }));
    const [entry] = ledger.latest();
    assert.equal(entry.key?.text, 'k\\xff\\\\');
    assert.equal(entry.source.reply, '$6\\x0d\\x0asecret\\x0d\\x0a');
  });

  test('takes a command without a key', () => {
    const ledger = open(null);
    ledger.record(mismatch({ key: null }));
    assert.equal(ledger.latest()[0].key, null);
  });

  test('keeps the last twenty in memory', () => {
    const ledger = open(null);
    for (let db = 0; db < 30; db++) ledger.record(mismatch({ db }));
    assert.deepEqual(
      ledger.latest().map(({ db }) => db),
      Array.from({ length: 20 }, (_, i) => i + 10),
    );
    assert.deepEqual([ledger.total, ledger.notWritten], [30, 0]);
  });

  test('has no line that is older than it keeps them, in no file, from its start on', async (t) => {
    const directory = scratch(t);
    const file = join(directory, 'ledger.jsonl');
    const line = (days: number): string =>
      `${JSON.stringify({ time: new Date(Date.now() - days * 86_400_000).toISOString(), db: days })}\n`;
    writeFileSync(`${file}.2`, line(50));
    utimesSync(`${file}.2`, 1, Date.now() / 1000 - 50 * 86_400);
    writeFileSync(`${file}.1`, line(40) + line(35));
    writeFileSync(file, line(31) + 'a line that cannot be read\n' + line(8) + line(6) + 'another\n');
    const copy = line(99);
    writeFileSync(`${file}.copy`, copy);
    const ledger = open(file, { keepDays: 7 });
    ledger.record(mismatch({ db: 0 }));
    await ledger.close();
    assert.deepEqual(
      readFileSync(file, 'utf8')
        .split('\n')
        .map((text) => /"db":(\d+)/.exec(text)?.[1] ?? text),
      ['6', 'another', '0', ''],
    );
    assert.deepEqual([existsSync(`${file}.1`), existsSync(`${file}.2`)], [false, false]);
    assert.equal(readFileSync(`${file}.copy`, 'utf8'), copy, 'what is not of the ledger stays');
  });

  test('goes on in the file of the process before it', async (t) => {
    const file = join(scratch(t), 'ledger.jsonl');
    for (const db of [1, 2]) {
      const ledger = open(file);
      ledger.record(mismatch({ db }));
      await ledger.close();
    }
    assert.deepEqual(
      read(file).map(({ db }) => db),
      [1, 2],
    );
  });

  test('returns its last entries without keys and replies, whatever the files hold, over restarts and rotations', async (t) => {
    const file = join(scratch(t), 'ledger.jsonl');
    const before = open(file, { redact: false, maxBytes: 2_500, files: 3 });
    for (let db = 0; db < 12; db++) {
      before.record(mismatch({ db }));
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    await before.close();
    assert.match(readFileSync(file, 'utf8') + readFileSync(`${file}.1`, 'utf8'), /session:42.*secret/);
    const after = open(file, { redact: false });
    after.record(mismatch({ db: 12 }));
    const { latest, total, notWritten } = after.tail();
    await after.close();
    assert.deepEqual([total, notWritten], [1, 0]);
    assert.deepEqual(latest.map(({ db }) => db).slice(-8), [5, 6, 7, 8, 9, 10, 11, 12]);
    assert.doesNotMatch(JSON.stringify(latest), /session:42|secret/i);
    assert.deepEqual(readLatest(join(scratch(t), 'nowhere'), 20), []);
  });
});

describe('the ledger is bounded:', () => {
  test('files are rotated, lines stay whole, and the oldest go', async (t) => {
    const directory = scratch(t);
    const file = join(directory, 'ledger.jsonl');
    const ledger = open(file, { maxBytes: 4_000, files: 3, entriesPerSecond: 10_000 });
    for (let db = 0; db < 200; db++) {
      ledger.record(mismatch({ db }));
      if (db % 7 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    await ledger.close();
    assert.deepEqual(readdirSync(directory).sort(), ['ledger.jsonl', 'ledger.jsonl.1', 'ledger.jsonl.2']);
    const files = [`${file}.2`, `${file}.1`, file];
    for (const path of files) assert.ok(statSync(path).size <= 4_000, `${path} has ${statSync(path).size} bytes`);
    const kept = files.flatMap(read).map(({ db }) => db);
    assert.deepEqual(
      kept,
      Array.from({ length: kept.length }, (_, i) => 200 - kept.length + i),
    );
    assert.ok(kept.length > 15);
  });

  test('with one file, it starts over', async (t) => {
    const directory = scratch(t);
    const ledger = open(join(directory, 'l'), { maxBytes: 1_000, files: 1, entriesPerSecond: 1_000 });
    for (let db = 0; db < 20; db++) ledger.record(mismatch({ db }));
    await ledger.close();
    assert.deepEqual(readdirSync(directory), ['l']);
    assert.equal(read(join(directory, 'l')).at(-1)?.db, 19);
  });

  test('a flood is counted, and the next line says how many were left out', async (t) => {
    let now = 0;
    const file = join(scratch(t), 'ledger.jsonl');
    const ledger = open(file, { entriesPerSecond: 10, now: () => now });
    for (let i = 0; i < 1_000; i++) ledger.record(mismatch());
    assert.deepEqual([ledger.total, ledger.notWritten], [1_000, 980]);
    now += 1_000;
    ledger.record(mismatch({ command: 'AFTER' }));
    await ledger.close();
    const lines = read(file);
    assert.equal(lines.length, 21);
    assert.equal(lines.at(-1)?.leftOut, 980);
    assert.ok(lines.slice(0, -1).every((entry) => entry.leftOut === undefined));
  });

  test('a huge reply is recorded, and uses up the budget of the entries after it', () => {
    let now = 0;
    const ledger = open(null, { entriesPerSecond: 1, now: () => now });
    const huge = Buffer.alloc(10 * 1024 * 1024, 'x');
    ledger.record(mismatch({ source: huge, target: Buffer.concat([huge, Buffer.from('y')]) }));
    assert.equal(ledger.latest()[0].differsAt, huge.length);
    for (now = 0; now < 15_000; now += 1_000) ledger.record(mismatch());
    assert.equal(ledger.notWritten, 15);
    for (; now < 25_000; now += 1_000) ledger.record(mismatch());
    assert.ok(ledger.notWritten < 25);
  });

  test('a failing disk is reported once, counted, and tried again', async (t) => {
    const directory = scratch(t);
    const file = join(directory, 'ledger.jsonl');
    mkdirSync(file);
    const errors: string[] = [];
    const ledger = open(file, { onError: (error) => errors.push(error.message) });
    const settle = async (): Promise<void> => {
      for (let i = 0; i < 50; i++) await new Promise((resolve) => setTimeout(resolve, 2));
    };
    for (let i = 0; i < 3; i++) {
      ledger.record(mismatch());
      await settle();
    }
    assert.equal(errors.length, 1);
    assert.match(errors[0], /EISDIR/);
    assert.deepEqual([ledger.total, ledger.notWritten], [3, 3]);
    rmdirSync(file);
    ledger.record(mismatch());
    await ledger.close();
    assert.equal(read(file)[0].leftOut, 3);
  });

  test('after it was closed, it only counts', async (t) => {
    const file = join(scratch(t), 'ledger.jsonl');
    const ledger = open(file);
    await ledger.close();
    ledger.record(mismatch());
    await ledger.close();
    assert.deepEqual([ledger.total, ledger.notWritten, existsSync(file)], [1, 1, false]);
  });
});

test('the first difference is found, wherever it is', () => {
  assert.equal(firstDifference(Buffer.from('abc'), Buffer.from('abc')), -1);
  assert.equal(firstDifference(Buffer.from(''), Buffer.from('a')), 0);
  assert.equal(firstDifference(Buffer.from('abc'), Buffer.from('ab')), 2);
  fc.assert(
    fc.property(fc.nat(20_000), fc.nat(20_000), (length, at) => {
      const [a, b] = [Buffer.alloc(length, 1), Buffer.alloc(length, 1)];
      if (at < length) b[at] = 2;
      assert.equal(firstDifference(a, b), at < length ? at : -1);
    }),
  );
});

test('what waits for the disk is bounded: beyond 4 MiB, entries are counted and not kept', async (t) => {
  const file = join(scratch(t), 'ledger.jsonl');
  const ledger = open(file, { redact: false, entriesPerSecond: 1e6 });
  const long = mismatch({ source: Buffer.from(`$8000\r\n${'x'.repeat(8000)}\r\n`) });
  // In one turn, so that nothing is written meanwhile.
  let recorded = 0;
  for (; recorded < 20_000 && ledger.notWritten === 0; recorded++) ledger.record(long);
  const { notWritten } = ledger;
  await ledger.close();
  assert.equal(notWritten, 1);
  const waiting = statSync(file).size;
  assert.ok(waiting <= 4 * 1024 * 1024 + 1_000, `${waiting} bytes were kept`);
  assert.equal(read(file).length + notWritten, recorded);
});
