/** What a rehearsal concludes from the output of playbooks and from the keys that it wrote. */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import { changedOf, changedTasks } from '../playbooks.js';
import { HOSTS, writeScene } from '../scene.js';
import { Timeline } from '../timeline.js';
import { KINDS, put, seeded, step, valueOf, KEYS } from '../traffic/model.js';

const OUTPUT = `PLAY [KeyDB] ****
TASK [keydb : Write the unit] ****
ok: [keydb-0-2]
changed: [keydb-0-1]

TASK [keydb : Start KeyDB] ****
ok: [keydb-0-1]

RUNNING HANDLER [keydb : Load the users] ****
changed: [keydb-0-1] => (item=x)

PLAY RECAP ****
keydb-0-1                  : ok=42   changed=2    unreachable=0    failed=0
keydb-0-2                  : ok=42   changed=0    unreachable=0    failed=0
`;

test('what a playbook changed is read from its recap and its tasks', () => {
  assert.deepEqual(changedOf(OUTPUT), { 'keydb-0-1': 2, 'keydb-0-2': 0 });
  assert.deepEqual(changedTasks(OUTPUT), ['keydb : Write the unit', 'keydb : Load the users']);
});

test('a rehearsal holds only where something was checked and nothing failed', () => {
  const timeline = new Timeline(() => undefined);
  assert.equal(timeline.holds, false);
  timeline.check('a', true, '');
  assert.equal(timeline.holds, true);
  timeline.check('b', false, 'why');
  assert.equal(timeline.holds, false);
  assert.match(timeline.verdict(), /does NOT hold: 1 of 2 checks .*\n {2}b: why/);
});

test('valueOf returns the value that was written to the key, and null for any other reply', () => {
  const replies = { session: ['u3', '41'], rl: '41', board: ['first', '41', 'second', '42'], misc: 'text-41' } as const;
  for (const kind of KINDS) assert.equal(valueOf(kind, 3, replies[kind]), 41, kind);
  assert.equal(valueOf('session', 4, replies.session), null, 'the value of another key');
  assert.equal(valueOf('board', 3, ['first', '41', 'second', '41']), null, 'half a write');
  assert.equal(valueOf('rl', 3, null), null, 'a key that is gone');
  assert.deepEqual(step('rl', 3, 40), ['INCR', 'rl:3']);
  assert.deepEqual(step('misc', 3, 40), put('misc', 3, 41));
  assert.equal(Object.keys(seeded()).length, KEYS * KINDS.length);
});

interface Inventory {
  readonly all: {
    readonly vars: Readonly<Record<string, Readonly<Record<string, object>>>>;
    readonly children: Readonly<Record<string, { readonly hosts?: Readonly<Record<string, object>> }>>;
  };
}

test("the inventory has the shape of Terraform's", (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'rehearsal-'));
  t.after(() => rmSync(directory, { recursive: true }));
  const hosts = HOSTS.map((name, index) => ({ name, index, address: `10.0.0.${index}` }));
  const program = fileURLToPath(import.meta.url);
  const { inventory } = writeScene(
    directory,
    hosts,
    { key: 'id', options: [] },
    { keydb: program, node: program, archive: 'kit.tar.gz' },
  );
  const ours = (parse(readFileSync(inventory, 'utf8')) as Inventory).all;
  const theirs = (
    JSON.parse(
      readFileSync(new URL('../../../../terraform/examples/complete/tests/inventory.json', import.meta.url), 'utf8'),
    ) as Inventory
  ).all;
  const keysOf = (of: object): string[] => Object.keys(of).sort();
  assert.deepEqual(keysOf(ours.vars.infra_ports), keysOf(theirs.vars.infra_ports));
  for (const table of ['infra_targets', 'infra_sources']) {
    const [[mine], [wanted]] = [ours, theirs].map(({ vars }) => Object.values(vars[table]).map(keysOf));
    assert.deepEqual(
      mine.filter((key) => !wanted.includes(key)),
      [],
      table,
    );
  }
  for (const [group, { hosts: named = {} }] of Object.entries(theirs.children)) {
    const wanted = new Set(Object.values(named).flatMap(keysOf));
    const mine = Object.values(ours.children[group].hosts ?? {}).flatMap((host) => keysOf(host));
    assert.deepEqual(
      mine.filter((key) => !wanted.has(key)),
      [],
      group,
    );
  }
});
