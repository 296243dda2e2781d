/**
 * Damaged payloads: what is accepted is what a real Redis reads from them.
 *
 * Needs real servers: damaged payloads, as RESTORE takes or refuses them.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { decodeDump, transcode, TranscodeError, type Value } from '../../../src/copy/rdb/transcode.js';
import { withServers } from '../../support/servers.js';
import { fixtures as redis28 } from './fixtures/redis-2.8.js';
import { fixtures as redis62 } from './fixtures/redis-6.2.js';
import { fixtures as redis72 } from './fixtures/redis-7.2.js';
import { fixtures as redis74 } from './fixtures/redis-7.4.js';
import { connected, dump, observe, restore } from './observe.js';
import { cook, recipe } from './recipes.js';
import { tampered } from './seal.js';

/** Raise it for a long search: `RDB_RUNS=1000`. */
const runs = Number(process.env.RDB_RUNS ?? 40);
/** Of CPU time. */
const LIMIT_MS = 1000;

const payloads = [...redis28, ...redis62, ...redis72, ...redis74].map(({ payload }) => Buffer.from(payload, 'base64'));
const payload = fc.constantFrom(...payloads);

/** A few changes near each other or anywhere: bits, bytes, and bytes that mean something somewhere. */
const change = fc.record({
  at: fc.oneof(fc.nat(40), fc.nat()),
  how: fc.oneof(
    fc.nat(7).map((bit) => (byte: number) => byte ^ (1 << bit)),
    fc.nat(255).map((value) => () => value),
    fc.constantFrom(0, 0x3f, 0x7f, 0x80, 0x81, 0xc0, 0xc3, 0xf0, 0xf4, 0xfe, 0xff).map((value) => () => value),
  ),
});
const changes = fc.array(change, { minLength: 1, maxLength: 4 });
type Changes = typeof changes extends fc.Arbitrary<infer T> ? T : never;

const apply = (content: Buffer, list: Changes): void => {
  for (const { at, how } of list) content[at % content.length] = how(content[at % content.length]);
};

/** The translation, or null where it is refused as it should be. Fails on any other error, and when it takes long. */
function attempt(bytes: Buffer, version: number): Buffer | null {
  const began = process.cpuUsage();
  try {
    return transcode(bytes, version);
  } catch (error) {
    assert.ok(error instanceof TranscodeError, `${String(error)} for ${bytes.toString('hex').slice(0, 2000)}`);
    assert.ok(error.offset >= 0 && error.offset <= bytes.length, error.message);
    return null;
  } finally {
    assert.ok(process.cpuUsage(began).user / 1_000 < LIMIT_MS);
  }
}

test('a payload that was cut or changed on its way is never translated', () => {
  fc.assert(
    fc.property(payload, fc.nat(), (bytes, cut) =>
      assert.equal(attempt(bytes.subarray(0, cut % bytes.length), 9), null),
    ),
    { numRuns: runs * 50 },
  );
  fc.assert(
    fc.property(payload, changes, (bytes, list) => {
      const copy = Buffer.from(bytes);
      apply(copy, list);
      if (!copy.equals(bytes)) assert.equal(attempt(copy, 12), null);
    }),
    { numRuns: runs * 50 },
  );
});

const isMiscounted = (value: Value): boolean => value.type === 'stream' && value.miscounted === true;

/** Without what an older version cannot say, and without wrong numbers of entries, which are counted again. */
const comparable = (value: Value): unknown => {
  if (value.type === 'zset')
    return value.members.map(({ member, score }) => `${score} ${member.toString('latin1')}`).sort();
  if (value.type !== 'stream') return value;
  const groups = value.groups.map((group) => ({
    ...group,
    entriesRead: null,
    consumers: group.consumers.map((consumer) => ({ ...consumer, activeAt: null })),
  }));
  return { ...value, counters: null, groups, miscounted: null };
};

test('a damaged payload with a right checksum is refused, or translated to what it says', () => {
  fc.assert(
    fc.property(
      payload,
      changes,
      fc.constantFrom(9, 10, 12),
      fc.boolean(),
      fc.nat(),
      (bytes, list, version, cuts, cut) => {
        const damaged = tampered(bytes, (content) => {
          apply(content, list);
          return cuts ? content.subarray(0, 1 + (cut % content.length)) : content;
        });
        const result = attempt(damaged, version);
        if (!result) return;
        assert.deepEqual(comparable(decodeDump(result)), comparable(decodeDump(damaged)));
        assert.ok(result.length < damaged.length * 100 + 1000);
      },
    ),
    { numRuns: runs * 150, includeErrorInReport: true },
  );
});

test('what is accepted from damaged payloads is what Redis itself reads from them', async () => {
  const config = { 'sanitize-dump-payload': 'yes' };
  await withServers(
    async ({ source, target }) => {
      await connected(source, (redis) =>
        connected(target, async (keydb) => {
          let accepted = 0;
          const compare = async (damaged: Buffer): Promise<void> => {
            const result = attempt(damaged, 9);
            if (!result) return;
            accepted++;
            await restore(keydb, 'copy', result);
            // Redis serves a stream that counts its entries wrongly, and does not restore it.
            if (isMiscounted(decodeDump(damaged))) return;
            await restore(redis, 'original', damaged);
            const hex = damaged.toString('hex');
            assert.deepEqual([hex, await observe(keydb, 'copy')], [hex, await observe(redis, 'original')]);
          };
          const old = [...redis28, ...redis62].map((fixture) => Buffer.from(fixture.payload, 'base64'));
          await fc.assert(
            fc.asyncProperty(fc.constantFrom(...old), changes, async (bytes, list) => {
              await compare(tampered(bytes, (content) => apply(content, list)));
            }),
            { numRuns: runs * 20, includeErrorInReport: true },
          );
          await fc.assert(
            fc.asyncProperty(recipe, fc.array(changes, { minLength: 20, maxLength: 20 }), async (of, lists) => {
              await redis.del('key');
              await cook(redis, of);
              const bytes = await dump(redis, 'key');
              for (const list of lists) await compare(tampered(bytes, (content) => apply(content, list)));
            }),
            { numRuns: runs, includeErrorInReport: true, endOnFailure: true },
          );
          assert.ok(accepted > runs, `${accepted} accepted`);
        }),
      );
    },
    { source: { config }, target: { config } },
  );
});
