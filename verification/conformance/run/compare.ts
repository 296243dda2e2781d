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
  /** The last try. */
  readonly proxied: WayResult;
  /** Tests that every try lost. */
  readonly losses: readonly Loss[];
  /** Tests that a try lost, and another did not. */
  readonly unsteady: readonly string[];
  /** Of the servers and the proxy, what ended by itself in any try. */
  readonly died: string | null;
  /** Of all tries. */
  readonly differences: readonly Difference[];
}

export interface Judgement {
  readonly comparisons: readonly Comparison[];
  /** Why it does not hold; empty where it does. */
  readonly failures: readonly string[];
  /** What is unknown, because the direct run did not come to its end. */
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
      const direct = ways.find((result) => result.way === DIRECT[way]);
      const tries = ways.filter((result) => result.way === way);
      return direct && tries.length > 0 ? [compareWays(unit, way, direct, tries, exceptions, used)] : [];
    }),
  );
  const ran = ({ suite, unit, way }: TestException | KeyException): boolean =>
    suite === exceptions.suite &&
    comparisons.some((one) => fits(unit, one.unit) && (way === undefined || one.way === way));
  /** The suite leaves it out itself, as some are on a cluster: it cannot be lost. */
  const leftOut = (entry: TestException | KeyException): boolean => {
    if (!('test' in entry)) return false;
    const tests = comparisons.flatMap((one) => (fits(entry.unit, one.unit) ? one.direct.outcome.tests : []));
    const named = tests.filter(({ name }) => fits(entry.test, name));
    return named.length > 0 && named.every(({ status }) => status === 'skipped');
  };
  const stale = [...exceptions.tests, ...exceptions.keys].filter(
    (entry) => ran(entry) && !used.has(entry) && !leftOut(entry) && !('sometimes' in entry && entry.sometimes),
  );
  return {
    comparisons,
    failures: [
      ...comparisons.flatMap(failuresOf),
      ...stale.map(
        (entry) =>
          `an exception excuses nothing: ${String(entry.unit)} ${String('test' in entry ? entry.test : entry.difference)}`,
      ),
    ],
    open: comparisons.flatMap(({ unit, direct: { way, outcome, died } }) => [
      ...(outcome.cutShort === null
        ? []
        : [`${unit}: the run directly with ${way} was cut short (${outcome.cutShort})`]),
      ...(died === null ? [] : [`${unit}: in the run directly with ${way}, ${way} ended by itself`]),
    ]),
  };
}

const fits = (wanted: string | RegExp, name: string): boolean =>
  typeof wanted === 'string' ? wanted === name : wanted.test(name);

function compareWays(
  unit: string,
  way: Proxied,
  direct: WayResult,
  tries: readonly WayResult[],
  { suite, tests, keys }: Exceptions,
  used: Set<TestException | KeyException>,
): Comparison {
  const here = <T extends TestException | KeyException>(
    list: readonly T[],
    applies: (entry: T) => boolean,
  ): string | null => {
    const entries = list.filter(
      (one) => one.suite === suite && fits(one.unit, unit) && (one.way ?? way) === way && applies(one),
    );
    for (const entry of entries) used.add(entry);
    return entries[0]?.reason ?? null;
  };
  const reasonOf = (name: string): string | null => here(tests, ({ test }) => fits(test, name));
  const proxied = tries[tries.length - 1];
  const lost = tries.map(({ outcome }) => lossesOf(direct.outcome, outcome));
  const always = (id: string): boolean => lost.every((losses) => losses.some((loss) => loss.id === id));
  const unsteady = [...new Set(lost.flat().flatMap(({ id, test }) => (always(id) ? [] : [test])))];
  for (const test of unsteady) reasonOf(test);
  return {
    unit,
    way,
    direct,
    proxied,
    losses: lost[lost.length - 1]
      .filter(({ id }) => always(id))
      .map(({ id: _, ...loss }) => ({ ...loss, reason: reasonOf(loss.test) })),
    unsteady,
    died: tries.find(({ died }) => died !== null)?.died ?? null,
    differences: tries
      .flatMap(({ mirror }) => mirror?.differences ?? [])
      .map((line) => ({ line, reason: here(keys, ({ difference }) => difference.test(line)) })),
  };
}

/**
 * Tests that pass directly and not through the proxy. Where tests share a name, the first is compared with the first.
 */
export function lossesOf(direct: Outcome, proxied: Outcome): (Omit<Loss, 'reason'> & { readonly id: string })[] {
  const twins = new Map(numbered(proxied.tests));
  return numbered(direct.tests).flatMap(([id, test]) => {
    if (test.status !== 'ok') return [];
    const twin = twins.get(id);
    if (twin?.status === 'ok') return [];
    return [{ id, test: test.name, how: twin?.status ?? 'not reached', detail: twin?.detail ?? '' }];
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

function failuresOf({ unit, way, losses, differences, died }: Comparison): string[] {
  const lost = losses.filter(({ reason }) => reason === null).length;
  const differ = differences.filter(({ reason }) => reason === null).length;
  const checks: [boolean, string][] = [
    [died !== null, `ended by itself: ${died?.split(',')[0]}`],
    [lost > 0, `${lost} tests pass directly and not through the proxy`],
    [differ > 0, `${differ} keys differ at the end`],
  ];
  return checks.filter(([fails]) => fails).map(([, what]) => `${unit} (${way}): ${what}`);
}
