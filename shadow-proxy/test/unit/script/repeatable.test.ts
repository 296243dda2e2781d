/** The forms of a command that a repeated script may call. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { areRepeatable, type WrittenArgument } from '../../../src/script/repeatable.js';

const OPTIONS = { ex: 1, nx: 0, two: 2 };
const text = (literal: string): WrittenArgument => ({ literal, open: false });
const UNKNOWN: WrittenArgument = { literal: null, open: false };
/** `unpack(…)`: any number of arguments. */
const MANY: WrittenArgument = { literal: null, open: true };

/** Each form, the arguments of a call, and whether the call is one of that form. */
const CALLS: readonly (readonly [form: string, args: readonly WrittenArgument[], is: boolean])[] = [
  ['', [], true],
  ['', [UNKNOWN], false],
  ['k', [], false],
  ['k', [UNKNOWN], true],
  ['k', [MANY], false],
  ['k', [UNKNOWN, UNKNOWN], false],
  ['k', [UNKNOWN, MANY], false],
  ['kv', [UNKNOWN, MANY], false],
  ['kvn', [UNKNOWN, UNKNOWN, UNKNOWN], true],
  // One or more times what stands in parentheses.
  ['(k)', [], false],
  ['(k)', [UNKNOWN], true],
  ['(k)', [UNKNOWN, UNKNOWN, UNKNOWN], true],
  ['(k)', [MANY], true],
  ['(kv)', [UNKNOWN], false],
  ['(kv)', [UNKNOWN, UNKNOWN], true],
  ['(kv)', [UNKNOWN, UNKNOWN, UNKNOWN], false],
  ['(kv)', [UNKNOWN, UNKNOWN, MANY], true],
  ['k(v)', [UNKNOWN], false],
  ['k(v)', [UNKNOWN, UNKNOWN], true],
  ['k(vv)', [UNKNOWN, UNKNOWN, UNKNOWN], true],
  ['k(vv)', [UNKNOWN, UNKNOWN], false],
  // Options, where the form has an x.
  ['kvx', [UNKNOWN, UNKNOWN], true],
  ['kvx', [UNKNOWN, UNKNOWN, text('NX')], true],
  ['kvx', [UNKNOWN, UNKNOWN, text('nx'), text('EX'), UNKNOWN], true],
  ['kvx', [UNKNOWN, UNKNOWN, text('EX'), UNKNOWN, text('NX')], true],
  ['kvx', [UNKNOWN, UNKNOWN, text('EX')], false],
  ['kvx', [UNKNOWN, UNKNOWN, text('TWO'), UNKNOWN], false],
  ['kvx', [UNKNOWN, UNKNOWN, text('TWO'), UNKNOWN, UNKNOWN], true],
  ['kvx', [UNKNOWN, UNKNOWN, text('KEEPTTL')], false],
  ['kvx', [UNKNOWN, UNKNOWN, UNKNOWN], false],
  ['kvx', [UNKNOWN, UNKNOWN, MANY], false],
  ['kv', [UNKNOWN, UNKNOWN, text('NX')], false],
  // What every object has is no option.
  ['kvx', [UNKNOWN, UNKNOWN, text('constructor')], false],
  ['kx(nv)', [UNKNOWN, text('constructor'), UNKNOWN, UNKNOWN], false],
  ['kx(nv)', [UNKNOWN, UNKNOWN, UNKNOWN], true],
  ['kx(nv)', [UNKNOWN, text('NX'), UNKNOWN, UNKNOWN], true],
  ['kx(nv)', [UNKNOWN, text('NX')], false],
  ['kx(nv)', [UNKNOWN, text('NX'), UNKNOWN], false],
  ['kx(nv)', [UNKNOWN, text('NX'), MANY], true],
];

test('a call is repeatable in the forms of its command only', () => {
  for (const [form, args, is] of CALLS)
    assert.equal(
      areRepeatable({ arguments: form, options: OPTIONS, reply: 'number' }, args),
      is,
      `${form}: ${args.map(({ literal, open }) => (open ? '…' : (literal ?? '?'))).join(' ')}`,
    );
});
