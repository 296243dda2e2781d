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
  },
  {
    id: 'a-flip-does-not-wait-for-the-authority',
    file: FLIP,
    from: 'await Promise.all(SIDES.map((side) => sequencer.lanes[side].quiet()));',
    to: '',
    tests: [LINKS],
  },
  {
    id: 'a-flip-does-not-wait-for-copies-that-begin-meanwhile',
    file: FLIP,
    from: 'workload.moving = true;\n      await inTime(this.#drained());',
    to: 'workload.moving = true;',
    tests: [LINKS],
  },
  {
    id: 'a-flip-does-not-hold-its-commands',
    file: FLIP,
    from: 'workload.held = true;',
    to: '',
    tests: [LINKS, 'integration/rules/rule-03-flip'],
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
    from: 'workload.held = false;',
    to: '',
    tests: [LINKS],
  },
  {
    id: 'nothing-is-copied-any-more-after-a-flip',
    file: FLIP,
    from: 'workload.moving = false;',
    to: '',
    tests: [LINKS, 'integration/rules/rule-03-flip'],
  },
  {
    id: 'clients-wait-for-ever-after-a-flip',
    file: FLIP,
    from: 'clients.subscribers.end();\n      clients.open();',
    to: 'clients.subscribers.end();',
    tests: [LINKS],
  },
];
