/** The Sentinel names a proxy that does not serve, or its events are missing. */
import type { Fault } from '../fault.js';

const MASTERS = 'shadow-proxy/src/sentinel/masters.ts';
const COMMANDS = 'shadow-proxy/src/sentinel/sentinel-commands.ts';
const SENTINEL = 'shadow-proxy/src/sentinel/sentinel.ts';
const masters = ['unit/sentinel/masters'];
const conformance = ['integration/sentinel/conformance'];
const limits = ['integration/sentinel/limits'];

export const SENTINELS: readonly Fault[] = [
  {
    id: 'a-master-is-forgotten-while-another-process-takes-over',
    file: MASTERS,
    from: 'if (holder !== null && address === null) return;',
    to: 'if (holder !== null && address === null) return void this.#known.delete(name);',
    tests: masters,
  },
  {
    id: 'a-takeover-is-not-published',
    file: MASTERS,
    from: "this.publish('+switch-master', `${name} ${words(before.address)} ${words(address)}`);",
    to: '',
    tests: masters,
  },
  {
    id: 'a-master-that-was-replaced-stays-down',
    file: MASTERS,
    from: 'this.#set({ ...fresh, downSince: null, epoch });',
    to: 'this.#set({ ...fresh, downSince: before.downSince, epoch });',
    tests: masters,
  },
  {
    id: 'a-sentinel-lists-itself',
    file: MASTERS,
    from: 'address !== null && !same(address, this.plan.announce)',
    to: 'address !== null',
    tests: masters,
  },
  {
    id: 'a-sentinel-answers-without-the-password',
    file: COMMANDS,
    from: "!client.isLoggedIn && name !== 'auth' && name !== 'hello'",
    to: "!client.isLoggedIn && name !== 'auth' && name !== 'hello' && name !== 'sentinel|myid'",
    tests: conformance,
  },
  {
    id: 'a-password-of-another-length-is-taken',
    file: COMMANDS,
    from: 'timingSafeEqual(given.length === right.length ? given : right, right) && given.length === right.length',
    to: 'timingSafeEqual(given.length === right.length ? given : right, right)',
    tests: conformance,
  },
  {
    id: 'passwords-of-a-sentinel-can-be-guessed-without-delay',
    file: SENTINEL,
    from: 'if (lateMs === 0) return this.#write(reply);',
    to: 'if (lateMs >= 0) return this.#write(reply);',
    tests: limits,
  },
  {
    id: 'a-subscriber-of-a-sentinel-that-does-not-read-fills-the-memory',
    file: SENTINEL,
    from: 'if (this.socket.writableLength > MAX_UNREAD) this.destroy();',
    to: '',
    tests: limits,
  },
];
