/** Text of others is printed without moving the cursor or hiding text. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { printable, printableAll, printableBytes, printableLines } from '../../../src/text/printable.js';
import { assertPrintable, HOSTILE } from '../../support/raw-text.js';

describe('foreign text', () => {
  test('is one line, with a visible escape for each character that could move the cursor or hide text', () => {
    assert.equal(printable('a\u001b[2Jb\nc\td'), 'a\\u001b[2Jb\\u000ac\\u0009d');
    for (const [first, last] of [
      [0, 0x1f],
      [0x7f, 0x9f],
      [0x200b, 0x200f],
      [0x2028, 0x202e],
      [0x2066, 0x2069],
      [0xd800, 0xdfff],
      [0xe0001, 0xe0001],
    ])
      for (let code = first; code <= last; code++)
        assert.match(printable(`x${String.fromCodePoint(code)}y`), /^x(\\u[0-9a-f]{4}){1,2}y$/, code.toString(16));
    assert.equal(printable('plain: é 日本 😀 "quoted" \\x1b'), 'plain: é 日本 😀 "quoted" \\x1b');
  });

  test('keeps its breaks and tabs where it has several lines, and JSON stands for the same value', () => {
    assert.equal(printableLines('a\n\tb\r\u2028'), 'a\n\tb\\u000d\\u2028');
    const value = { [HOSTILE]: [HOSTILE, 1, null, { deep: '\u{e0001}' }] };
    for (const indent of [0, 2]) {
      const text = printableLines(JSON.stringify(value, null, indent));
      assertPrintable(text, 'JSON');
      assert.deepEqual(JSON.parse(text), value);
    }
  });

  test('is UTF-8 where a server sent bytes, each byte that is none is named, and it ends somewhere', () => {
    const bytes = Buffer.concat([Buffer.from('é 😀 '), Buffer.from([0xff, 0x1b, 0xc3, 0x28]), Buffer.from('\u202e')]);
    assert.equal(printableBytes(bytes.toString('latin1')), 'é 😀 \\xff\\u001b\\xc3(\\u202e');
    assert.equal(printableBytes('a'.repeat(5_000)), `${'a'.repeat(1_000)}…`);
  });

  test('is found in every text and name of a value', () => {
    assert.deepEqual(printableAll({ 'a\n': ['b\u001b', { c: 'd', e: 1, f: null, g: true }] }), {
      'a\\u000a': ['b\\u001b', { c: 'd', e: 1, f: null, g: true }],
    });
  });
});
