/** Commands out and replies in without an object for each. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { encodeCommand } from '../../../src/resp/encode.js';
import { Scalars } from '../../../src/resp/scalars.js';
import { CommandWriter } from '../../../src/resp/command-writer.js';

const bytes = fc.uint8Array({ maxLength: 300 }).map((array) => Buffer.from(array));
const argument = fc.oneof(bytes, fc.integer(), fc.constantFrom(0, -1, 9, 10, 4_294_967_295, Number.MAX_SAFE_INTEGER));

test('commands are written as they are encoded one by one, from any place in a buffer', () => {
  fc.assert(
    fc.property(
      fc.array(fc.array(argument, { minLength: 1, maxLength: 12 }), { maxLength: 8 }),
      fc.nat(20),
      (commands, before) => {
        const writer = new CommandWriter(1);
        for (const command of commands) {
          writer.command(command.length);
          for (const each of command) {
            if (typeof each === 'number') writer.integer(each);
            else
              writer.argument(
                Buffer.concat([Buffer.alloc(before), each, Buffer.from('behind')]),
                before,
                before + each.length,
              );
          }
        }
        const wanted = Buffer.concat(commands.map((command) => encodeCommand(command)));
        assert.equal(writer.length, wanted.length);
        assert.deepEqual(writer.finish(), wanted);
      },
    ),
    { numRuns: 500 },
  );
});

test('replies are read one after the other', () => {
  const reply = fc.oneof(
    bytes.map((value) => ({
      value: value as Buffer | null,
      frame: Buffer.concat([Buffer.from(`$${value.length}\r\n`), value, Buffer.from('\r\n')]),
    })),
    fc.constant({ value: null, frame: Buffer.from('$-1\r\n') }),
    fc.integer().map((value) => ({ value, frame: Buffer.from(`:${value}\r\n`) })),
    fc.constantFrom('ERR no', 'OOM').map((value) => ({ value, frame: Buffer.from(`-${value}\r\n`) })),
  );
  fc.assert(
    fc.property(fc.array(reply), fc.nat(5), (replies, before) => {
      const scalars = new Scalars(Buffer.concat([Buffer.alloc(before), ...replies.map(({ frame }) => frame)]), before);
      for (const { value } of replies) {
        assert.equal(scalars.isError, typeof value === 'string');
        assert.deepEqual(
          typeof value === 'number' ? scalars.integer() : typeof value === 'string' ? scalars.text() : scalars.bytes(),
          value,
        );
      }
    }),
    { numRuns: 500 },
  );
});
