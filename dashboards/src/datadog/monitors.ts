/** The alerts of dashboards/prometheus/rules as monitors of Datadog: the same conditions, thresholds and sentences. */
import { parse, type Expression } from './expression.js';
import { labelsOf } from './names.js';
import type { Json } from './dashboard.js';
import { inline, secondsOf, translateExpression, Untranslatable } from './translate.js';

export interface Alert {
  readonly alert: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

/** Of the recording rules, by name. */
export type Recorded = ReadonlyMap<string, string>;

/** What Datadog's own functions say better than a translation would; `null`: what the checks themselves say. */
const OTHERWISE: Readonly<Record<string, string>> = {
  SuspectsGrowing:
    'min(last_5m):clamp_max(max:shadow_proxy.workload_suspects{*} by {shard,workload}, 1) * derivative(max:shadow_proxy.workload_suspects{*} by {shard,workload}) > 0',
  BackfillStalled:
    'min(last_10m):max:shadow_proxy.job_running{kind:backfill} by {shard} * (1 - clamp_max(abs(diff(max:shadow_proxy.job_bytes{*} by {shard})) + abs(diff(max:shadow_proxy.job_keys{what:seen} by {shard})), 1)) >= 1',
};

const CHECKS: Readonly<Record<string, string>> = {
  ShadowProxyDown: 'shadow_proxy.openmetrics.health',
  ScrapeTargetDown: 'redis_exporter.openmetrics.health',
};

const PRIORITIES: Readonly<Record<string, number>> = { critical: 1, warning: 3 };

/** One or more for each alert: Datadog has no `or` between two comparisons. @throws {Untranslatable} */
export function monitorsOf(alert: Alert, recorded: Recorded): readonly Json[] {
  const check = CHECKS[alert.alert];
  if (check !== undefined) return [checkOf(alert, check)];
  const given = OTHERWISE[alert.alert];
  if (given !== undefined) {
    const [, threshold] = / >=? ([\d.]+)$/.exec(given)!;
    return [metricOf(alert, alert.alert, given, Number(threshold))];
  }
  const expression = parse(expanded(alert.expr, recorded));
  const parts = alternatives(expression);
  return parts.map((part, at) => {
    const { query, threshold } = queryOf(part, alert);
    return metricOf(alert, parts.length === 1 ? alert.alert : `${alert.alert} ${at + 1}`, query, threshold);
  });
}

/** Recording rules in their places. */
export const expanded = (expr: string, recorded: Recorded): string =>
  expr.replaceAll(/\b[a-z]+:[a-z_]+:\w+\b(\{[^}]*\})?/g, (name, matchers = '') => {
    const [rule] = name.split('{');
    const found = recorded.get(rule);
    if (found === undefined) throw new Untranslatable(`there is no recording rule ${rule}`);
    // A label that the rule is asked for is one of each of its metrics.
    return `(${found.replaceAll(/\bredis_\w+/g, (metric) => `${metric}${matchers as string}`)})`;
  });

/** Comparisons between which there is an `or`, at the top. */
const alternatives = (expression: Expression): readonly Expression[] =>
  expression.kind === 'binary' && expression.op === 'or'
    ? [...alternatives(expression.left), ...alternatives(expression.right)]
    : [expression];

interface Condition {
  readonly value: Expression;
  readonly op: string;
  readonly threshold: number;
  /** What must hold, or not, besides. */
  readonly beside: readonly { readonly expression: Expression; readonly not: boolean }[];
}

function conditionOf(expression: Expression): Condition {
  if (expression.kind !== 'binary') throw new Untranslatable('an alert without a comparison');
  const { op, left, right } = expression;
  if (op === 'and' || op === 'unless') {
    const condition = conditionOf(left);
    return { ...condition, beside: [...condition.beside, { expression: right, not: op === 'unless' }] };
  }
  if (right.kind === 'number') return { value: left, op, threshold: right.value, beside: [] };
  // A difference of days is written as a product.
  const threshold = constantOf(right);
  if (threshold === null) throw new Untranslatable('a comparison with what is no number');
  return { value: left, op, threshold, beside: [] };
}

function constantOf(expression: Expression): number | null {
  if (expression.kind === 'number') return expression.value;
  if (expression.kind !== 'binary' || expression.op !== '*') return null;
  const [left, right] = [constantOf(expression.left), constantOf(expression.right)];
  return left === null || right === null ? null : left * right;
}

function queryOf(
  expression: Expression,
  { for: during = '1m', annotations = {} }: Alert,
): { readonly query: string; readonly threshold: number } {
  const { value, op, threshold, beside } = conditionOf(expression);
  const named = [...`${annotations.summary} ${annotations.description}`.matchAll(/\$labels\.(\w+)/g)].map(
    ([, label]) => label,
  );
  // Without an aggregation, series have all labels that the sentence names.
  const by = [...new Set([...labelsIn(value), ...named])];
  const window = increaseIn(value);
  const last = window ?? `${Math.max(1, Math.ceil(secondsOf(during) / 60))}m`;
  const whole = beside.reduce<Expression>(
    (all, { expression: each, not }) => ({
      kind: 'binary',
      op: not ? 'unless' : 'and',
      isBool: false,
      left: all,
      right: each,
    }),
    value,
  );
  const formula = withoutRollup(inline(translateExpression(whole, by)));
  // All values of the window must be beyond it.
  const [aggregator, comparison, limit] =
    op === '>'
      ? [window === null ? 'min' : 'sum', '>', threshold]
      : op === '<'
        ? ['max', '<', threshold]
        : threshold === 0
          ? ['max', '<', 1]
          : ['min', '>=', threshold];
  return { query: `${aggregator}(last_${last}):${formula} ${comparison} ${limit}`, threshold: limit as number };
}

/** The monitor's window is that of the sum. */
const withoutRollup = (formula: string): string => formula.replaceAll(/\.rollup\(sum, \d+\)/g, '');

/** The window of an `increase`; null where there is none. */
function increaseIn(expression: Expression): string | null {
  switch (expression.kind) {
    case 'call':
      if (expression.name === 'increase' && expression.args[0].kind === 'selector') return expression.args[0].range;
      return expression.args.map(increaseIn).find((range) => range !== null) ?? null;
    case 'aggregate':
      return expression.args.map(increaseIn).find((range) => range !== null) ?? null;
    case 'binary':
      return increaseIn(expression.left) ?? increaseIn(expression.right);
    default:
      return null;
  }
}

function labelsIn(expression: Expression): string[] {
  if (expression.kind === 'aggregate') return [...expression.by];
  if (expression.kind === 'call') return expression.args.flatMap(labelsIn);
  if (expression.kind === 'binary') return [...new Set([expression.left, expression.right].flatMap(labelsIn))];
  return expression.kind === 'selector' ? [...labelsOf(expression.metric)] : [];
}

const messageOf = ({ annotations = {} }: Alert, runbooks: string): string => {
  const text = `${annotations.summary}\n\n${annotations.description}\n\nRunbook: ${annotations.runbook_url}`;
  return text
    .replaceAll('{{ $externalLabels.runbooks }}', runbooks)
    .replaceAll(/\{\{ \$labels\.(\w+) \}\}/g, '{{$1.name}}')
    .replaceAll(/\{\{[^{}]*\$value[^{}]*\}\}/g, '{{value}}');
};

const RUNBOOKS = 'https://example.com/runbooks';

function metricOf(alert: Alert, name: string, query: string, threshold: number): Json {
  const severity = alert.labels?.severity ?? 'warning';
  return {
    name: `${name} (${severity})`,
    type: 'query alert',
    query,
    message: messageOf(alert, RUNBOOKS),
    tags: ['redis-to-keydb', `severity:${severity}`],
    priority: PRIORITIES[severity],
    options: {
      thresholds: { critical: threshold },
      notify_no_data: false,
      include_tags: true,
      require_full_window: false,
    },
  };
}

/** Three failed runs of the check, which are 45 s apart at most. */
function checkOf(alert: Alert, check: string): Json {
  return {
    ...metricOf(alert, alert.alert, `"${check}".over("*").by("endpoint").last(4).count_by_status()`, 3),
    type: 'service check',
    options: { thresholds: { critical: 3, ok: 1 }, notify_no_data: true, no_data_timeframe: 5, include_tags: true },
  };
}
