/** What an expression names. */

/** Words that stand where a metric could, and are none. */
const WORDS = new Set(
  'sum min max avg count topk by on ignoring and or unless without rate increase deriv changes abs clamp_min clamp_max label_replace time offset bool'.split(
    ' ',
  ),
);

export interface Named {
  readonly metric: string;
  /** Of its matchers. */
  readonly labels: readonly string[];
}

/** The metrics of an expression, each with the labels that its matchers name. */
export function metricsIn(expression: string): readonly Named[] {
  // What stands in quotes is no name, and what stands behind `by (` and its like is a label.
  const bare = expression
    .replace(/"[^"]*"/g, '""')
    .replace(/\b(by|on|ignoring|without|group_left)\s*\([^)]*\)/g, '')
    .replace(/\[[^\]]*\]/g, '');
  return [...bare.matchAll(/\b([a-zA-Z_:][\w:]*)\b(?:\{([^}]*)\})?(?!\s*\()/g)]
    .filter(([, name], at, all) => !WORDS.has(name) && !insideBraces(bare, all[at].index))
    .map(([, metric, matchers = '']) => ({
      metric,
      labels: [...matchers.matchAll(/(\w+)\s*(?:=~|!~|!=|=)/g)].map(([, label]) => label),
    }));
}

const insideBraces = (text: string, at: number): boolean => text.lastIndexOf('{', at) > text.lastIndexOf('}', at);
