/**
 * The arrows of docs/architecture.md, kept:
 *
 *   main, cli → control → session → lane → command, route → resp
 *
 * `copy` and `session` are producers on `lane`; `compare` sees frames only; `record` is told and never asks.
 * `plan` gives everybody its types and needs only the stages; `local` starts servers for the demo and the tests; `text` has
 * figures as people read them, for everybody.
 */
const SRC = 'shadow-proxy/src';

/** What each directory may import besides itself. */
const MAY_IMPORT = {
  text: [],
  resp: [],
  route: ['resp', 'plan'],
  command: ['resp', 'route'],
  compare: ['resp'],
  plan: ['route'],
  record: ['resp', 'route', 'command', 'plan', 'compare'],
  lane: ['resp', 'route', 'command', 'compare', 'record', 'plan'],
  regional: ['resp', 'route', 'lane'],
  session: ['resp', 'route', 'command', 'compare', 'record', 'plan', 'lane', 'regional'],
  copy: ['resp', 'route', 'command', 'compare', 'record', 'plan', 'lane'],
  control: ['resp', 'route', 'command', 'compare', 'record', 'plan', 'lane', 'session', 'copy', 'guard', 'regional'],
  guard: ['resp', 'route', 'command', 'plan', 'lane'],
  assess: ['resp', 'route', 'command', 'plan', 'lane'],
  local: [],
  html: [],
  report: ['page', 'html', 'route', 'plan', 'record', 'control'],
  runbook: ['route', 'plan'],
  page: ['html', 'route', 'plan', 'record', 'control'],
};

const arrows = Object.entries(MAY_IMPORT).map(([from, to]) => ({
  name: `arrows-of-${from}`,
  comment: `${from}/ may import ${['text', ...to].map((name) => `${name}/`).join(', ')}`,
  severity: 'error',
  from: { path: `^${SRC}/${from}/` },
  to: { path: `^${SRC}/`, pathNot: [from, 'text', ...to].map((name) => `^${SRC}/${name}/`) },
}));

module.exports = {
  forbidden: [
    ...arrows,
    {
      name: 'counters-alone',
      comment: 'The counters are a package of their own: it needs nothing of the others, and no client but the one it is given',
      severity: 'error',
      from: { path: '^counters/src/' },
      to: { pathNot: '^counters/src/', dependencyTypesNot: ['core'] },
    },
    {
      name: 'no-cycles',
      comment: 'Two files that need each other to run are one, or lack a third; types alone may go both ways',
      severity: 'error',
      from: {},
      to: { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } },
    },
    {
      name: 'not-to-tests',
      comment: 'The product does not need its tests',
      severity: 'error',
      from: { path: `^${SRC}/` },
      to: { path: '^(shadow-proxy/test|loadtest|conformance)/' },
    },
    {
      name: 'resolvable',
      comment: 'An import that cannot be found escapes the rules above',
      severity: 'error',
      from: {},
      to: { couldNotResolve: true },
    },
    {
      name: 'declared',
      comment: 'What runs is in dependencies, not in devDependencies',
      severity: 'error',
      from: { path: `^${SRC}/` },
      to: { dependencyTypes: ['npm-dev', 'npm-no-pkg', 'npm-unknown'], dependencyTypesNot: ['type-only'] },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'node', 'default', 'types'] },
  },
};
