/**
 * The house of docs/architecture.md, kept: a room imports only rooms that stand before it in this list.
 * Some rooms may import still less; no two files import each other, not even for types.
 */
const SRC = 'shadow-proxy/src';

/** From the ground up: the order in which a command meets them, then those who watch and change the whole. */
const ROOMS = [
  'text',
  'io',
  'resp',
  'route',
  'plan',
  'front',
  'command',
  'compare',
  'telemetry',
  'storage',
  'upstream',
  'lease',
  'script',
  'pipeline',
  'suspects',
  'regional',
  'session',
  'sentinel',
  'copy',
  'guard',
  'stages',
  'health',
  'notify',
  'otel',
  'html',
  'page',
  'admin',
  'shard',
  'report',
  'runbook',
  'local',
  'assess',
  'cli',
  'docs',
];

/** Rooms that may import less than all before them. */
const ONLY = {
  route: ['resp'],
  plan: ['route'],
  front: ['io', 'plan'],
  compare: ['resp'],
  sentinel: ['io', 'resp', 'route', 'plan', 'front', 'lease', 'session'],
  guard: ['io', 'resp', 'route', 'command', 'plan', 'upstream'],
  assess: ['io', 'resp', 'route', 'command', 'plan', 'compare', 'telemetry', 'upstream'],
  notify: ['io', 'route', 'plan', 'telemetry', 'storage'],
  otel: ['io', 'route', 'plan', 'compare', 'telemetry', 'pipeline'],
  html: [],
  local: ['resp', 'route'],
  runbook: ['route', 'plan'],
};

const arrows = ROOMS.map((room, at) => {
  const may = ['text', ...(ONLY[room] ?? ROOMS.slice(0, at))];
  return {
    name: `arrows-of-${room}`,
    comment: `${room}/ may import ${may.map((name) => `${name}/`).join(', ')}`,
    severity: 'error',
    from: { path: `^${SRC}/${room}/` },
    to: { path: `^${SRC}/`, pathNot: [room, ...may].map((name) => `^${SRC}/${name}/`) },
  };
});

module.exports = {
  forbidden: [
    ...arrows,
    {
      name: 'a-room-for-each',
      comment: `A folder of ${SRC} has its place in the list of rooms`,
      severity: 'error',
      from: { path: `^${SRC}/[^/]+/`, pathNot: ROOMS.map((room) => `^${SRC}/${room}/`) },
      to: {},
    },
    {
      name: 'handlers-know-no-session',
      comment: 'A handler depends on CommandContext, so that it can be tested without servers',
      severity: 'error',
      from: { path: `^${SRC}/session/handlers/` },
      to: { path: `^${SRC}/session/(session|dispatch)\\.ts$` },
    },
    {
      name: 'otel-on-demand',
      comment: 'The packages of OpenTelemetry are optional, and cost nothing where the plan does not ask for them',
      severity: 'error',
      from: { path: `^${SRC}/`, pathNot: `^${SRC}/otel/` },
      to: { path: `^${SRC}/otel/|^node_modules/@opentelemetry/`, dynamic: false, dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'counters-alone',
      comment:
        'The counters are a package of their own: it needs nothing of the others, and no client but the one it is given',
      severity: 'error',
      from: { path: '^counters/src/' },
      to: { pathNot: '^counters/src/', dependencyTypesNot: ['core'] },
    },
    {
      name: 'no-circles',
      comment: 'Two files that need each other, be it for a type, are one, or lack a third',
      severity: 'error',
      from: {},
      to: { circular: true },
    },
    {
      name: 'not-to-tests',
      comment: 'The product does not need its tests',
      severity: 'error',
      from: { path: `^${SRC}/` },
      to: {
        path: '^(shadow-proxy/test|loadtest|packaging|dashboards|terraform|tools|verification)/',
      },
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
