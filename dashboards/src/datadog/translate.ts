/**
 * Expressions of PromQL as queries and a formula of Datadog. Datadog compares nothing inside a formula, aggregates each
 * query before the formula, and has no `or`: each rule below says how the kit's expressions mean the same there.
 */
import { parse, RATE_INTERVAL, type Binary, type Expression, type Matcher, type Selector } from './expression.js';
import { datadogName, labelsOf, named, tagOf } from './names.js';

export interface Translated {
  /** Over `q0`, `q1`, …: one for each query. */
  readonly formula: string;
  readonly queries: readonly string[];
  /** The tags that distinguish its series. */
  readonly by: readonly string[];
}

/** What Datadog cannot say; the message is the reason. */
export class Untranslatable extends Error {
  override readonly name = 'Untranslatable';
}

type Aggregator = 'sum' | 'max' | 'min' | 'avg';

interface Context {
  readonly by: readonly string[];
  /** Of an aggregation around it; null where there is none. */
  readonly aggregator: Aggregator | null;
}

/** @param by the labels by which series are shown, where the expression does not aggregate */
export function translate(text: string, by: readonly string[]): Translated {
  return translateExpression(parse(text), by);
}

export function translateExpression(expression: Expression, by: readonly string[]): Translated {
  const translation = new Translation();
  const formula = translation.of(expression, { by, aggregator: null });
  return { formula, queries: translation.queries, by: translation.groups };
}

/** The formula with its queries in their places, as monitors have it. */
export const inline = ({ formula, queries }: Translated): string =>
  formula.replaceAll(/\bq(\d+)\b/g, (_, at: string) => queries[Number(at)]);

class Translation {
  readonly queries: string[] = [];
  groups: readonly string[] = [];

  of(expression: Expression, context: Context): string {
    switch (expression.kind) {
      case 'number':
        return String(expression.value);
      case 'selector':
        return this.#now(expression, context);
      case 'aggregate':
        return this.#aggregate(expression.op, expression.by, expression.args, context);
      case 'call':
        return this.#call(expression.name, expression.args, context);
      case 'binary':
        return this.#binary(expression, context);
    }
  }

  // ── queries ─────────────────────────────────────────────────────────────────────────────────────────────────

  #query(selector: Selector, aggregator: Aggregator, by: readonly string[], after = ''): string {
    if (by.length > this.groups.length) this.groups = by;
    const grouped = by.length === 0 ? '' : ` by {${by.map(tagOf).join(',')}}`;
    const query = `${aggregator}:${datadogName(selector.metric)}{${filterOf(selector.matchers)}}${grouped}${after}`;
    const known = this.queries.indexOf(query);
    return `q${known === -1 ? this.queries.push(query) - 1 : known}`;
  }

  /** Datadog has what a counter grew by, not what it says. */
  #now(selector: Selector, { by, aggregator }: Context): string {
    if (named(selector.metric).kind !== 'counter') return this.#query(selector, aggregator ?? 'avg', by);
    return `cumsum(${this.#query(selector, 'sum', by, '.as_count()')})`;
  }

  #rate(selector: Selector, { by, aggregator }: Context): string {
    if (named(selector.metric).kind !== 'counter')
      return `per_second(${this.#query(selector, aggregator ?? 'avg', by)})`;
    return this.#query(selector, aggregator ?? 'sum', by, '.as_rate()');
  }

  #increase(selector: Selector, { by }: Context): string {
    const seconds = secondsOf(selector.range!);
    const over = selector.range === RATE_INTERVAL ? '' : `.rollup(sum, ${seconds})`;
    return this.#query(selector, 'sum', by, `.as_count()${over}`);
  }

  // ── functions ───────────────────────────────────────────────────────────────────────────────────────────────

  #call(name: string, [first, second]: readonly Expression[], context: Context): string {
    const range = (): Selector => {
      if (first.kind !== 'selector') throw new Untranslatable(`${name} of an expression`);
      return first;
    };
    switch (name) {
      case 'rate':
        return this.#rate(range(), context);
      case 'increase':
        return this.#increase(range(), context);
      case 'deriv':
        return `derivative(${this.#query(range(), context.aggregator ?? 'avg', context.by)})`;
      case 'changes':
        return `clamp_max(abs(diff(${this.#query(range(), context.aggregator ?? 'max', context.by)})), 1)`;
      case 'min_over_time':
        return this.#now({ ...range(), range: null }, context);
      case 'clamp_min':
      case 'clamp_max':
        return `${name}(${this.of(first, context)}, ${this.of(second, context)})`;
      case 'abs':
        return `abs(${this.of(first, context)})`;
      default:
        throw new Untranslatable(`there is no ${name}()`);
    }
  }

  #aggregate(op: string, labels: readonly string[], args: readonly Expression[], context: Context): string {
    if (op === 'topk') {
      const [{ value }, of] = args as [{ value: number }, Expression];
      return `top(${this.of(of, context)}, ${value}, 'mean', 'desc')`;
    }
    const [inner] = args;
    if (op === 'count') return this.#count(inner, labels);
    const by = context.aggregator === null ? labels : context.by;
    const aggregator = op as Aggregator;
    if (context.aggregator !== null && context.aggregator !== aggregator)
      // Datadog aggregates once: the series of the inner one stay apart.
      return this.of(inner, { by: labels, aggregator });
    if (aggregator === 'sum' && inner.kind === 'binary' && inner.op === '-' && inner.left.kind === 'number')
      return `${this.#series(inner.right)} - ${this.of(inner.right, { by, aggregator })}`;
    if (aggregator !== 'sum' && by.length === 0 && isRatio(inner))
      return this.of(inner, { by: labelsIn(inner), aggregator: null });
    return this.of(inner, { by, aggregator });
  }

  /** How many series have that value: of metrics that are 0 or 1. */
  #count(inner: Expression, labels: readonly string[]): string {
    if (inner.kind === 'selector') return this.#series(inner);
    if (inner.kind !== 'binary' || inner.op !== '==' || inner.right.kind !== 'number')
      throw new Untranslatable('count of an expression');
    const ones = this.of(inner.left, { by: labels, aggregator: 'sum' });
    return inner.right.value === 1 ? ones : `${this.#series(inner.left)} - ${ones}`;
  }

  #series(expression: Expression): string {
    if (expression.kind !== 'selector') throw new Untranslatable('count of an expression');
    const groups = this.groups;
    const query = this.#query(expression, 'avg', labelsIn(expression));
    this.groups = groups;
    return `count_not_null(${query})`;
  }

  // ── operators ───────────────────────────────────────────────────────────────────────────────────────────────

  #binary(expression: Binary, context: Context): string {
    const { op, left, right } = expression;
    if (['+', '-', '*', '/'].includes(op)) return this.#arithmetic(expression, context);
    if (op === 'or') return this.#or(left, right, context);
    if (op === 'and') return `(${this.of(left, context)}) * (${this.truth(right, context)})`;
    if (op === 'unless') return `(${this.of(left, context)}) * (1 - ${this.truth(right, context)})`;
    return expression.isBool || isOneHot(expression)
      ? this.truth(expression, context)
      : this.#kept(expression, context);
  }

  #arithmetic({ op, left, right }: Binary, context: Context): string {
    const [isNow, isSince] = [isTime(left), isTime(right)];
    if (isNow || isSince) {
      const moment = isNow ? right : left;
      const elapsed = this.of(moment, context);
      return isNow ? elapsed : `-1 * ${elapsed}`;
    }
    const side = (expression: Expression): string => {
      const formula = this.of(expression, context);
      return expression.kind === 'binary' ? `(${formula})` : formula;
    };
    return `${side(left)} ${op} ${side(right)}`;
  }

  /** Alternatives of which one is always there, or nothing and its 0. */
  #or(left: Expression, right: Expression, context: Context): string {
    if (isZero(right)) return `default_zero(${this.of(left, context)})`;
    // Shifted by the constant, what has no series is 0.
    if (isConstantOf(right))
      return `default_zero(${this.of(left, context)} - ${right.left.value}) + ${this.of(right, context)}`;
    return `${this.of(left, context)} + ${this.of(right, context)}`;
  }

  /** 1 where the comparison holds, else 0; of numbers that are not negative. */
  truth(expression: Expression, context: Context): string {
    if (expression.kind === 'aggregate' || expression.kind === 'selector') return this.of(expression, context);
    if (expression.kind !== 'binary' || expression.right.kind !== 'number')
      throw new Untranslatable('a condition that is no comparison with a number');
    const { op, left, right } = expression;
    const value = this.of(left, context);
    const atLeast = (least: number): string => `default_zero(clamp_max(cutoff_min(${value}, ${least}), 1))`;
    if (op === '==') return right.value === 0 ? `1 - clamp_max(${value}, 1)` : value;
    if (op === '>') return right.value === 0 ? `clamp_max(${value}, 1)` : atLeast(right.value);
    if (op === '<') return `1 - ${atLeast(right.value)}`;
    throw new Untranslatable(`the comparison ${op}`);
  }

  /** The value where the comparison holds, and nothing else. */
  #kept({ op, left, right }: Binary, context: Context): string {
    if (op !== '>' || right.kind !== 'number') throw new Untranslatable(`a filter with ${op}`);
    return `cutoff_min(${this.of(left, context)}, ${right.value === 0 ? 1e-9 : right.value})`;
  }
}

/** `m{stage="live"} == 1`: of the series of which one is 1 and the others are 0. */
const isOneHot = ({ op, right }: Binary): boolean => op === '==' && right.kind === 'number' && right.value === 1;

const isTime = (expression: Expression): boolean => expression.kind === 'call' && expression.name === 'time';

/** `0 * m`, or that under another name. */
function isZero(expression: Expression): boolean {
  if (expression.kind === 'call' && expression.name === 'label_replace') return isZero(expression.args[0]);
  return (
    expression.kind === 'binary' &&
    expression.op === '*' &&
    expression.left.kind === 'number' &&
    expression.left.value === 0
  );
}

/** `3 + 0 * m`. */
const isConstantOf = (
  expression: Expression,
): expression is Binary & { readonly left: Extract<Expression, { kind: 'number' }> } =>
  expression.kind === 'binary' &&
  expression.op === '+' &&
  expression.left.kind === 'number' &&
  isZero(expression.right);

const isRatio = (expression: Expression): boolean =>
  expression.kind === 'binary' && (expression.op === '/' || isRatio(expression.left) || isRatio(expression.right));

/** By which its series differ: what it is grouped by, or all that its metric has. */
function labelsIn(expression: Expression): string[] {
  const labels = new Set<string>();
  const look = (each: Expression): void => {
    if (each.kind === 'aggregate') each.by.forEach((label) => labels.add(label));
    if (each.kind === 'selector') labelsOf(each.metric).forEach((label) => labels.add(label));
    if (each.kind === 'call') each.args.forEach(look);
    if (each.kind === 'binary') [each.left, each.right].forEach(look);
  };
  look(expression);
  return [...labels];
}

/** Which exporter it comes from is in the metric's name. */
const IN_NAME = ['job'];

export function filterOf(matchers: readonly Matcher[]): string {
  const filters = matchers.filter(({ label }) => !IN_NAME.includes(label)).flatMap(filtersOf);
  return filters.length === 0 ? '*' : filters.join(' AND ');
}

function filtersOf({ label: given, op, value }: Matcher): string[] {
  const label = tagOf(given);
  if (op === '=~' && value === `$${label}`) return [value];
  if (op === '!=' && value === '') return [];
  if (op === '=') return [`${label}:${tag(value)}`];
  const not = op.startsWith('!') ? 'NOT ' : '';
  const values = value.split('|').map((each) => tag(each.replaceAll('.*', '*')));
  if (values.some((each) => /[\\^$()[\]+?]/.test(each))) throw new Untranslatable(`the pattern ${value}`);
  const patterns = values.filter((each) => each.includes('*')).map((each) => `${not}${label}:${each}`);
  const plain = values.filter((each) => !each.includes('*'));
  const one = plain.length === 1 ? [`${not}${label}:${plain[0]}`] : [];
  return [...(plain.length > 1 ? [`${label} ${not}IN (${plain.join(',')})`] : one), ...patterns];
}

/** Datadog has them in lower case. */
const tag = (value: string): string => value.toLowerCase();

const UNITS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600, d: 86_400 };

export const secondsOf = (duration: string): number => {
  const [, digits, unit] = /^(\d+)([smhd])$/.exec(duration)!;
  return Number(digits) * UNITS[unit];
};
