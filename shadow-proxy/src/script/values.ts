/**
 * What the expressions of a Lua text mean, once all of the text is read (`text.ts`): which keys they name, what kind of
 * value they have, and which calls do the same on two servers.
 */
import type { CallExpression, Expression, FunctionDeclaration, Identifier } from 'luaparse';
import { rowOf } from '../command/rows.js';
import { areRepeatable } from './repeatable.js';

/** How a text names a key: as a literal, as an argument (from 1), or as one of the declared keys. */
export type KeyName = { readonly text: string } | { readonly argument: number } | 'declared';

/** A name and its uses. */
export interface Binding {
  /** How many times it is assigned, including its declaration. */
  given: number;
  /** The value of its declaration; undefined for nil, and if it is unknown. */
  readonly value: Expression | undefined;
  /** Number of uses other than reading an element, the length, or all elements. */
  others: number;
  /** Set if the name means `redis.call` or `redis.pcall`. */
  readonly alias: 'call' | 'pcall' | null;
  /** The function of which it is a parameter, and the parameter's index. */
  readonly parameter: { readonly of: FunctionDeclaration; readonly at: number } | null;
  /** For the variable of a loop: the table whose elements it takes. */
  readonly elementOf: Binding | null;
  /** The kind of its values; null until it is needed. */
  kind: Kind | null;
}

export type Kind = 'number' | 'text' | 'scalar' | 'any';
export interface SeenCall {
  readonly name: string;
  readonly args: readonly Expression[];
  readonly isUsed: boolean;
}

/** The contents of a text, when all of it is read. */
export interface ReadText {
  readonly globals: Readonly<Record<'KEYS' | 'ARGV', Binding>>;
  /** The binding of each name where it is used. */
  readonly bindings: ReadonlyMap<Identifier, Binding>;
  /** The functions that a library registers; the server passes their arguments. */
  readonly callbacks: readonly Expression[];
}

/** Those of them that return several values. */
const SEVERAL: ReadonlySet<string> = new Set(['byte', 'find', 'match', 'gsub']);
const NUMBERS_OF_STRING: ReadonlySet<string> = new Set(['byte', 'find', 'len']);

export class Values {
  constructor(private readonly seen: ReadText) {}

  /** Whether the name means the declared keys, or the arguments, as the server passes them. */
  #isCallers(of: Binding, which: 'KEYS' | 'ARGV'): boolean {
    if (of.others > 0 || of.given > 1) return false;
    if (of === this.seen.globals[which]) return true;
    const { parameter } = of;
    if (parameter === null || parameter.at !== (which === 'KEYS' ? 0 : 1)) return false;
    return this.seen.callbacks.some((callback) => {
      if (callback === parameter.of) return true;
      const named = callback.type === 'Identifier' ? this.seen.bindings.get(callback) : undefined;
      // The only use of the name is its own, if nothing else calls the function.
      return named !== undefined && named.value === parameter.of && named.given === 1 && named.others === 1;
    });
  }

  /** Whether the expression is all declared keys, or all arguments. */
  isOfCaller(expression: Expression): boolean {
    const of = expression.type === 'Identifier' ? this.seen.bindings.get(expression) : undefined;
    return of !== undefined && (this.#isCallers(of, 'KEYS') || this.#isCallers(of, 'ARGV'));
  }

  nameOf(expression: Expression, depth = 0): KeyName | null {
    if (depth > MAX_NAMES) return null;
    switch (expression.type) {
      case 'StringLiteral': {
        const text = literalOf(expression);
        return text === null ? null : { text };
      }
      case 'IndexExpression': {
        const { base, index } = expression;
        const of = base.type === 'Identifier' ? this.seen.bindings.get(base) : undefined;
        if (of === undefined) return null;
        if (this.#isCallers(of, 'KEYS')) return 'declared';
        return this.#isCallers(of, 'ARGV') &&
          index.type === 'NumericLiteral' &&
          Number.isInteger(index.value) &&
          index.value > 0
          ? { argument: index.value }
          : null;
      }
      case 'CallExpression': {
        const [table] = expression.arguments;
        const of =
          this.#isUnpack(expression) && table.type === 'Identifier' ? this.seen.bindings.get(table) : undefined;
        return of !== undefined && this.#isCallers(of, 'KEYS') ? 'declared' : null;
      }
      case 'Identifier': {
        const of = this.seen.bindings.get(expression);
        if (of === undefined || of.given > 1) return null;
        if (of.elementOf !== null) return this.#isCallers(of.elementOf, 'KEYS') ? 'declared' : null;
        return of.value ? this.nameOf(of.value, depth + 1) : null;
      }
      default:
        return null;
    }
  }

  #isUnpack({ base, arguments: args }: CallExpression): boolean {
    return (
      base.type === 'Identifier' &&
      base.name === 'unpack' &&
      this.seen.bindings.get(base) === undefined &&
      args.length > 0
    );
  }

  /**
   * The kind of values of an expression: `number` and `text` may also be nil or false; `scalar` is no table or
   * function.
   */
  kindOf(expression: Expression, depth = 0): Kind {
    if (depth > MAX_NAMES) return 'any';
    switch (expression.type) {
      case 'StringLiteral':
        return 'text';
      case 'NumericLiteral':
        return 'number';
      case 'BooleanLiteral':
      case 'NilLiteral':
        return 'scalar';
      case 'UnaryExpression':
        return expression.operator === 'not' ? 'scalar' : 'number';
      case 'BinaryExpression':
        if (expression.operator === '..') return 'text';
        return ['+', '-', '*', '/', '%'].includes(expression.operator) ? 'number' : 'scalar';
      case 'LogicalExpression': {
        const kinds = [this.kindOf(expression.left, depth + 1), this.kindOf(expression.right, depth + 1)];
        return kinds.includes('any') ? 'any' : kinds[0] === kinds[1] ? kinds[0] : 'scalar';
      }
      case 'IndexExpression': {
        const of = expression.base.type === 'Identifier' ? this.seen.bindings.get(expression.base) : undefined;
        return of !== undefined && (this.#isCallers(of, 'KEYS') || this.#isCallers(of, 'ARGV')) ? 'text' : 'any';
      }
      case 'Identifier': {
        const of = this.seen.bindings.get(expression);
        if (of === undefined || of.given > 1) return 'any';
        if (of.elementOf !== null)
          return this.#isCallers(of.elementOf, 'KEYS') || this.#isCallers(of.elementOf, 'ARGV') ? 'text' : 'any';
        return this.#kindOfBinding(of, depth);
      }
      case 'CallExpression':
        return this.#kindOfCall(expression);
      default:
        return 'any';
    }
  }

  /** The result is kept: otherwise names that refer twice to names that refer twice to names would take forever. */
  #kindOfBinding(of: Binding, depth: number): Kind {
    of.kind ??= of.value ? this.kindOf(of.value, depth + 1) : 'any';
    return of.kind;
  }

  #kindOfCall(call: CallExpression): Kind {
    const { base } = call;
    if (base.type === 'Identifier') {
      const of = this.seen.bindings.get(base);
      if (of?.alias === 'call') return this.#kindOfReply(call);
      if (of !== undefined) return 'any';
      return base.name === 'tonumber' ? 'number' : base.name === 'tostring' || base.name === 'type' ? 'text' : 'any';
    }
    if (base.type !== 'MemberExpression') return 'any';
    const { name } = base.identifier;
    if (base.base.type !== 'Identifier' || this.seen.bindings.get(base.base) !== undefined) return 'any';
    switch (base.base.name) {
      case 'redis':
        return name === 'call' ? this.#kindOfReply(call) : 'any';
      case 'math':
        return 'number';
      case 'string':
        return NUMBERS_OF_STRING.has(name)
          ? 'number'
          : name === 'match'
            ? 'scalar'
            : name === 'gmatch'
              ? 'any'
              : 'text';
      case 'table':
        return name === 'concat' ? 'text' : name === 'getn' ? 'number' : 'any';
      default:
        return 'any';
    }
  }

  #kindOfReply({ arguments: [name] }: CallExpression): Kind {
    const literal = literalOf(name);
    const reply = literal === null ? undefined : rowOf(literal.toLowerCase())?.repeatable?.reply;
    return reply === 'number' || reply === 'text' ? reply : 'any';
  }

  /** Whether the text that a command gets for the expression is the same for any server version. */
  isPlain(expression: Expression): boolean {
    if (expression.type === 'NumericLiteral') return Number.isInteger(expression.value) && expression.value < MAX_PLAIN;
    if (expression.type === 'LogicalExpression') return this.isPlain(expression.left) && this.isPlain(expression.right);
    if (expression.type === 'CallExpression' && this.#isUnpack(expression))
      return this.isOfCaller(expression.arguments[0]);
    return this.kindOf(expression) === 'text';
  }

  isRepeatable({ name, args, isUsed }: SeenCall): boolean {
    const allowed = rowOf(name)?.repeatable;
    if (allowed === undefined || (isUsed && allowed.reply === null)) return false;
    const written = args.map((arg, i) => ({
      literal: literalOf(arg),
      open: i === args.length - 1 && this.isOpen(arg),
    }));
    return areRepeatable(allowed, written);
  }

  /**
   * Whether the expression may be any number of values at the end of a list. Some calls are known to return exactly
   * one.
   */
  isOpen(expression: Expression): boolean {
    if (!isMany(expression)) return false;
    if (expression.type !== 'CallExpression' || this.#kindOfCall(expression) === 'any') return true;
    return expression.base.type === 'MemberExpression' && SEVERAL.has(expression.base.identifier.name);
  }
}

/** Maximum length of a chain of names that refer to each other. */
const MAX_NAMES = 100;
/** Every server writes smaller integers without an exponent. */
const MAX_PLAIN = 1e15;

/** Whether the expression may be several values at the end of a list. */
export const isMany = ({ type }: Expression): boolean => type === 'VarargLiteral' || /Call/.test(type);

/** The text of a literal. Line breaks in it, which Lua may change, make it unknown. */
export function literalOf(expression: Expression | undefined): string | null {
  return expression?.type !== 'StringLiteral' || expression.raw.includes('\r') ? null : expression.value;
}
