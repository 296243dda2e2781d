/** An expression of PromQL as a tree, by Prometheus' own grammar. */
import type { SyntaxNode } from '@lezer/common';
import { parser } from '@prometheus-io/lezer-promql';

export interface Matcher {
  readonly label: string;
  readonly op: '=' | '!=' | '=~' | '!~';
  readonly value: string;
}

export interface Selector {
  readonly kind: 'selector';
  readonly metric: string;
  readonly matchers: readonly Matcher[];
  /** Such as `10m`; null for the value of now. */
  readonly range: string | null;
}

export type Expression =
  | { readonly kind: 'number'; readonly value: number }
  | Selector
  | { readonly kind: 'call'; readonly name: string; readonly args: readonly Expression[] }
  | {
      readonly kind: 'aggregate';
      readonly op: string;
      readonly by: readonly string[];
      readonly args: readonly Expression[];
    }
  | {
      readonly kind: 'binary';
      readonly op: string;
      readonly isBool: boolean;
      readonly left: Expression;
      readonly right: Expression;
    };

export type Binary = Extract<Expression, { kind: 'binary' }>;

/** Grafana's own interval stands for one that the grammar knows. */
const INTERVAL = '$__rate_interval';
export const RATE_INTERVAL = '66s';

/** @throws {Error} with the expression, where the grammar does not know it */
export function parse(text: string): Expression {
  const given = text.replaceAll(INTERVAL, RATE_INTERVAL);
  const tree = parser.parse(given);
  tree.iterate({
    enter: ({ type, from }) => {
      if (type.isError) throw new Error(`not PromQL at ${from}: ${text}`);
    },
  });
  return new Reader(given).read(tree.topNode.firstChild!);
}

class Reader {
  constructor(private readonly text: string) {}

  read(node: SyntaxNode): Expression {
    switch (node.name) {
      case 'ParenExpr':
      case 'StepInvariantExpr':
        return this.read(this.#expressions(node)[0]);
      case 'NumberDurationLiteral':
      case 'NumberLiteral':
        return { kind: 'number', value: Number(this.#of(node)) };
      case 'UnaryExpr':
        return this.#negative(node);
      case 'VectorSelector':
        return this.#selector(node, null);
      case 'MatrixSelector':
        return this.#selector(node.getChild('VectorSelector')!, /\[(.+)\]$/.exec(this.#of(node))![1]);
      case 'FunctionCall': {
        const name = this.#of(node.getChild('FunctionIdentifier')!);
        return { kind: 'call', name, args: this.#args(node) };
      }
      case 'AggregateExpr': {
        const by = node.getChild('AggregateModifier')?.getChild('GroupingLabels')?.getChildren('LabelName') ?? [];
        const op = this.#of(node.getChild('AggregateOp')!);
        return { kind: 'aggregate', op, by: by.map((label) => this.#of(label)), args: this.#args(node) };
      }
      case 'BinaryExpr': {
        const [left, right] = this.#expressions(node);
        const between = this.text.slice(left.to, right.from).trim();
        const op = /^(and|or|unless|[<>=!]=|[-+*/<>])/.exec(between)![1];
        return { kind: 'binary', op, isBool: /\bbool\b/.test(between), left: this.read(left), right: this.read(right) };
      }
      default:
        throw new Error(`${node.name} is not known: ${this.#of(node)}`);
    }
  }

  #of({ from, to }: SyntaxNode): string {
    return this.text.slice(from, to);
  }

  #negative(node: SyntaxNode): Expression {
    const right = this.read(this.#expressions(node)[0]);
    return { kind: 'binary', op: '*', isBool: false, left: { kind: 'number', value: -1 }, right };
  }

  #selector(node: SyntaxNode, range: string | null): Selector {
    const matchers = node.getChild('LabelMatchers')?.getChildren('UnquotedLabelMatcher') ?? [];
    return {
      kind: 'selector',
      metric: this.#of(node.getChild('Identifier')!),
      matchers: matchers.map((each) => {
        const [, label, op, value] = /^(\w+)\s*(=~|!~|!=|=)\s*"(.*)"$/.exec(this.#of(each))!;
        return { label, op: op as Matcher['op'], value };
      }),
      range,
    };
  }

  /** Without texts, which only `label_replace` has. */
  #args(node: SyntaxNode): Expression[] {
    return this.#expressions(node.getChild('FunctionCallBody')!).map((each) => this.read(each));
  }

  #expressions(node: SyntaxNode): SyntaxNode[] {
    const found: SyntaxNode[] = [];
    for (let child = node.firstChild; child !== null; child = child.nextSibling)
      if (/(Expr|Selector|Call|NumberLiteral|NumberDurationLiteral)$/.test(child.name)) found.push(child);
    return found;
  }
}

/** The metrics that it names. */
export function metricsOf(expression: Expression): string[] {
  switch (expression.kind) {
    case 'selector':
      return [expression.metric];
    case 'binary':
      return [expression.left, expression.right].flatMap(metricsOf);
    case 'number':
      return [];
    default:
      return expression.args.flatMap(metricsOf);
  }
}
