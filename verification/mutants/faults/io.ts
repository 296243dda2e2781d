/** Bytes are lost, repeated or counted wrongly. */
import type { Fault } from '../fault.js';

export const IO: readonly Fault[] = [
  {
    id: 'neighbouring-slices-are-dropped',
    file: 'shadow-proxy/src/io/outbox.ts',
    from: '      this.#ends[last] = end;\n',
    to: '',
    tests: ['unit/io/outbox'],
  },
  {
    id: 'slices-of-another-buffer-are-joined',
    file: 'shadow-proxy/src/io/outbox.ts',
    from: 'if (last >= 0 && this.#buffers[last] === buffer && this.#ends[last] === start) {',
    to: 'if (last >= 0 && this.#ends[last] === start) {',
    tests: ['unit/io/outbox'],
  },
  {
    id: 'what-the-kernel-has-not-taken-is-not-counted',
    file: 'shadow-proxy/src/io/outbox.ts',
    from: 'return this.#bytes + this.#unsent;',
    to: 'return this.#bytes;',
    tests: ['unit/io/outbox'],
    profile: 'floods',
  },
  {
    id: 'small-slices-after-a-large-one-are-lost',
    file: 'shadow-proxy/src/io/outbox.ts',
    from: '    if (at > from) socket.write(from === 0',
    to: '    if (at > from && from === 0) socket.write(from === 0',
    tests: ['unit/io/outbox'],
  },
];
