/**
 * What a Lua text does, from its syntax tree (luaparse, Lua 5.1): which commands it calls, which keys they name, and
 * whether it does the same on two servers with the same data. Only constructs of closed lists are understood; any other
 * one may do anything.
 *
 *   text ─▶ parse ─▶ Reader: names, scopes, calls ─▶ which arguments name a key, which values are texts or numbers
 */
import luaparse from 'luaparse';
import type {
  CallExpression,
  Chunk,
  Expression,
  FunctionDeclaration,
  Identifier,
  IndexExpression,
  MemberExpression,
  Statement,
} from 'luaparse';
import { isMany, literalOf, Values, type Binding, type KeyName, type ReadText, type SeenCall } from './values.js';

/** A call of a command. */
export interface Call {
  /** The name in lower case. */
  readonly name: string;
  /** The subcommand, in lower case, if the text shows it; else null. */
  readonly subcommand: string | null;
  /** The key that each argument would name; null if that is unknown. */
  readonly names: readonly (KeyName | null)[];
  /** Whether the last argument may be any number of arguments. */
  readonly open: boolean;
}

export interface Reading {
  /** The commands that it calls; null if it may call others. */
  readonly calls: readonly Call[] | null;
  /** Whether the script certainly does the same on two servers with the same data. */
  readonly repeatable: boolean;
  /** Whether the script passes a computed number to a command; its text depends on the server's version. */
  readonly writesNumbers: boolean;
}

export const NOT_UNDERSTOOD: Reading = { calls: null, repeatable: false, writesNumbers: true };

/** A longer text is not read: reading this length takes some milliseconds. */
const MAX_CHARACTERS = 64 << 10;

/**
 * Reads a script, or a library of functions.
 * @param text its bytes as latin1
 */
export function readText(text: string, isLibrary: boolean): Reading {
  if (text.length > MAX_CHARACTERS) return NOT_UNDERSTOOD;
  try {
    // The first line of a library, or of a script with flags, is not Lua.
    const chunk = luaparse.parse(text.replace(/^#![^\n]*/, ''), {
      luaVersion: '5.1',
      encodingMode: 'pseudo-latin1',
      comments: false,
    });
    return new Reader(isLibrary).read(chunk);
  } catch {
    // A syntax error, an unknown construct, or nesting so deep that the stack overflows.
    return NOT_UNDERSTOOD;
  }
}

/**
 * From this number on, `unpack` may pass a call the 7,996 arguments that crash KeyDB 6.3.4; it never passes more than
 * 8,000.
 */
export const MANY = 7_900;

/** How many arguments a script needs before one of its calls may have too many for KeyDB; Infinity: never. */
export function tooManyFrom(text: string): number {
  if (!/\bunpack\b/.test(text)) return Infinity;
  return (text.match(/\b\d+\b/g) ?? []).some((number) => Number(number) >= MANY && Number(number) <= 8_000) ? 0 : MANY;
}

/** Whether a text that cannot be parsed contains the name of a command that leaves its database. */
export const mentionsDatabases = (text: string): boolean =>
  /(["']|\[=*\[)\s*(select|move|copy|swapdb)\s*(["']|\])/i.test(text);

// ── the closed lists ──────────────────────────────────────────────────────────────────────────────────────────────

const words = (text: string): ReadonlySet<string> => new Set(text.split(' '));

/** Names that lead neither to other calls of commands nor to other names. */
const GLOBALS = words(
  'KEYS ARGV string table math os tonumber tostring ipairs pairs type unpack next select error assert pcall xpcall cjson cmsgpack bit struct rawequal collectgarbage',
);
/** Members of `redis`, besides the calls. */
const OF_REDIS = words(
  'sha1hex setresp replicate_commands set_repl REPL_ALL REPL_NONE REPL_AOF REPL_SLAVE REPL_REPLICA error_reply status_reply log LOG_DEBUG LOG_VERBOSE LOG_NOTICE LOG_WARNING register_function',
);

// Functions that a replicated script may use; `tostring`, `ipairs` and `unpack` as far as `Reader` checks their use.
const FUNCTIONS = words('tonumber type error assert select');
const MEMBERS: Readonly<Record<string, ReadonlySet<string> | undefined>> = {
  string: words('byte char find format gmatch gsub len lower match rep reverse sub upper'),
  table: words('insert remove concat getn'),
  math: words('abs ceil floor fmod huge max min'),
  redis: words('error_reply status_reply log LOG_DEBUG LOG_VERBOSE LOG_NOTICE LOG_WARNING'),
};

// ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────────

const binding = (some: Partial<Binding> = {}): Binding => ({
  given: 1,
  value: undefined,
  others: 0,
  alias: null,
  parameter: null,
  elementOf: null,
  kind: null,
  ...some,
});

class Reader {
  readonly #scopes: Map<string, Binding>[] = [];
  readonly #globals: ReadText['globals'] = { KEYS: binding(), ARGV: binding() };
  readonly #bindings = new Map<Identifier, Binding>();
  readonly #calls: SeenCall[] = [];
  readonly #callbacks: Expression[] = [];
  readonly #values: Values;
  #callsKnown = true;
  #repeatable = true;
  /** Checks that run when every use of each name is known. */
  readonly #later: (() => boolean)[] = [];

  constructor(private readonly isLibrary: boolean) {
    this.#values = new Values({
      globals: this.#globals,
      bindings: this.#bindings,
      callbacks: this.#callbacks,
    });
  }

  read(chunk: Chunk): Reading {
    this.#block(chunk.body, []);
    const repeatable =
      this.#callsKnown &&
      this.#repeatable &&
      !this.isLibrary &&
      this.#calls.every((call) => this.#values.isRepeatable(call)) &&
      this.#later.every((judge) => judge());
    return {
      calls: this.#callsKnown ? this.#calls.map((call) => this.#callOf(call)) : null,
      repeatable,
      writesNumbers: this.#calls.some(({ args }) => args.some((arg) => !this.#values.isPlain(arg))),
    };
  }

  #callOf({ name, args }: SeenCall): Call {
    const last = args.at(-1);
    return {
      name,
      subcommand: literalOf(args[0])?.toLowerCase() ?? null,
      names: args.map((arg) => this.#values.nameOf(arg)),
      open: last !== undefined && this.#values.isOpen(last),
    };
  }

  // ── names ──

  #find(name: string): Binding | undefined {
    for (let i = this.#scopes.length - 1; i >= 0; i--) {
      const found = this.#scopes[i].get(name);
      if (found !== undefined) return found;
    }
    return !this.isLibrary && (name === 'KEYS' || name === 'ARGV') ? this.#globals[name] : undefined;
  }

  #declare(name: string, declared: Binding): void {
    this.#scopes.at(-1)!.set(name, declared);
  }

  /** Whether the expression is the global with that name. */
  #isGlobal(expression: Expression, name: string): boolean {
    return expression.type === 'Identifier' && expression.name === name && this.#find(name) === undefined;
  }

  /** The member name in `redis.name`; null for any other expression. */
  #memberOfRedis(expression: Expression): string | null {
    if (expression.type !== 'MemberExpression' || expression.indexer !== '.') return null;
    return this.#isGlobal(expression.base, 'redis') ? expression.identifier.name : null;
  }

  // ── statements ──

  #block(
    body: readonly Statement[],
    declared: readonly (readonly [name: string, Binding])[],
    then: () => void = () => undefined,
  ): void {
    this.#scopes.push(new Map());
    for (const [name, of] of declared) this.#declare(name, of);
    for (const statement of body) this.#statement(statement);
    then();
    this.#scopes.pop();
  }

  #statement(statement: Statement): void {
    switch (statement.type) {
      case 'LocalStatement':
        return this.#local(statement.variables, statement.init);
      case 'AssignmentStatement':
        for (const each of statement.init) this.#expression(each);
        for (const target of statement.variables) this.#assign(target);
        return;
      case 'CallStatement':
        return this.#expression(statement.expression, false);
      case 'ReturnStatement':
        for (const each of statement.arguments) this.#expression(each);
        return;
      case 'IfStatement':
        for (const clause of statement.clauses) {
          if (clause.type !== 'ElseClause') this.#expression(clause.condition);
          this.#block(clause.body, []);
        }
        return;
      case 'WhileStatement':
        this.#expression(statement.condition);
        return this.#block(statement.body, []);
      case 'RepeatStatement':
        return this.#block(statement.body, [], () => this.#expression(statement.condition));
      case 'DoStatement':
        return this.#block(statement.body, []);
      case 'BreakStatement':
        return;
      case 'ForNumericStatement':
        for (const each of [statement.start, statement.end, statement.step]) if (each !== null) this.#expression(each);
        return this.#block(statement.body, [[statement.variable.name, binding({ kind: 'number' })]]);
      case 'ForGenericStatement': {
        const element = this.#iterators(statement.iterators);
        return this.#block(
          statement.body,
          statement.variables.map(({ name }, i) => [name, i === 1 && element !== null ? element : binding()]),
        );
      }
      case 'FunctionDeclaration':
        return this.#declareFunction(statement);
      default:
        throw new Error(`${statement.type} is not Lua 5.1`);
    }
  }

  #local(variables: readonly Identifier[], init: readonly Expression[]): void {
    const values = init.map((value, i) => {
      const member = this.#memberOfRedis(value);
      if ((member === 'call' || member === 'pcall') && i < variables.length) return binding({ alias: member });
      this.#expression(value);
      return binding({ value });
    });
    const last = init.at(-1);
    variables.forEach((name, i) => {
      // If several names are assigned from one call, their values are unknown.
      const open = last !== undefined && i >= init.length - 1 && variables.length > init.length && isMany(last);
      this.#declare(name.name, i < init.length && !open ? values[i] : binding());
    });
  }

  #assign(target: Identifier | IndexExpression | MemberExpression): void {
    if (target.type === 'Identifier') {
      const found = this.#find(target.name);
      if (found === undefined) this.#repeatable = false;
      else if (found.alias !== null) this.#callsKnown = false;
      else found.given++;
      if (found === undefined && (GLOBALS.has(target.name) || target.name === 'redis')) this.#callsKnown = false;
      return;
    }
    this.#expression(target.base);
    if (target.type === 'IndexExpression') this.#expression(target.index);
  }

  #declareFunction(declared: FunctionDeclaration): void {
    // Only an expression has none.
    const identifier = declared.identifier!;
    if (declared.isLocal) this.#declare((identifier as Identifier).name, binding({ value: declared }));
    else {
      this.#assign(identifier);
      // The first parameter of a method has no name.
      if (identifier.type === 'MemberExpression') this.#repeatable = false;
    }
    this.#function(declared);
  }

  #function(declared: FunctionDeclaration): void {
    const isMethod = declared.identifier?.type === 'MemberExpression' && declared.identifier.indexer === ':';
    const parameters = declared.parameters.map((name, at): [string, Binding] => {
      // The parameter `...` has no name.
      if (name.type !== 'Identifier') this.#repeatable = false;
      return [name.type === 'Identifier' ? name.name : '...', binding({ parameter: { of: declared, at } })];
    });
    this.#block(declared.body, isMethod ? [['self', binding()], ...parameters] : parameters);
  }

  /** The iterators of a `for`: the binding of the table whose elements they return; null for others. */
  #iterators(iterators: readonly Expression[]): Binding | null {
    const [only] = iterators;
    const isCall = iterators.length === 1 && only.type === 'CallExpression';
    if (isCall && this.#isGlobal(only.base, 'ipairs') && only.arguments.length === 1) {
      const [table] = only.arguments;
      const of = this.#readsOf(table);
      if (of === null) this.#expression(table);
      return binding({ elementOf: of });
    }
    const isMatch = isCall && only.base.type === 'MemberExpression' && only.base.identifier.name === 'gmatch';
    if (!isMatch) this.#repeatable = false;
    for (const each of iterators) this.#expression(each);
    return null;
  }

  /** Records that elements of the table are read, if it has a name. @returns its binding */
  #readsOf(table: Expression): Binding | null {
    if (table.type !== 'Identifier') return null;
    const found = this.#find(table.name);
    if (found === undefined || found.alias !== null) return null;
    this.#bindings.set(table, found);
    return found;
  }

  // ── expressions ──

  /** @param isUsed whether the value is used */
  #expression(expression: Expression, isUsed = true): void {
    switch (expression.type) {
      case 'StringLiteral':
      case 'NumericLiteral':
      case 'BooleanLiteral':
      case 'NilLiteral':
        return;
      case 'VarargLiteral':
        this.#repeatable = false;
        return;
      case 'Identifier':
        return this.#identifier(expression);
      case 'FunctionDeclaration':
        return this.#function(expression);
      case 'TableConstructorExpression':
        for (const field of expression.fields) {
          if (field.type === 'TableKey') this.#expression(field.key);
          this.#expression(field.value);
        }
        return;
      case 'LogicalExpression':
        this.#expression(expression.left);
        return this.#expression(expression.right);
      case 'BinaryExpression':
        return this.#binary(expression.operator, expression.left, expression.right);
      case 'UnaryExpression':
        if (expression.operator !== '#' || this.#readsOf(expression.argument) === null)
          this.#expression(expression.argument);
        return;
      case 'IndexExpression':
        if (this.#readsOf(expression.base) === null) this.#expression(expression.base);
        return this.#expression(expression.index);
      case 'MemberExpression':
        return this.#member(expression.base, expression.identifier.name, expression.indexer);
      case 'CallExpression':
        return this.#call(expression, isUsed);
      case 'TableCallExpression':
      case 'StringCallExpression': {
        this.#repeatable = false;
        const argument = expression.type === 'TableCallExpression' ? expression.arguments : expression.argument;
        if (this.isLibrary && this.#memberOfRedis(expression.base) === 'register_function')
          return this.#register([argument]);
        this.#expression(expression.base);
        return this.#expression(argument);
      }
      default:
        throw new Error(`${(expression as Expression).type} is not Lua 5.1`);
    }
  }

  /** A name whose value is passed on. */
  #identifier(identifier: Identifier): void {
    const found = this.#find(identifier.name);
    if (found !== undefined) {
      this.#bindings.set(identifier, found);
      found.others++;
      if (found.alias !== null) this.#callsKnown = false;
      // Any code that gets the declared keys or arguments may change them.
      if (found === this.#globals.KEYS || found === this.#globals.ARGV) this.#repeatable = false;
      return;
    }
    this.#repeatable = false;
    if (!GLOBALS.has(identifier.name)) this.#callsKnown = false;
  }

  #member(base: Expression, name: string, indexer: '.' | ':'): void {
    if (base.type === 'Identifier' && this.#find(base.name) === undefined) {
      const known = base.name === 'redis' ? OF_REDIS.has(name) : GLOBALS.has(base.name);
      if (!known || indexer === ':') this.#callsKnown = false;
      if (MEMBERS[base.name]?.has(name) !== true) this.#repeatable = false;
      return;
    }
    if (this.#readsOf(base) === null) this.#expression(base);
  }

  /** Comparison of texts depends on the server's locale; powers depend on the processor. */
  #binary(operator: string, left: Expression, right: Expression): void {
    this.#expression(left);
    this.#expression(right);
    if (operator === '^') this.#repeatable = false;
    if (['<', '<=', '>', '>='].includes(operator))
      this.#later.push(() => this.#values.kindOf(left) === 'number' || this.#values.kindOf(right) === 'number');
  }

  #call(call: CallExpression, isUsed: boolean): void {
    const { base, arguments: args } = call;
    const command = this.#commandOf(call);
    if (command !== null) {
      const [name, ...rest] = args;
      if (command === 'pcall') this.#repeatable = false;
      const literal = literalOf(name);
      if (literal === null) this.#callsKnown = false;
      else this.#calls.push({ name: literal.toLowerCase(), args: rest, isUsed });
      if (base.type === 'Identifier') this.#bindings.set(base, this.#find(base.name)!);
      return this.#arguments(args);
    }
    if (this.isLibrary && this.#memberOfRedis(base) === 'register_function') return this.#register(args);
    this.#arguments(this.#callee(base, args));
  }

  #arguments(args: readonly Expression[]): void {
    for (const each of args) this.#expression(each);
  }

  /** `call` or `pcall`, if the expression calls a command; else null. */
  #commandOf({ base }: CallExpression): 'call' | 'pcall' | null {
    if (base.type === 'Identifier') return this.#find(base.name)?.alias ?? null;
    const member = this.#memberOfRedis(base);
    return member === 'call' || member === 'pcall' ? member : null;
  }

  /** Checks the called function, if it is no command. @returns the arguments that are still to be checked */
  #callee(base: Expression, args: readonly Expression[]): readonly Expression[] {
    if (base.type !== 'Identifier') {
      const isMethod = base.type === 'MemberExpression' && base.indexer === ':';
      const isLibrary =
        base.type === 'MemberExpression' && base.base.type === 'Identifier' && this.#find(base.base.name) === undefined;
      // A method of a text; a table's own method is a function of this text.
      if (isMethod ? !MEMBERS.string!.has(base.identifier.name) : !isLibrary) this.#repeatable = false;
      this.#expression(base);
      return args;
    }
    const found = this.#find(base.name);
    if (found !== undefined) {
      this.#bindings.set(base, found);
      found.others++;
      this.#later.push(() => found.given === 1 && found.value?.type === 'FunctionDeclaration');
      return args;
    }
    if (!GLOBALS.has(base.name)) this.#callsKnown = false;
    if (base.name === 'unpack' && args.length > 0) {
      this.#later.push(() => this.#values.isOfCaller(args[0]));
      return this.#readsOf(args[0]) === null ? args : args.slice(1);
    }
    if (base.name === 'tostring') this.#later.push(() => args.length === 1 && this.#values.kindOf(args[0]) !== 'any');
    else if (!FUNCTIONS.has(base.name)) this.#repeatable = false;
    return args;
  }

  /** `redis.register_function(name, function)`, or the form with one table. */
  #register(args: readonly Expression[]): void {
    const fields = args.length === 1 && args[0].type === 'TableConstructorExpression' ? args[0].fields : null;
    const given =
      fields === null
        ? args
        : fields.flatMap((field) =>
            field.type === 'TableKeyString' && field.key.name === 'callback' ? [field.value] : [],
          );
    this.#callbacks.push(...given);
    this.#arguments(args);
  }
}
