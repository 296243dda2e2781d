/** Patterns as Redis matches them: each row is a pattern, keys that it has, and keys that it has not. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compileGlob } from '../../../src/route/glob.js';

const ROWS: readonly [pattern: string, has: readonly string[], hasNot: readonly string[]][] = [
  ['', [''], ['a']],
  ['a', ['a'], ['', 'b', 'ab', 'ba']],
  ['user', ['user'], ['use', 'user1', 'User']],
  ['*', ['', 'a', 'anything'], []],
  ['user:*', ['user:', 'user:1', 'user:1:2'], ['user', 'xuser:1', 'uses:1']],
  ['*:user', [':user', 'a:user', ':user:user'], ['user', 'a:user:', 'a:use']],
  ['a*c', ['ac', 'abc', 'abbc', 'acc'], ['a', 'c', 'ab', 'abcd', 'bac']],
  ['a*b*c', ['abc', 'aabbcc', 'axbxc', 'abbc'], ['acb', 'ac', 'abcx']],
  ['**', ['', 'ab'], []],
  ['a**', ['a', 'abc'], ['', 'b']],
  ['?', ['a', '*', '?'], ['', 'ab']],
  ['a?c', ['abc', 'a?c'], ['ac', 'abbc']],
  ['?*', ['a', 'ab'], ['']],
  ['*?', ['a', 'ab'], ['']],
  ['[abc]', ['a', 'b', 'c'], ['', 'd', 'ab', '[']],
  ['[a-c]x', ['ax', 'bx', 'cx'], ['dx', '`x', 'a', '-x']],
  ['[c-a]x', ['ax', 'bx', 'cx'], ['dx', '`x']],
  ['[^a]', ['b', '^'], ['a', '']],
  ['[^a-c]', ['d', '`'], ['a', 'b', 'c']],
  ['[a^]', ['a', '^'], ['b']],
  // A range up to the bracket, which is no end then.
  ['[a-]', ['a', ']', '_'], ['-', 'b', '']],
  ['[-a]', ['-', 'a'], ['b']],
  ['[a\\-c]', ['a', '-', 'c'], ['b', '\\']],
  ['[\\]]', [']'], ['\\', 'a']],
  ['[\\^]', ['^'], ['\\']],
  ['[ab', ['a', 'b'], ['c', '[ab']],
  ['[a-c', ['a', 'b', 'c'], ['d', '-']],
  ['[^', ['a', '^'], ['']],
  ['[]', [], ['', 'a', ']', '[]']],
  ['[a\\', ['a', '\\'], ['b']],
  ['x[ab]*', ['xa', 'xbc'], ['x', 'xc', 'a']],
  ['*[ab]y', ['ay', 'xxby'], ['y', 'cy']],
  ['\\*', ['*'], ['a', '\\*', '']],
  ['\\?', ['?'], ['a']],
  ['a\\*b', ['a*b'], ['axb', 'a\\*b']],
  ['\\a', ['a'], ['\\a']],
  ['a\\', ['a\\'], ['a', 'a\\\\']],
  ['a*?c', ['abc', 'abbc'], ['ac']],
  ['*a', ['a', 'ba', 'aa', 'aba'], ['ab', '']],
  ['é*', ['é', 'é1'], ['e']],
];

for (const [pattern, has, hasNot] of ROWS) {
  test(`the pattern ${JSON.stringify(pattern)}`, () => {
    const matches = compileGlob(pattern);
    const lies = (key: string): boolean => {
      const bytes = Buffer.from(key);
      const alone = matches(bytes, 0, bytes.length);
      // The same key in the middle of a buffer.
      const within = Buffer.concat([Buffer.from('a*'), bytes, Buffer.from('ac')]);
      assert.equal(matches(within, 2, 2 + bytes.length), alone, `${key} inside of a buffer`);
      return alone;
    };
    assert.deepEqual(
      has.filter((key) => !lies(key)),
      [],
      'it has them',
    );
    assert.deepEqual(hasNot.filter(lies), [], 'it has them not');
  });
}
