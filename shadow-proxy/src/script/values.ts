/**
 * What the expressions of a Lua text stand for, once all of the text is read (`text.ts`): which keys they name, what
 * kind of value they have, and which calls do the same on two servers.
 */
import type { CallExpression, Expression, FunctionDeclaration, Identifier } from 'luaparse';
import { rowOf } from '../command/rows.js';
import { areRepeatable } from './repeatable.js';

/** How a text names a key: as a text, as an argument (from 1), or as one of the declared keys. */
export type KeyName = { readonly text: string } | { readonly argument: number } | 'declared';

/** A name and what becomes of it. */
export interface Binding {
  /** How often it is given a value, its declaration included. */
  given: number;
  /** The value that it is declared with; undefined for nil, and where that is unknown. */
  readonly value: Expression | undefined;
  /** Its uses, without those that read an element, the length, or all elements of it. */
  others: number;
  /** A name for `redis.call` or `redis.pcall`. */
  readonly alias: 'call' | 'pcall' | null;
  /** Of which function it is a parameter, and which one. */
  readonly parameter: { readonly of: FunctionDeclaration; readonly at: number } | null;
  /** The table whose elements it takes in turn. */
  readonly elementOf: Binding | null;
  /** What values it may have; null until that is asked. */
  kind: Kind | null;
}

export type Kind = 'number' | 'text' | 'scalar' | 'any';
export interface SeenCall {
  readonly name: string;
  readonly args: readonly Expression[];
  readonly isUsed: boolean;
}

/** What a text has, when all of it is read. */
export interface Seen {
  readonly globals: Readonly<Record<'KEYS' | 'ARGV', Binding>>;
  /** What each name stands for where it is used. */
  readonly bindings: ReadonlyMap<Identifier, Binding>;
  /** The functions that a library registers: the server gives them their arguments. */
  readonly callbacks: readonly Expression[];
}

/** Of these, what give several values. */
const SEVERAL: ReadonlySet<string> = new Set(['byte', 'find', 'match', 'gsub']);
const NUMBERS_OF_STRING: ReadonlySet<string> = new Set(['byte', 'find', 'len']);

export class Values {
  constructor(private readonly seen: Seen) {}

  /** Whether the name stands for the declared keys, or the arguments, as the server gives them. */
  #isCallers(of: Binding, which: 'KEYS' | 'ARGV'): boolean {
    if (of.others > 0 || of.given > 1) return false;
    if (of === this.seen.globals[which]) return true;
    const { parameter } = of;
    if (parameter === null || parameter.at !== (which === 'KEYS' ? 0 : 1)) return false;
    return this.seen.callbacks.some((callback) => {
      if (callback === parameter.of) return true;
      const named = callback.type === 'Identifier' ? this.seen.bindings.get(callback) : undefined;
      // Its own use of the name is the only one, where nothing else calls it.
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
   * What values an expression may have: `number` and `text` may be nil or false as well, `scalar` is no table or
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

  /** Kept: without that, names that stand twice for names that stand twice for names would take forever. */
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

  /** Whether the text that a command is given for the expression is the same, whatever the server's version. */
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
   * Whether the expression may stand for any number of values at the end of a list. Some calls are known to give just
   * one.
   */
  isOpen(expression: Expression): boolean {
    if (!isMany(expression)) return false;
    if (expression.type !== 'CallExpression' || this.#kindOfCall(expression) === 'any') return true;
    return expression.base.type === 'MemberExpression' && SEVERAL.has(expression.base.identifier.name);
  }
}

/** A name that stands for a name that stands for a name. */
const MAX_NAMES = 100;
/** Integers below it are written without an exponent by every server. */
const MAX_PLAIN = 1e15;

/** Whether the expression may stand for several values at the end of a list. */
export const isMany = ({ type }: Expression): boolean => type === 'VarargLiteral' || /Call/.test(type);

/** The text that is written out; line breaks in it, which Lua may change, make it unknown. */
export function literalOf(expression: Expression | undefined): string | null {
  return expression?.type !== 'StringLiteral' || expression.raw.includes('\r') ? null : expression.value;
}
