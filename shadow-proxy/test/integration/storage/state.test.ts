/**
 * The durable state on a real disk: saved, full, refused, read by another process.
 *
 * Needs real files: a disk that is full, files that are cut or missing, and folders that cannot be made.
 */
import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { describeEvent } from '../../../src/storage/history.js';
import { readJournal } from '../../../src/storage/journal-reader.js';
import { seal, unseal } from '../../../src/storage/sealed.js';
import { resolveStages, StateError, StateStore, type ShardState } from '../../../src/storage/state.js';
import { scratch, smallPlan, toPlan } from '../../support/plans.js';
import { fillDisk, freeDisk, smallDisk } from '../../support/disk.js';

const read = (directory: string): ShardState =>
  JSON.parse(readFileSync(join(directory, 'cache-0', 'state.json'), 'utf8')) as ShardState;
const history = (directory: string): Record<string, unknown>[] =>
  readFileSync(join(directory, 'cache-0', 'history.jsonl'), 'utf8')
    .trim()
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Record<string, unknown>);

const SEEN = { runId: 'abc', replId: 'f0', version: '7.0.15', seenAt: '2026-01-01T00:00:00.000Z' };

describe('the durable state', () => {
  test('of a shard that never ran is empty, and is not written by reading it', async (t) => {
    const directory = scratch(t);
    const store = await StateStore.open(directory, 'cache-0');
    assert.equal(store.previous, null);
    assert.deepEqual(store.current.workloads, {});
    assert.equal(store.current.cleanShutdown, true, 'nothing was on its way');
    assert.deepEqual(readdirSync(join(directory, 'cache-0')), []);
  });

  test('survives the process, with a line of history for each change that has one', async (t) => {
    const directory = scratch(t);
    const store = await StateStore.open(directory, 'cache-0');
    await store.update(
      { workloads: { sessions: { stage: 'live', percent: 10 } } },
      { event: 'stage', workload: 'sessions' },
    );
    await store.update({ source: SEEN, cleanShutdown: false });
    assert.deepEqual(readdirSync(join(directory, 'cache-0')).sort(), ['history.jsonl', 'reserve', 'state.json']);

    const next = await StateStore.open(directory, 'cache-0');
    assert.deepEqual(next.previous, store.current);
    assert.deepEqual(next.current, {
      version: 2,
      revision: 2,
      shard: 'cache-0',
      workloads: { sessions: { stage: 'live', percent: 10 } },
      routing: [],
      owns: null,
      served: null,
      perRegion: [],
      admitted: {},
      acceptedReleases: [],
      fence: null,
      holds: {},
      source: SEEN,
      target: null,
      targetAheadMs: null,
      cleanShutdown: false,
      journal: null,
      owner: null,
    });
    const [line, ...others] = history(directory);
    assert.deepEqual([line.event, line.workload, others], ['stage', 'sessions', []]);
    assert.ok(Date.parse(String(line.time)) > 0);
  });

  test('is written on a disk that is full, and then has its reserve again when there is room', async (t) => {
    const disk = smallDisk(t, '2m');
    if (disk === null) return;
    const store = await StateStore.open(disk, 'cache-0');
    await store.update({ workloads: { sessions: { stage: 'live', percent: 100 } } }, { event: 'live' });
    fillDisk(disk);
    await store.update({ workloads: { sessions: { stage: 'shadow', percent: 100 } } }, { event: 'back' });
    assert.equal(read(disk).workloads.sessions.stage, 'shadow');
    assert.deepEqual(
      history(disk).map(({ event }) => event),
      ['live', 'back'],
    );
    freeDisk(disk);
    await store.update({}, { event: 'room' });
    assert.ok(readdirSync(join(disk, 'cache-0')).includes('reserve'));
  });

  test('takes changes one after the other, each on top of the one before', async (t) => {
    const directory = scratch(t);
    const store = await StateStore.open(directory, 'cache-0');
    const names = Array.from({ length: 20 }, (_, i) => `w${i}`);
    await Promise.all(
      names.map((name) =>
        store.update(({ workloads }) => ({ workloads: { ...workloads, [name]: { stage: 'off', percent: 100 } } }), {
          event: name,
        }),
      ),
    );
    assert.deepEqual(Object.keys(read(directory).workloads), names);
    assert.deepEqual(
      history(directory).map(({ event }) => event),
      names,
    );
  });

  test('keeps what it had where the disk refuses, says so, and goes on when it can', async (t) => {
    const directory = scratch(t);
    const store = await StateStore.open(directory, 'cache-0');
    await store.update({ cleanShutdown: false });
    const blocked = join(directory, 'cache-0', 'state.json.tmp');
    mkdirSync(blocked);
    await assert.rejects(
      store.update({ cleanShutdown: true }),
      (error) => error instanceof StateError && error.code === 'state-io',
    );
    assert.equal(store.current.cleanShutdown, false);
    assert.equal(read(directory).cleanShutdown, false);
    rmSync(blocked, { recursive: true });
    await store.update({ target: SEEN });
    assert.deepEqual([read(directory).cleanShutdown, read(directory).target], [false, SEEN]);
  });

  test('is whole at every moment, whatever is written', async (t) => {
    const directory = scratch(t);
    const store = await StateStore.open(directory, 'cache-0');
    await store.update({});
    let done = false;
    const writing = (async () => {
      for (let i = 0; i < 100; i++)
        await store.update({ source: { ...SEEN, runId: String(i).repeat(1 + (i % 50) * 20) } });
      done = true;
    })();
    let reads = 0;
    while (!done) {
      assert.equal((unseal(readFileSync(join(directory, 'cache-0', 'state.json'), 'utf8')) as ShardState).version, 2);
      reads++;
      await new Promise((resolve) => setImmediate(resolve));
    }
    await writing;
    assert.ok(reads > 10);
  });
});

describe('the history', () => {
  test('reports a line that cannot be read, and goes on after a line that was cut', async (t) => {
    const directory = scratch(t);
    const file = join(directory, 'cache-0', 'history.jsonl');
    const store = await StateStore.open(directory, 'cache-0');
    await store.update({}, { event: 'first' });
    await store.update({}, { event: 'second' });
    writeFileSync(file, readFileSync(file, 'utf8').replace('"second"', 'second') + '{"event":"thi');
    assert.deepEqual(
      (await store.history(9)).map(({ event, line }) => [event, line]),
      [
        ['first', undefined],
        ['unreadable', 2],
      ],
    );
    await store.update({}, { event: 'fourth' });
    assert.deepEqual(
      (await store.history(9)).map(({ event }) => event),
      ['first', 'unreadable', 'unreadable', 'fourth'],
    );
    assert.equal(describeEvent((await store.history(9))[1]), 'line 2 of the history cannot be read');
  });
});

test('the history has no passwords, whatever release wrote it', async (t) => {
  const directory = scratch(t);
  const file = join(directory, 'cache-0', 'history.jsonl');
  const store = await StateStore.open(directory, 'cache-0');
  await store.update(
    {},
    { event: 'runbook', step: 'a', command: 'redis-cli -a s3cret PING', more: [{ url: 'redis://u:s3cret@h:1' }] },
  );
  assert.doesNotMatch(readFileSync(file, 'utf8'), /s3cret/);
  // A line of a release that did not remove passwords.
  writeFileSync(file, `${readFileSync(file, 'utf8')}{"event":"runbook","command":"AUTH s3cret"}\n`);
  assert.deepEqual(
    (await store.history(9)).map(({ command }) => command),
    ['redis-cli -a *** PING', 'AUTH ***'],
  );
});

describe('a state of the release before checksums', () => {
  test('is read, and its journal is not believed', async (t) => {
    const directory = scratch(t);
    mkdirSync(join(directory, 'cache-0'));
    const before = {
      version: 1,
      shard: 'cache-0',
      workloads: { s: { stage: 'live', percent: 10 } },
      routing: [],
      source: null,
      target: null,
      cleanShutdown: false,
    };
    writeFileSync(join(directory, 'cache-0', 'state.json'), JSON.stringify(before));
    const { previous } = await StateStore.open(directory, 'cache-0');
    assert.deepEqual([previous!.workloads, previous!.journal], [before.workloads, null]);
    for (const name of ['journal-a', 'journal-b']) writeFileSync(join(directory, 'cache-0', name), '');
    assert.match(readJournal(join(directory, 'cache-0'), previous).everything!, /or of an earlier release/);
    assert.equal(readJournal(join(directory, 'cache-0'), { ...previous!, cleanShutdown: true }).everything, null);
  });
});

describe('a state that cannot be trusted stops the shard, and says what to do:', () => {
  const valid = {
    version: 2,
    revision: 7,
    shard: 'cache-0',
    workloads: { s: { stage: 'live', percent: 10 } },
    routing: [],
    source: null,
    target: null,
    cleanShutdown: true,
    journal: null,
  };
  for (const [name, text, code, expected] of [
    [
      'cut off',
      seal(valid).slice(0, 40),
      'state-corrupt',
      /state\.json is damaged: it is not JSON: .*Restore it from a copy.*move .*cache-0 away/s,
    ],
    ['empty', '', 'state-corrupt', /it is not JSON/],
    [
      'with one letter changed',
      seal(valid).replace('"percent":10', '"percent":90'),
      'state-corrupt',
      /its checksum does not match: it was damaged, or changed by hand/,
    ],
    ['without a checksum', JSON.stringify(valid), 'state-corrupt', /it has no checksum/],
    ['of another shard', seal({ ...valid, shard: 'b' }), 'state-corrupt', /is the state of shard b, not of cache-0/],
    [
      'with an unknown stage',
      seal({ ...valid, workloads: { s: { stage: 'lives', percent: 1 } } }),
      'state-corrupt',
      /damaged at workloads\.s\.stage/,
    ],
    ['without a field', seal({ ...valid, routing: undefined }), 'state-corrupt', /damaged at routing/],
    [
      'of a later release',
      JSON.stringify({ ...valid, version: 3, more: 1 }),
      'state-version',
      /has version 3, and this proxy reads 2/,
    ],
    ['null', 'null', 'state-corrupt', /it has no checksum/],
  ] as const) {
    test(name, async (t) => {
      const directory = scratch(t);
      mkdirSync(join(directory, 'cache-0'));
      const file = join(directory, 'cache-0', 'state.json');
      writeFileSync(file, text);
      await assert.rejects(StateStore.open(directory, 'cache-0'), (error) => {
        assert.ok(error instanceof StateError);
        assert.equal(error.code, code);
        assert.match(error.message, expected);
        return true;
      });
      assert.equal(readFileSync(file, 'utf8'), text, 'it is left as it is');
    });
  }

  test('missing, while its history exists', async (t) => {
    const directory = scratch(t);
    const store = await StateStore.open(directory, 'cache-0');
    await store.update({}, { event: 'plan' });
    rmSync(join(directory, 'cache-0', 'state.json'));
    await assert.rejects(StateStore.open(directory, 'cache-0'), { code: 'state-missing' });
  });

  test('missing, while a journal exists', async (t) => {
    const directory = scratch(t);
    mkdirSync(join(directory, 'cache-0'));
    writeFileSync(join(directory, 'cache-0', 'journal-a'), '');
    await assert.rejects(
      StateStore.open(directory, 'cache-0'),
      (error) =>
        error instanceof StateError && error.code === 'state-missing' && /its folder has journal-a/.test(error.message),
    );
  });

  test('older than the history in the same folder', async (t) => {
    const directory = scratch(t);
    const file = join(directory, 'cache-0', 'state.json');
    const store = await StateStore.open(directory, 'cache-0');
    await store.update({ workloads: { s: { stage: 'shadow', percent: 100 } } }, { event: 'owner', process: 'p1' });
    const backup = readFileSync(file);
    await store.update(
      { workloads: { s: { stage: 'complete', percent: 100 } } },
      { event: 'accept', servers: ['source'] },
    );
    writeFileSync(file, backup);
    await assert.rejects(StateStore.open(directory, 'cache-0'), (error) => {
      assert.ok(error instanceof StateError);
      assert.equal(error.code, 'state-old');
      assert.match(
        error.message,
        /whose last change it lacks \(20.*: data accepted as it is: source\)\. Restore the newest copy/,
      );
      return true;
    });
    // As the message says: where the operator knows that its stages are the right ones.
    rmSync(join(directory, 'cache-0', 'history.jsonl'));
    assert.equal((await StateStore.open(directory, 'cache-0')).current.workloads.s.stage, 'shadow');
  });

  test(
    'a directory that cannot be made',
    { skip: process.getuid?.() === 0 && 'root may write anywhere' },
    async (t) => {
      const directory = scratch(t);
      chmodSync(directory, 0o500);
      await assert.rejects(StateStore.open(directory, 'cache-0'), { code: 'state-io' });
    },
  );

  test('a file where the directory should be', async (t) => {
    const directory = scratch(t, { 'cache-0': '' });
    await assert.rejects(
      StateStore.open(directory, 'cache-0'),
      (error) => error instanceof StateError && /Set `state` to a directory/.test(error.message),
    );
  });
});

describe('state beats plan:', () => {
  const plan = toPlan({
    ...smallPlan(),
    workloads: [
      { name: 'sessions', keys: ['session:*'], stage: 'shadow' },
      { name: 'rl', keys: ['rl:*'] },
    ],
  });
  const state = (change: Partial<ShardState>): ShardState => ({
    version: 2,
    fence: null,
    targetAheadMs: null,
    revision: 1,
    shard: 'a',
    workloads: {
      sessions: { stage: 'live', percent: 10 },
      rl: { stage: 'off', percent: 100 },
      default: { stage: 'off', percent: 100 },
    },
    routing: [
      ['session:*', 'sessions'],
      ['rl:*', 'rl'],
    ],
    perRegion: [],
    admitted: {},
    acceptedReleases: [],
    holds: {},
    owns: null,
    served: null,
    source: null,
    target: null,
    cleanShutdown: true,
    journal: null,
    owner: null,
    ...change,
  });

  test('the plan’s stages hold on the very first start', () => {
    const { stages, notices, problems } = resolveStages(plan, state({ workloads: {}, routing: [] }));
    assert.deepEqual(stages, {
      sessions: { stage: 'shadow', percent: 100 },
      rl: { stage: 'off', percent: 100 },
      default: { stage: 'off', percent: 100 },
    });
    assert.deepEqual([notices, problems], [[], []]);
  });

  test('afterwards the state’s do, and the difference is reported', () => {
    const { stages, notices, problems } = resolveStages(plan, state({}));
    assert.deepEqual(stages.sessions, { stage: 'live', percent: 10 });
    assert.deepEqual(notices, [
      "workload sessions is in live 10 %; the plan's shadow was only the first stage, and is ignored",
    ]);
    assert.deepEqual(problems, []);
  });

  test('a plan whose patterns changed between two starts is checked like a reload', () => {
    const { problems } = resolveStages(
      plan,
      state({
        routing: [['session:*', 'sessions']],
        workloads: { sessions: { stage: 'live', percent: 10 }, default: { stage: 'shadow', percent: 100 } },
      }),
    );
    assert.equal(problems.length, 1);
    assert.match(problems[0], /keys of rl:\* could move from workload default \(shadow\) to rl \(off\)/);
  });

  test('the stage of a removed workload is dropped', () => {
    const { stages } = resolveStages(
      plan,
      state({ workloads: { ...state({}).workloads, removed: { stage: 'complete', percent: 100 } } }),
    );
    assert.deepEqual(Object.keys(stages), ['sessions', 'rl', 'default']);
  });
});
