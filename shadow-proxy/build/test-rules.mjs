/** ESLint rules of our own, for tests. `eslint.config.js` turns them on. */

/** What is that short gives way to other events: nothing is expected to have ended by then. */
const SHORT_MS = 10;

/** A reader learns from the first line what a file of tests shows. */
export const sayWhatTheyShow = {
  create: (context) => ({
    Program(node) {
      if (!context.sourceCode.text.startsWith('/**'))
        context.report({ node, message: 'Say in a comment at the top what these tests show.' });
    },
  }),
};

/** How the line begins that says why no simulated run takes the place of a file: docs/testing.md has what each means. */
const REASONS = [
  ...['Needs real servers', 'Needs real processes', 'Needs real sockets', 'Needs real files'],
  'Not simulated yet',
];
const REASON = new RegExp(`^[ *]*(${REASONS.join('|')}): \\S.*\\.$`, 'm');

/** Refuses a file whose first comment does not say, in a line of its own, what only real servers can show. */
export const sayWhatIsReal = {
  create: (context) => ({
    Program(node) {
      const [first] = context.sourceCode.getAllComments();
      if (first === undefined || !REASON.test(first.value))
        context.report({
          node,
          message: `Say in a line of the first comment why a simulated run does not show this: "${REASONS.join(': …." or "')}: …."`,
        });
    },
  }),
};

/**
 * Refuses a fixed time that a test waits before it asserts: too short on a busy machine, and lost time on a quiet one.
 * A comment before the line, or behind it, may say why there is nothing else to wait for.
 */
export const noFixedWait = {
  create(context) {
    const { sourceCode } = context;
    /** The local names of `setTimeout` of node:timers/promises, and of what the product has instead. */
    const sleeps = new Set();
    return {
      ImportDeclaration({ source, specifiers }) {
        if (!/^(node:)?timers\/promises$|\/io\/timers\.js$/.test(source.value)) return;
        for (const { imported, local } of specifiers)
          if (/^(setTimeout|sleep)$/.test(imported?.name)) sleeps.add(local.name);
      },
      'ExpressionStatement[expression.type="AwaitExpression"]'(node) {
        const time = timeOf(node.expression.argument, sleeps);
        if (time === undefined || longest(time, sourceCode) <= SHORT_MS) return;
        const { body } = node.parent;
        if (!Array.isArray(body)) return;
        const isFollowed = body
          .slice(body.indexOf(node) + 1)
          .some((later) => has(later, isAssertion, sourceCode.visitorKeys));
        if (isFollowed && !isCommented(node, sourceCode))
          context.report({
            node,
            message:
              'Wait for what the assertion needs, with until() or a reply. If only time can show it, say why in a comment.',
          });
      },
    };
  },
};

/** Refuses an assertion that no more than so much wall-clock time has passed: a busy machine breaks it. */
export const noWallClockLimit = {
  create(context) {
    const { sourceCode } = context;
    const isReading = (node) => node.type === 'CallExpression' && node.callee.property?.name === 'now';
    const isDifference = ({ type, operator, left }) =>
      type === 'BinaryExpression' && operator === '-' && isReading(left);
    /** What is a difference of two readings, or a variable that is given one. */
    const isSpan = (node) =>
      isDifference(node) ||
      (node.type === 'Identifier' &&
        variableOf(node, sourceCode)?.references.some(
          ({ writeExpr }) => writeExpr && has(writeExpr, isDifference, sourceCode.visitorKeys),
        ) === true);
    const isPatient = (node) => has(node, isPatience, sourceCode.visitorKeys);
    return {
      CallExpression(node) {
        if (!isAssertion(node)) return;
        for (const limit of [node.arguments[0]].filter(Boolean))
          if (
            has(
              limit,
              ({ type, operator, left, right }) =>
                type === 'BinaryExpression' && /^<=?$/.test(operator) && isSpan(left) && !isPatient(right),
              sourceCode.visitorKeys,
            )
          )
            context.report({
              node,
              message: 'A busy machine breaks a limit of wall-clock time: use patienceMs(), or compare CPU time.',
            });
      },
    };
  },
};

const isPatience = ({ type, callee }) => type === 'CallExpression' && callee.name === 'patienceMs';

/** `assert(…)`, `assert.equal(…)`, and functions whose names begin with that. */
const isAssertion = ({ type, callee }) =>
  type === 'CallExpression' && /^assert/.test(callee.name ?? callee.object?.name ?? callee.property?.name ?? '');

/** The time that the awaited expression takes, as an expression; undefined where it is no sleep. */
function timeOf(awaited, sleeps) {
  const { type, callee, arguments: args } = awaited;
  if (type === 'CallExpression') return sleeps.has(callee.name) ? args[0] : undefined;
  if (type !== 'NewExpression' || callee.name !== 'Promise') return undefined;
  const call = args[0]?.body;
  return call?.type === 'CallExpression' && call.callee.name === 'setTimeout' ? call.arguments[1] : undefined;
}

/** So many ms, where the file says it; Infinity otherwise. */
function longest(time, sourceCode) {
  switch (time.type) {
    case 'Literal':
      return time.value;
    case 'Identifier': {
      const value = initOf(time, sourceCode);
      return value === undefined ? Infinity : longest(value, sourceCode);
    }
    case 'BinaryExpression':
      return time.operator === '*' ? longest(time.left, sourceCode) * longest(time.right, sourceCode) : Infinity;
    case 'CallExpression':
      return sourceCode.getText(time.callee) === 'Math.random' ? 1 : Infinity;
    default:
      return Infinity;
  }
}

/** What the constant of that name is, where it is known. */
function initOf(identifier, sourceCode) {
  const definition = variableOf(identifier, sourceCode)?.defs[0];
  return definition?.parent?.kind === 'const' ? (definition.node.init ?? undefined) : undefined;
}

function variableOf(identifier, sourceCode) {
  for (let scope = sourceCode.getScope(identifier); scope !== null; scope = scope.upper)
    if (scope.set.has(identifier.name)) return scope.set.get(identifier.name);
  return undefined;
}

function isCommented(node, sourceCode) {
  const behind = sourceCode.getCommentsAfter(node).some(({ loc }) => loc.start.line === node.loc.end.line);
  // What stands behind the statement before is of that one.
  const before = sourceCode
    .getCommentsBefore(node)
    .some(({ loc }) => sourceCode.getTokenBefore(node)?.loc.end.line !== loc.start.line);
  return behind || before;
}

/** Whether the node, or one inside it, is such a one. */
const has = (node, isOne, visitorKeys) =>
  isOne(node) ||
  (visitorKeys[node.type] ?? [])
    .flatMap((key) => node[key] ?? [])
    .filter((inner) => inner !== null)
    .some((inner) => has(inner, isOne, visitorKeys));
