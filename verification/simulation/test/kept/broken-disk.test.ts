/** Found by `npm run simulate -- --profile disk`. No real disk refuses each write just when a test asks for it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { useWorld } from '../../../../shadow-proxy/src/io/world.js';
import { Journal } from '../../../../shadow-proxy/src/storage/journal.js';
import { readJournal, type JournalRecords } from '../../../../shadow-proxy/src/storage/journal-reader.js';
import { KeptWorld } from '../../kept/world.js';
import { SimulatedWorld } from '../../world/world.js';

const [ID, DIRECTORY] = ['0123456789abcdef', '/state'];
const NOTHING: JournalRecords = { keys: [], workloads: new Map(), everything: null };

interface Written {
  readonly journal: Journal;
  /** Keys that are suspect when the files take turns. */
  readonly suspects: string[];
  /** From now on each write fails, or none. */
  breakDisk(isBroken: boolean): void;
  /** What the next process reads. */
  left(): JournalRecords;
}

async function withJournal(body: (written: Written) => Promise<void>): Promise<void> {
  const world = new SimulatedWorld(1, { delayMs: [0, 0], lateShare: 0, lateMs: 0, splitShare: 0 });
  const host = world.newHost('10.0.0.1');
  useWorld(world);
  world.events.current = world.newProcess('proxy', host);
  const suspects: string[] = [];
  const journal: Journal = new Journal({
    ...{ directory: DIRECTORY, id: ID, before: null, left: NOTHING, failed: () => undefined },
    settle: () => Promise.resolve(),
    carry: () => suspects.forEach((name) => note(journal, name)),
  });
  try {
    await body({
      journal,
      suspects,
      breakDisk: (isBroken) => (host.disk.faults.errorShare = isBroken ? 1 : 0),
      left: () => readJournal(DIRECTORY, { journal: ID, cleanShutdown: false }),
    });
  } finally {
    useWorld(null);
  }
}

const note = (journal: Journal, name: string): void => journal.noteKey(0, Buffer.from(name), 0, name.length);
const namesOf = ({ keys }: JournalRecords): string[] => keys.map(({ key }) => key.toString());

test('A journal file that lists a suspect is kept while the other one cannot be written', () =>
  withJournal(async ({ journal, suspects, breakDisk, left }) => {
    suspects.push('suspect');
    note(journal, 'suspect');
    journal.flush();
    breakDisk(true);
    journal.rotate();
    await Promise.resolve();
    assert.deepEqual(namesOf(left()), ['suspect']);
  }));

test('A journal on a disk that takes no write at all leaves everything suspect, and is whole again afterwards', () =>
  withJournal(async ({ journal, breakDisk, left }) => {
    breakDisk(true);
    note(journal, 'lost');
    journal.flush();
    assert.match(left().everything!, /truncated/);

    breakDisk(false);
    note(journal, 'written');
    journal.flush();
    assert.deepEqual(namesOf(left()), ['written']);
    assert.match(left().everything!, /the disk was full/);

    journal.rotate();
    await Promise.resolve();
    assert.deepEqual(left(), { keys: [], workloads: new Map(), everything: null });
  }));

test('A proxy that cannot save that all is confirmed drains, and says that it is not', () =>
  KeptWorld.run(async (kept) => {
    let drained: boolean | null = null;
    kept.proxy.host.disk.faults.errorShare = 1;
    kept.proxy.within(({ shard }) => void shard.drain(1_000).then((isClean) => (drained = isClean)));
    await kept.until(() => drained !== null, 'it has drained');
    assert.equal(drained, false);
  }));
