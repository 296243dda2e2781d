/** What the proxy made of a suite: which tests fail with it that pass without it. Decides, and does nothing else. */
import type { KeyException, TestException } from '../exceptions.js';
import { DIRECT, type Outcome, type Proxied, type TestResult, type UnitResult, type WayResult } from './result.js';

/** A test that passes directly and not through the proxy. */
export interface Loss {
  readonly test: string;
  readonly how: 'failed' | 'skipped' | 'not reached';
  readonly detail: string;
  /** From the list of exceptions; null where the list has none. */
  readonly reason: string | null;
}

/** A key that differs at the end. */
export interface Difference {
  readonly line: string;
  readonly reason: string | null;
}

/** One unit, one stage. */
export interface Comparison {
  readonly unit: string;
  readonly way: Proxied;
  readonly direct: WayResult;
  readonly proxied: WayResult;
  readonly losses: readonly Loss[];
  readonly differences: readonly Difference[];
}

export interface Judgement {
  readonly comparisons: readonly Comparison[];
  /** Why it does not hold; empty where it does. */
  readonly failures: readonly string[];
  /** What could not be told, because the direct run did not come to its end. */
  readonly open: readonly string[];
}

export interface Exceptions {
  readonly suite: TestException['suite'];
  readonly tests: readonly TestException[];
  readonly keys: readonly KeyException[];
}

export function judge(units: readonly UnitResult[], exceptions: Exceptions): Judgement {
  const used = new Set<TestException | KeyException>();
  const comparisons = units.flatMap(({ unit, ways }) =>
    (Object.keys(DIRECT) as Proxied[]).flatMap((way) => {
      const [direct, proxied] = [DIRECT[way], way].map((wanted) => ways.find((result) => result.way === wanted));
      return direct && proxied ? [compareWays(unit, way, direct, proxied, exceptions, used)] : [];
    }),
  );
  const ran = ({ suite, unit, way }: TestException | KeyException): boolean =>
    suite === exceptions.suite && comparisons.some((one) => fits(unit, one.unit) && (way === undefined || one.way === way));
  const stale = [...exceptions.tests, ...exceptions.keys].filter((entry) => ran(entry) && !used.has(entry));
  return {
    comparisons,
    failures: [
      ...comparisons.flatMap(failuresOf),
      ...stale.map((entry) => `an exception excuses nothing: ${String(entry.unit)} ${String('test' in entry ? entry.test : entry.difference)}`),
    ],
    open: comparisons.flatMap(({ unit, direct }) => (direct.outcome.cutShort === null ? [] : [`${unit}: the direct run was cut short (${direct.outcome.cutShort})`])),
  };
}

const fits = (wanted: string | RegExp, name: string): boolean => (typeof wanted === 'string' ? wanted === name : wanted.test(name));

function compareWays(
  unit: string,
  way: Proxied,
  direct: WayResult,
  proxied: WayResult,
  { suite, tests, keys }: Exceptions,
  used: Set<TestException | KeyException>,
): Comparison {
  const here = <T extends TestException | KeyException>(list: readonly T[], applies: (entry: T) => boolean): string | null => {
    const entries = list.filter((one) => one.suite === suite && fits(one.unit, unit) && (one.way ?? way) === way && applies(one));
    for (const entry of entries) used.add(entry);
    return entries[0]?.reason ?? null;
  };
  const excuse = (name: string): string | null => here(tests, ({ test }) => fits(test, name));
  return {
    unit,
    way,
    direct,
    proxied,
    losses: lossesOf(direct.outcome, proxied.outcome).map((loss) => ({ ...loss, reason: excuse(loss.test) })),
    differences: (proxied.mirror?.differences ?? []).map((line) => ({ line, reason: here(keys, ({ difference }) => difference.test(line)) })),
  };
}

/** Tests that pass directly and not through the proxy. Where tests share a name, the first is compared with the first. */
export function lossesOf(direct: Outcome, proxied: Outcome): Omit<Loss, 'reason'>[] {
  const twins = new Map(numbered(proxied.tests));
  return numbered(direct.tests).flatMap(([id, test]) => {
    if (test.status !== 'ok') return [];
    const twin = twins.get(id);
    if (twin?.status === 'ok') return [];
    return [{ test: test.name, how: twin?.status ?? 'not reached', detail: twin?.detail ?? '' }];
  });
}

function numbered(tests: readonly TestResult[]): [id: string, test: TestResult][] {
  const seen = new Map<string, number>();
  return tests.map((test) => {
    const n = (seen.get(test.name) ?? 0) + 1;
    seen.set(test.name, n);
    return [`${n} ${test.name}`, test];
  });
}

function failuresOf({ unit, way, losses, differences, proxied }: Comparison): string[] {
  const lost = losses.filter(({ reason }) => reason === null).length;
  const differ = differences.filter(({ reason }) => reason === null).length;
  const checks: [boolean, string][] = [
    [proxied.died !== null, `ended by itself: ${proxied.died?.split(',')[0]}`],
    [lost > 0, `${lost} tests pass directly and not through the proxy`],
    [differ > 0, `${differ} keys differ at the end`],
  ];
  return checks.filter(([fails]) => fails).map(([, what]) => `${unit} (${way}): ${what}`);
}
