/** The fence leaves a way around it, or does not give back what it took. */
import type { Fault } from '../fault.js';

const FENCE = 'shadow-proxy/src/stages/fence.ts';
const FENCE_USERS = 'shadow-proxy/src/upstream/fence-users.ts';
const CONTROL = 'shadow-proxy/src/shard/control.ts';
const tests = ['integration/stages/fence'];

export const FENCES: readonly Fault[] = [
  {
    id: 'rules-are-not-saved-before-they-change',
    file: FENCE,
    from: '    if (writers.length > 0 || before === null || before.hand !== hand)',
    to: '    if (false)',
    tests,
  },
  {
    id: 'connections-of-clients-keep-their-users-behind-the-fence',
    file: FENCE,
    from: 'const loggedIn = lanes.logInAgain(new Set(names));',
    to: 'const loggedIn = Promise.resolve();',
    tests,
  },
  {
    id: 'a-fence-user-has-other-rules',
    file: FENCE,
    from: "['reset', 'on', password, ...now.patterns, ...commands, ...selectors]",
    to: "['reset', 'on', password, '~*', ...commands, ...selectors]",
    tests,
  },
  {
    id: 'a-source-that-restarts-stays-without-a-fence',
    file: FENCE,
    from: 'if (source.fence.at === source.runId && lost.length === 0 && writers.length === 0) return;',
    to: 'if (source.fence.at !== null) return;',
    tests,
    kept: 'fence-without-gaps',
  },
  {
    id: 'a-rollback-leaves-the-fence',
    file: FENCE,
    from: 'fence !== null && (fence.users.length > 0 || fence.hand === null))',
    to: 'fence !== null && fence.hand === null && fence.users.length === 0)',
    tests,
    profile: 'fenced',
  },
  {
    id: 'a-stage-change-forgets-that-the-fence-was-raised-by-hand',
    file: FENCE,
    from: "this.by.state().fence?.hand === 'applied' ? 'applied' : null",
    to: 'null',
    tests,
    profile: 'fenced',
  },
  {
    id: 'the-gate-users-compares-behind-the-fence',
    file: FENCE_USERS,
    from: 'return [before === undefined ? line : withRules(line, before)];',
    to: 'return [line];',
    tests,
    profile: 'fenced',
  },
  {
    id: 'a-write-just-before-the-fence-is-not-looked-for',
    file: CONTROL,
    from: 'if (last === null || last.at === before.last?.at || request.note?.forced === true) return;',
    to: 'if (last !== before.last || true) return;',
    tests,
    kept: 'fence-without-gaps',
  },
  {
    id: 'a-script-that-comes-late-has-run',
    file: 'shadow-proxy/src/stages/bypass-watch.ts',
    from: ' || before.mayRunScripts',
    to: '',
    tests: ['unit/stages/bypass-watch'],
    kept: 'no-false-alarm',
  },
];
