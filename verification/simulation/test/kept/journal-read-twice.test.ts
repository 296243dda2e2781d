/** A process that has lost the shard still writes its journal while the next one reads that. Real ones seldom do. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { useWorld } from '../../../../shadow-proxy/src/io/world.js';
import { Journal } from '../../../../shadow-proxy/src/storage/journal.js';
import { readLeftJournal, type JournalRecords } from '../../../../shadow-proxy/src/storage/journal-reader.js';
import type { Disk } from '../../world/disk.js';
import { WORLD } from '../../world/events.js';
import { SimulatedWorld } from '../../world/world.js';

const [ID, DIRECTORY] = ['0123456789abcdef', '/state'];
const FIRST = `${DIRECTORY}/journal-a`;
/** The system shows the second half of a write so much later. */
const HALF_MS = 50;
const ENOUGH_MS = 10_000;
const AT_ONCE = { then: (run: () => void) => run() } as Promise<void>;

/** What the next process reads of a journal that has a suspect. */
async function read(meanwhile: (world: SimulatedWorld, disk: Disk, journal: Journal) => void): Promise<JournalRecords> {
  const world = new SimulatedWorld(1, { delayMs: [0, 0], lateShare: 0, lateMs: 0, splitShare: 0 });
  const host = world.newHost('10.0.0.1');
  useWorld(world);
  world.events.current = world.newProcess('proxy', host);
  try {
    const journal: Journal = new Journal({
      ...{ directory: DIRECTORY, id: ID, before: null, failed: () => undefined },
      left: { keys: [], workloads: new Map(), everything: null },
      settle: () => AT_ONCE,
      carry: () => journal.noteKey(0, Buffer.from('suspect'), 0, 'suspect'.length),
    });
    journal.rotate();
    meanwhile(world, host.disk, journal);
    let records: JournalRecords | null = null;
    void readLeftJournal(DIRECTORY, { journal: ID, cleanShutdown: false }).then((found) => (records = found));
    assert.ok(await world.events.run(() => records !== null, ENOUGH_MS), 'it is read');
    return records!;
  } finally {
    useWorld(null);
  }
}

const contentOf = ({ keys, everything }: JournalRecords): unknown => [
  keys.map(({ key }) => key.toString()),
  everything,
];

test('A journal is read again that was rotated between the reads of its two files', async () => {
  const records = await read((_world, disk, journal) => {
    const readFile = disk.readFile.bind(disk);
    let isRotated = false;
    disk.readFile = (path, reader) => {
      const bytes = Buffer.from(readFile(path, reader));
      if (!isRotated && path === FIRST) {
        isRotated = true;
        journal.rotate();
      }
      return bytes;
    };
  });
  assert.deepEqual(contentOf(records), [['suspect'], null]);
});

test('A journal is read again that shows half of a write', async () => {
  const records = await read((world, disk, journal) => {
    journal.rotate();
    const whole = disk.readFile(FIRST);
    disk.damage(FIRST, (bytes) => bytes.fill(0, bytes.indexOf('suspect'), bytes.indexOf('suspect') + 4));
    world.events.after(HALF_MS, WORLD, () => disk.damage(FIRST, () => whole));
  });
  assert.deepEqual(contentOf(records), [['suspect'], null]);
});
