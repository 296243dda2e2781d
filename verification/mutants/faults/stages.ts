/** A stage changes too early, or leaves something behind. */
import type { Fault } from '../fault.js';

const FLIP = 'shadow-proxy/src/stages/flip.ts';
const LINKS = 'integration/pipeline/held-links';

export const FLIPS: readonly Fault[] = [
  {
    id: 'a-flip-does-not-wait-for-the-mirror',
    file: FLIP,
    from: 'await Promise.all(\n    confirming.map((side) => {',
    to: 'void Promise.all(\n    confirming.map((side) => {',
    tests: [LINKS],
    kept: 'change-waits',
  },
  {
    id: 'a-flip-does-not-wait-for-the-authority',
    file: FLIP,
    from: 'await Promise.all(SIDES.map((side) => sequencer.lanes[side].quiet()));',
    to: '',
    tests: [LINKS],
    kept: 'change-waits',
  },
  {
    id: 'a-flip-does-not-wait-for-copies-that-begin-meanwhile',
    file: FLIP,
    from: 'router.setMoving(workload, true);\n      await inTime(this.#drained());',
    to: 'router.setMoving(workload, true);',
    tests: [LINKS],
    kept: 'change-waits',
  },
  {
    id: 'a-flip-does-not-hold-its-commands',
    file: FLIP,
    from: 'endHold = router.hold(workload);',
    to: '',
    tests: [LINKS, 'integration/rules/rule-03-flip'],
    profile: 'workloads',
  },
  {
    id: 'a-flip-does-not-interrupt-who-blocks',
    file: FLIP,
    from: 'await inTime(clients.interrupt(workload));',
    to: '',
    tests: ['integration/rules/rule-03-waiting'],
  },
  {
    id: 'commands-stay-held-after-a-flip',
    file: FLIP,
    from: 'endHold?.();',
    to: '',
    tests: [LINKS],
  },
  {
    id: 'nothing-is-copied-any-more-after-a-flip',
    file: FLIP,
    from: 'router.setMoving(workload, false);',
    to: '',
    tests: [LINKS, 'integration/rules/rule-03-flip'],
  },
  {
    id: 'clients-wait-for-ever-after-a-flip',
    file: FLIP,
    from: 'clients.subscribers.end();\n      clients.waitingRoom.open();',
    to: 'clients.subscribers.end();',
    tests: [LINKS],
  },
];

const flip = ['unit/stages/flip'];

export const FLIP_TIMES: readonly Fault[] = [
  {
    id: 'a-flip-that-is-late-goes-on',
    file: FLIP,
    from: 'return (promise) => Promise.race([promise, late]);',
    to: 'return (promise) => promise;',
    tests: flip,
    kept: 'change-refused',
  },
  {
    id: 'a-flip-waits-for-who-runs-alone-without-a-deadline',
    file: FLIP,
    from: 'await inTime(new Promise<void>((resolve) => clients.waitingRoom.onceOpen(resolve)));',
    to: 'await new Promise<void>((resolve) => clients.waitingRoom.onceOpen(resolve));',
    tests: flip,
    kept: 'change-refused',
  },
  {
    id: 'a-flip-does-not-wait-for-who-runs-alone',
    file: FLIP,
    from: 'await this.#alone(inTime);',
    to: '',
    tests: flip,
    kept: 'change-waits',
  },
  {
    id: 'two-changes-of-stage-at-once',
    file: FLIP,
    from: 'this.#busy = true;',
    to: '',
    tests: flip,
  },
  {
    id: 'no-change-of-stage-after-one-that-failed',
    file: FLIP,
    from: 'this.#leaving = [];\n      this.#busy = false;',
    to: 'this.#leaving = [];',
    tests: flip,
  },
  {
    id: 'a-stage-holds-before-it-is-written',
    file: FLIP,
    from: 'await this.context.persist(workload, from, to, note, admitting);\n      router.move(workload, to);',
    to: 'router.move(workload, to);\n      void this.context.persist(workload, from, to, note, admitting);\n      this.context.moved();',
    tests: flip,
  },
  {
    id: 'a-flip-leaves-suspects-behind',
    file: FLIP,
    from: 'if (needsClean) this.#assertClean(change);',
    to: '',
    tests: flip,
    kept: 'change-refused',
  },
  {
    id: 'a-flip-gives-suspects-no-time',
    file: FLIP,
    from: 'await waitWhile(() => !this.#isWhole(workload) && this.#keysToRepair(change, now) > 0, REPAIR_MS);',
    to: '',
    tests: flip,
    kept: 'change-refused',
  },
  {
    id: 'a-flip-gives-newer-suspects-no-time',
    file: FLIP,
    from: 'if (needsClean) await inTime(this.#repaired(change));',
    to: '',
    tests: flip,
    kept: 'change-refused',
  },
  {
    id: 'a-flip-does-not-wait-for-questions',
    file: FLIP,
    from: ' || this.context.adjudicator.asksOf(workload)),',
    to: '),',
    tests: flip,
    kept: 'change-refused',
  },
  {
    id: 'a-flip-does-not-ask-who-will-be-the-authority',
    file: FLIP,
    from: 'for (const side of authorityLeft(to, from)) {',
    to: 'for (const side of [] as Side[]) {',
    tests: [...flip, 'integration/rules/rule-03-flip'],
    kept: 'change-refused',
  },
  {
    id: 'a-flip-gives-up-an-authority-that-it-does-not-leave',
    file: FLIP,
    from: 'this.#leaving = [];\n      this.#busy = false;',
    to: 'this.#busy = false;',
    tests: flip,
    kept: 'change-refused',
  },
  {
    id: 'an-authority-that-is-not-trusted-is-left',
    file: FLIP,
    from: 'if (frozen !== null && authorityMoves(from, to) && !force && !failover)',
    to: 'if (frozen !== null && force && !failover)',
    tests: flip,
    kept: 'change-refused',
  },
];
