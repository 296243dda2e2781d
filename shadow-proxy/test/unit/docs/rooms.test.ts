/** Each room of the house says what it is for, what may call it and what it may call; and its imports agree. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path/posix';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../../../..', import.meta.url));
const SRC = join(ROOT, 'shadow-proxy/src');
const ARROWS = 'arrows-of-';
const AFTER = 'every room after it';
const BEFORE = 'every room before it';
const NONE = 'no room';
/** Its parts are rooms of their own. */
const PARTED = 'copy';

interface Statement {
  readonly file: string;
  readonly room: string;
  readonly calledBy: readonly string[];
  readonly calls: readonly string[];
}

const { forbidden } = createRequire(import.meta.url)(join(ROOT, '.dependency-cruiser.cjs')) as {
  forbidden: readonly { readonly name: string }[];
};
/** In the order of the house. */
const ORDER = forbidden.flatMap(({ name }) => (name.startsWith(ARROWS) ? [name.slice(ARROWS.length)] : []));
const CODE = new Map(
  readdirSync(SRC, { recursive: true, encoding: 'utf8' })
    .map((file) => file.replaceAll('\\', '/'))
    .filter((file) => /\.tsx?$/.test(file))
    .map((file) => [file, readFileSync(join(SRC, file), 'utf8')] as const),
);
const roomOf = (file: string): string =>
  file
    .split('/')
    .slice(0, file.startsWith(`${PARTED}/`) ? 2 : 1)
    .join('/');
const ROOMS = [...new Set([...CODE.keys()].filter((file) => file.includes('/')).map(roomOf))];

const listed = (text: string): string[] => text.replaceAll(/\s*\n \*\s+/g, ' ').split(', ');
const STATEMENTS: readonly Statement[] = [...CODE].flatMap(([file, code]) =>
  [...code.matchAll(/^ \* Room: ([\w/]+): [^.]+\.\n \* Called by: ([^.]+)\.\n \* Calls: ([^.]+)\.$/gm)].map(
    ([, room, calledBy, calls]) => ({ file, room: room!, calledBy: listed(calledBy!), calls: listed(calls!) }),
  ),
);
const of = (room: string): Statement => STATEMENTS.find((each) => each.room === room)!;
const place = (room: string): number => ORDER.indexOf(room.split('/')[0]!);
const names = (list: readonly string[], room: string): boolean =>
  list.includes(room) || list.includes(room.split('/')[0]!);

test('every room has one comment that says what it is for, its callers and what it calls, in its own folder', () => {
  assert.ok(ORDER.length > 20, `${ORDER.length} rooms in .dependency-cruiser.cjs`);
  assert.deepEqual(
    [...new Set(ROOMS.map((room) => room.split('/')[0]!))].sort(),
    [...ORDER].sort(),
    'folders of shadow-proxy/src and rooms of .dependency-cruiser.cjs',
  );
  // Whatever begins like such a comment is one, so that a slip in its form does not hide it.
  const begun = [...CODE].flatMap(([file, code]) => [...code.matchAll(/^ \* Room: ([\w/]+)/gm)].map(() => file));
  assert.deepEqual(begun.sort(), STATEMENTS.map(({ file }) => file).sort(), 'the form of the comment');
  assert.deepEqual(STATEMENTS.map(({ room }) => room).sort(), [...ROOMS].sort(), 'one comment for each room');
  for (const { file, room } of STATEMENTS) assert.equal(roomOf(file), room, file);
});

test('the lists of callers and of what is called name rooms, and agree with each other and with the import rules', () => {
  for (const { file, room, calledBy, calls } of STATEMENTS) {
    for (const other of [...calledBy, ...calls])
      assert.ok([...ORDER, ...ROOMS, AFTER, BEFORE, NONE].includes(other), `${file}: there is no room ${other}`);
    for (const other of calls.filter((each) => ![BEFORE, NONE].includes(each))) {
      assert.ok(
        place(other) < place(room) || other.startsWith(`${PARTED}/`),
        `${file}: ${other} stands after ${room} in .dependency-cruiser.cjs`,
      );
      for (const each of ROOMS.filter((name) => name === other || name.startsWith(`${other}/`)))
        assert.ok(
          of(each).calledBy.includes(AFTER) || names(of(each).calledBy, room) || other === PARTED,
          `${of(each).file}: add ${room} to "Called by", for ${file} may call it`,
        );
    }
    for (const other of calledBy.filter((each) => ![AFTER, NONE].includes(each)))
      for (const each of STATEMENTS.filter((one) => one.room === other))
        assert.ok(
          each.calls.includes(BEFORE) || names(each.calls, room),
          `${each.file}: add ${room} to "Calls", for ${file} says that it may be called from there`,
        );
  }
});

test('a room imports only rooms that it says it calls', () => {
  const all = [...CODE].flatMap(([file, code]) =>
    [...code.matchAll(/\b(?:from|import)\s*\(?\s*'(\.[^']+)'/g)].map(([, to]) => ({
      file,
      from: roomOf(file),
      to: roomOf(join(dirname(file), to!)),
    })),
  );
  const imports = all.filter(({ from, to }) => ROOMS.includes(from) && ROOMS.includes(to));
  assert.ok(imports.length > 500, `${imports.length}`);
  for (const { file, from, to } of imports.filter((each) => each.from !== each.to)) {
    const { file: main, calls } = of(from);
    assert.ok(
      calls.includes(BEFORE) || names(calls, to),
      `${file} imports ${to}/: take the import back, or add ${to} to "Calls" in ${main} and ${from} to "Called by" there`,
    );
    assert.ok(
      of(to).calledBy.includes(AFTER) || names(of(to).calledBy, from),
      `${file} imports ${to}/, and ${of(to).file} does not name ${from} in "Called by"`,
    );
  }
});
