/** Each reason for which a key is not copied has a way on in the pages. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { COPY_ERRORS } from '../../../src/copy/key/copier.js';
import { TRANSCODE_ERRORS, TranscodeError } from '../../../src/copy/rdb/error.js';

const ROOT = new URL('../../../../../', import.meta.url);
const PAGE = readFileSync(new URL('docs/troubleshooting.md', ROOT), 'utf8');

/** The rows of the tables below a heading: what each is about, and what to do next. */
function rowsBelow(heading: string): Map<string, string> {
  const [, section] = PAGE.split(`${heading}\n`);
  const rows = section.split(/\n##/)[0].matchAll(/^\| (`[^|]+`)\s*\|[^|]+\| ([^|]+?)\s*\|$/gm);
  return new Map(
    [...rows].flatMap(([, names, next]) => [...names.matchAll(/`(\w+)`/g)].map(([, name]) => [name, next])),
  );
}

test('each reason for which a key is not copied has a way on in troubleshooting.md', () => {
  const rows = rowsBelow('## A copy or a verification fails');
  assert.deepEqual([...rows.keys()].sort(), [...COPY_ERRORS].sort());
  for (const [reason, next] of rows) assert.ok(next.length > 10, `${reason}: ${next}`);
});

test('each code of a payload that is refused has a way on in troubleshooting.md, and is in the message', () => {
  const rows = rowsBelow('### A payload is refused');
  assert.deepEqual([...rows.keys()].sort(), [...TRANSCODE_ERRORS].sort());
  for (const [code, next] of rows) assert.ok(next.length > 7, `${code}: ${next}`);
  for (const code of TRANSCODE_ERRORS)
    assert.match(new TranscodeError(code, 'x', 0).message, new RegExp(`\\(${code}\\)$`));
});
