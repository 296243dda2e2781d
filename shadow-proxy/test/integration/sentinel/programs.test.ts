/**
 * Clients of other languages that know only the Sentinels go on after takeovers, and lose nothing. `PYTHON` names a
 * Python with redis-py, `JEDIS` and `LETTUCE` folders with their jar files, `GO_REDIS` a Go module that has go-redis.
 *
 * Needs real processes: clients in Python, Java and Go that know only the Sentinels.
 */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { assertGoesOn, ProgramWriter, withSeats, type WriterProgram } from './proxies.js';

const { PYTHON = 'python3', JEDIS, LETTUCE, GO_REDIS } = process.env;
const program = (file: string): string =>
  fileURLToPath(new URL(`../../../../../shadow-proxy/test/support/sentinel-writers/${file}`, import.meta.url));
const java = (jars: string, file: string): WriterProgram => ({
  command: ['java', '-cp', join(jars, '*'), program(file)],
});
const hasRedisPy = spawnSync(PYTHON, ['-c', 'import redis.sentinel']).status === 0;

/** What is missing, or the program. */
const PROGRAMS: Readonly<Record<string, string | WriterProgram>> = {
  'redis-py': hasRedisPy ? { command: [PYTHON, program('redis_py.py')] } : 'PYTHON to a Python with redis-py',
  jedis: JEDIS === undefined ? 'JEDIS to the folder with the jar files of jedis' : java(JEDIS, 'Jedis.java'),
  lettuce:
    LETTUCE === undefined ? 'LETTUCE to the folder with the jar files of lettuce-core' : java(LETTUCE, 'Lettuce.java'),
  'go-redis':
    GO_REDIS === undefined
      ? 'GO_REDIS to the folder of a Go module that has go-redis'
      : { command: ['go', 'run', program('go_redis.go')], cwd: GO_REDIS },
};

for (const [name, found] of Object.entries(PROGRAMS)) {
  const skip = typeof found === 'string' && `NOT TESTED WITH ${name}: set ${found}`;
  test(`${name} goes on after each takeover, and no acknowledged write is lost`, { skip }, (t) =>
    withSeats(t, (scene) =>
      assertGoesOn(t, scene, (seats) => Promise.resolve(new ProgramWriter(t, name, seats, found as WriterProgram))),
    ),
  );
}
