/** The table of servers that `assess` prints. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { InstanceFacts } from '../../../src/assess/instance-facts.js';
import { serverTable } from '../../../src/cli/assess/render.js';

const facts = (changes: Partial<InstanceFacts>): InstanceFacts =>
  ({
    label: 'redis://127.0.0.1:6379',
    version: '7.0.15',
    opsPerSecond: 12_345,
    cpu: 0.456,
    clients: { connected: 12 },
    memory: { used: 5 * 2 ** 20 },
    databases: new Map([[0, 1_000]]),
    ping: { p50: 0.161, p99: 0.949 },
    ...changes,
  }) as InstanceFacts;

test('the table of the servers fits 80 columns, however long a name and however large a figure is', () => {
  const table = serverTable([
    facts({}),
    facts({
      label: 'redis+sentinel://sentinel-1.internal:26379,sentinel-2.internal:26379/mymaster',
      version: '255.255.255',
      opsPerSecond: 1_234_567,
      cpu: null,
      clients: { ...facts({}).clients, connected: 65_000 },
      memory: { ...facts({}).memory, used: 900 * 2 ** 30 },
      databases: new Map([
        [0, 2_000_000_000],
        [1, 999_999_999],
      ]),
      ping: { ...facts({}).ping, p50: 1234.5, p99: 9876.5 },
    }),
  ]);
  const lines = table.split('\n');
  assert.deepEqual(
    lines.filter((line) => [...line].length > 80),
    [],
  );
  assert.match(table, /^127\.0\.0\.1:6379 +7\.0\.15 +12,345 +46 % +12 +5 MiB +1,000 0\.16 \/ 0\.95$/m);
  assert.match(table, / 1\.2M +– +65,000 900\.0 GiB +3B 1235 \/ 9877/);
  assert.ok(
    lines
      .map((line) => line.slice(0, 19).trim())
      .join('')
      .includes('sentinel-2.internal:26379/mymaster'),
    table,
  );
});
