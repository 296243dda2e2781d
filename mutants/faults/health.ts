/** A server counts as down too soon or too late, or its clock as right. */
import type { Fault } from '../fault.js';

const HEALTH = 'shadow-proxy/src/health/';
const monitor = ['unit/health/monitor'];
const clocks = ['unit/health/clocks'];
const listening = ['unit/io/listening-clock'];

export const SILENCE: readonly Fault[] = [
  {
    id: 'a-server-is-down-a-millisecond-late',
    file: `${HEALTH}monitor.ts`,
    from: 'silentMs < downAfterMs',
    to: 'silentMs <= downAfterMs',
    tests: monitor,
    unseen: 'It differs by one millisecond only where a time is met exactly: nothing that is promised ends there.',
  },
  {
    id: 'a-server-that-runs-a-script-is-down',
    file: `${HEALTH}monitor.ts`,
    from: ' && !context.mayBeBusy(side);',
    to: ';',
    tests: monitor,
  },
  {
    id: 'a-server-that-has-just-replied-is-down',
    file: `${HEALTH}monitor.ts`,
    from: 'monotonicMs() - context.repliedAt(side) >= downAfterMs && ',
    to: '',
    tests: monitor,
  },
  {
    id: 'a-server-that-loads-its-data-is-up',
    file: `${HEALTH}monitor.ts`,
    from: "answer !== null && isError(answer) && text(answer).startsWith('LOADING')",
    to: 'false',
    tests: monitor,
  },
  {
    id: 'a-keydb-that-loads-its-data-is-up',
    file: `${HEALTH}monitor.ts`,
    from: "return isError(answer) ? answer : server.ask('DBSIZE');",
    to: 'return answer;',
    tests: monitor,
  },
  {
    id: 'any-error-is-silence',
    file: `${HEALTH}monitor.ts`,
    from: "isError(answer) && text(answer).startsWith('LOADING')",
    to: 'isError(answer)',
    tests: monitor,
  },
  {
    id: 'a-server-that-nobody-needs-is-silent',
    file: `${HEALTH}monitor.ts`,
    from: 'since === null || !this.context.authorities.isNeeded(side) ? 0',
    to: 'since === null ? 0',
    tests: monitor,
    unseen: 'Its silence is forgotten within 250 ms; an outage that begins until then has no workloads, and ends.',
  },
  {
    id: 'silence-begins-with-the-newest-question',
    file: `${HEALTH}monitor.ts`,
    from: '        this.#silentSince[server.side] ??= since;\n        this.#loads',
    to: '        this.#silentSince[server.side] = since;\n        this.#loads',
    tests: monitor,
  },
  {
    id: 'silence-goes-on-after-an-answer',
    file: `${HEALTH}monitor.ts`,
    from: 'this.#silentSince[server.side] = null;',
    to: '',
    tests: monitor,
  },
  {
    id: 'nobody-is-told-that-a-server-is-down',
    file: `${HEALTH}monitor.ts`,
    from: 'if (!this.#stopped && this.isDown(server.side)) this.context.down(server.side);',
    to: '',
    tests: monitor,
  },
  {
    id: 'a-late-loop-is-silence-until-the-tick',
    file: 'shadow-proxy/src/io/listening-clock.ts',
    from: 'return this.#listened + Math.min(performance.now() - this.#tickedAt, LONGEST_STEP_MS);',
    to: 'return this.#listened + (performance.now() - this.#tickedAt);',
    tests: listening,
    unseen: 'The simulated world has its own clock for that: no event loop of a run is late.',
  },
  {
    id: 'a-late-loop-is-silence-after-the-tick',
    file: 'shadow-proxy/src/io/listening-clock.ts',
    from: 'this.#listened += Math.min(now - this.#tickedAt, LONGEST_STEP_MS);',
    to: 'this.#listened += now - this.#tickedAt;',
    tests: listening,
    unseen: 'The simulated world has its own clock for that: no event loop of a run is late.',
  },
];

export const TIMES: readonly Fault[] = [
  {
    id: 'an-absolute-expiry-is-trusted-while-the-clocks-are-not-known',
    file: `${HEALTH}clocks.ts`,
    from: 'mirror.clockKnownFrom = since === null ? monotonicMs() : Infinity;',
    to: 'mirror.clockKnownFrom = monotonicMs();',
    tests: clocks,
  },
  {
    id: 'clocks-are-sure-to-differ-a-millisecond-late',
    file: `${HEALTH}clocks.ts`,
    from: 'offMs < SURE_MS',
    to: 'offMs <= SURE_MS',
    tests: clocks,
    unseen: 'It differs by one millisecond only where a time is met exactly: nothing that is promised ends there.',
  },
  {
    id: 'clocks-differ-for-good-a-millisecond-late',
    file: `${HEALTH}clocks.ts`,
    from: 'now - this.#offSince < LASTING_MS',
    to: 'now - this.#offSince <= LASTING_MS',
    tests: clocks,
    unseen: 'It differs by one millisecond only where a time is met exactly: nothing that is promised ends there.',
  },
  {
    id: 'one-look-makes-clocks-differ',
    file: `${HEALTH}clocks.ts`,
    from: 'if (this.#offSince === null || (offMs < SURE_MS && now - this.#offSince < LASTING_MS)) return;',
    to: 'if (this.#offSince === null) return;',
    tests: clocks,
  },
  {
    id: 'what-is-tolerated-is-a-difference',
    file: `${HEALTH}clocks.ts`,
    from: 'this.#setOff(offMs > errorMs + TOLERANCE_MS ?',
    to: 'this.#setOff(offMs >= errorMs + TOLERANCE_MS ?',
    tests: clocks,
    unseen: 'It differs by one millisecond only where a time is met exactly: nothing that is promised ends there.',
  },
  {
    id: 'something-is-left-of-a-larger-difference',
    file: `${HEALTH}clocks.ts`,
    from: 'Math.abs(aheadMs) > errorMs + TOLERANCE_MS ? Math.round(aheadMs) : 0',
    to: 'Math.round(aheadMs)',
    tests: clocks,
  },
  {
    id: 'a-look-that-agrees-does-not-begin-the-time-anew',
    file: `${HEALTH}clocks.ts`,
    from: '(this.#offSince ?? now) : null);',
    to: '(this.#offSince ?? now) : this.#offSince);',
    tests: clocks,
  },
  {
    id: 'the-source-is-not-told-of-the-targets-clock',
    file: `${HEALTH}clocks.ts`,
    from: 'mirrors.source.clockAheadMs = -aheadMs;',
    to: '',
    tests: clocks,
  },
  {
    id: 'a-clock-that-was-set-is-seen-a-millisecond-early',
    file: 'shadow-proxy/src/upstream/server-clock.ts',
    from: 'Math.abs(byMs) > errorBefore',
    to: 'Math.abs(byMs) >= errorBefore',
    tests: clocks,
    unseen: 'It takes clocks that differ by exactly the bound.',
  },
  {
    id: 'the-error-of-a-look-is-its-whole-time',
    file: 'shadow-proxy/src/upstream/server-clock.ts',
    from: 'isKnown ? (answered - asked) / 2 : UNKNOWN_CLOCK_ERROR_MS',
    to: 'isKnown ? answered - asked : UNKNOWN_CLOCK_ERROR_MS',
    tests: clocks,
  },
];
