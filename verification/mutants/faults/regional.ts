/** Counters with one part per region count wrongly. */
import type { Fault } from '../fault.js';

export const REGIONAL: readonly Fault[] = [
  {
    id: 'decrby-counts-up',
    file: 'shadow-proxy/src/regional/counter-commands.ts',
    from: "['decrby', incrementBy(-1n)],",
    to: "['decrby', incrementBy(1n)],",
    tests: ['integration/regional/counter-commands'],
  },
  {
    id: 'expire-takes-milliseconds',
    file: 'shadow-proxy/src/regional/counter-commands.ts',
    from: "['expire', expire('expire', 1000n, true)],",
    to: "['expire', expire('expire', 1n, true)],",
    tests: ['integration/regional/counter-commands'],
  },
  {
    id: 'a-counter-that-is-not-there-lives-for-ever',
    file: 'shadow-proxy/src/regional/counter-commands.ts',
    from: 'integer(!exists ? -2 : endsAt',
    to: 'integer(!exists ? -1 : endsAt',
    tests: ['integration/regional/counter-commands'],
  },
  {
    id: 'counters-overflow',
    file: 'shadow-proxy/src/regional/counter-commands.ts',
    from: 'by > MOST || by < -MOST ? OVERFLOW : change',
    to: 'change',
    tests: ['unit/regional/counter-commands'],
  },
  {
    id: 'numbers-with-zeros-in-front-count',
    file: 'shadow-proxy/src/regional/counter-commands.ts',
    from: '/^(0|-?[1-9]\\d{0,18})$/',
    to: '/^-?\\d{1,19}$/',
    tests: ['unit/regional/counter-commands'],
  },
];
