/** A copied key is not what the authority has. */
import type { Fault } from '../fault.js';

export const COPY: readonly Fault[] = [
  {
    id: 'a-copy-of-an-expired-key-lives-for-ever',
    file: 'shadow-proxy/src/copy/key/put.ts',
    from: 'if (payload === null || isOver(life)) {',
    to: "if (payload === null || life.state === 'gone') {",
    tests: ['unit/copy/put'],
  },
  {
    id: 'a-copy-of-a-missing-key-is-no-delete',
    file: 'shadow-proxy/src/copy/key/put.ts',
    from: 'life: payload === null ? GONE : life, ttlStart',
    to: 'life, ttlStart',
    tests: ['unit/copy/put'],
  },
  {
    id: 'a-key-that-is-about-to-expire-is-taken-for-gone',
    file: 'shadow-proxy/src/copy/key/put.ts',
    from: 'life: payload === null ? GONE : life, ttlStart',
    to: 'life: GONE, ttlStart',
    tests: ['unit/copy/puts'],
  },
  {
    id: 'a-late-copy-lives-for-ever',
    file: 'shadow-proxy/src/copy/key/put.ts',
    from: 'Math.max(1, Math.round(put.life.ms - ms))',
    to: 'Math.max(0, Math.round(put.life.ms - ms))',
    tests: ['unit/copy/put'],
  },
  {
    id: 'a-late-copy-keeps-its-full-time',
    file: 'shadow-proxy/src/copy/key/put.ts',
    from: 'Math.max(1, Math.round(put.life.ms - ms))',
    to: 'Math.max(1, Math.round(put.life.ms))',
    tests: ['unit/copy/put'],
  },
  {
    id: 'a-copy-does-not-replace',
    file: 'shadow-proxy/src/copy/key/put.ts',
    from: 'to.raw(REPLACE);',
    to: 'to.raw(REPLACE.subarray(0, 0));',
    tests: ['unit/copy/put'],
  },
  {
    id: 'a-refused-part-of-a-copy-passes',
    file: 'shadow-proxy/src/copy/key/put.ts',
    from: 'refusal ??= said;',
    to: 'refusal = said;',
    tests: ['unit/copy/put'],
  },
  {
    id: 'copies-do-not-make-way-for-slow-replies',
    file: 'shadow-proxy/src/copy/job/rate-limiter.ts',
    from: 'else if (this.#window > LEAST) this.#window = Math.max(LEAST, this.#window >> 1);',
    to: 'else if (this.#window < LEAST) this.#window = LEAST;',
    tests: ['unit/copy/rate-limiter'],
  },
  {
    id: 'keys-a-second-are-not-limited',
    file: 'shadow-proxy/src/copy/job/rate-limiter.ts',
    from: 'const cost = Math.max(keys / this.#rate,',
    to: 'const cost = Math.max(0,',
    tests: ['unit/copy/rate-limiter'],
  },
  {
    id: 'bytes-a-second-are-not-limited',
    file: 'shadow-proxy/src/copy/job/rate-limiter.ts',
    from: 'bytes / (this.limits.bytesPerSecond ?? Infinity)',
    to: '0',
    tests: ['unit/copy/rate-limiter'],
  },
  {
    id: 'a-target-without-room-is-filled',
    file: 'shadow-proxy/src/copy/job/memory-guard.ts',
    from: 'if (needed <= there.max * FULL) continue;',
    to: 'continue;',
    tests: ['unit/copy/memory-guard'],
  },
];
