import js from '@eslint/js';
import tseslint from 'typescript-eslint';
import { noFixedWait, noWallClockLimit, sayWhatIsReal, sayWhatTheyShow } from './shadow-proxy/build/test-rules.mjs';

/** Rooms of the data path: they get time, random, network and files from io/, which a simulation can replace. */
const DATA_PATH =
  'admin,command,compare,copy,front,guard,health,io,lease,notify,otel,pipeline,regional,resp,route,script,session,shard,stages,storage,suspects,telemetry,upstream';

/** Files of these rooms that use Node itself, and why. */
const NODE_ITSELF = [
  // The process's own world.
  'io/world.ts',
  'io/listening-clock.ts',
  'io/run-program.ts',
  // Makes a second `Socket` over the handle of one of Node's.
  'io/intake.ts',
  // Front threads are Node's own: a simulated shard has none (`threads: 0`, `sockets: node`).
  'front/thread.ts',
  'front/worker-front.ts',
  // A seed against chosen collisions, taken when the file is loaded; no result depends on it.
  'compare/multiset.ts',
  // Programs that generate tables from real servers.
  'command/generate*.ts',
  'command/form-prober.ts',
].map((file) => `shadow-proxy/src/${file}`);

/** Where Node's own has its place in io/. */
const INSTEAD = {
  'Date.now': 'unixMs() of io/clock.ts',
  'performance.now': 'monotonicMs() of io/clock.ts',
  'process.hrtime': 'monotonicMs() of io/clock.ts',
  'new Date()': 'isoTime() or new Date(unixMs()), of io/clock.ts',
  setTimeout: 'after(), sleep() or timeoutSignal() of io/timers.ts',
  setInterval: 'every() of io/timers.ts',
  setImmediate: 'nextTurn() of io/timers.ts',
  clear: 'clearTimer() of io/timers.ts',
  random: 'randomShare(), randomBytes() or randomUuid() of io/random.ts',
  fetch: 'request() of io/http.ts',
  modules: 'io/files.ts, io/sockets.ts, io/http.ts, io/timers.ts or io/clock.ts',
};
const use = (what) => `Use ${what}: a simulation puts its own world there.`;
const COUNTERS_TIME = 'Use `Time` of counters/src/time.ts: whoever opens the counters may bring its own.';
const MODULES = '^(node:)?(fs|net|tls|https?|http2|dgram|dns|timers|perf_hooks|worker_threads|child_process)(/.+)?$';

/** Tests with servers, processes, sockets or files. */
const WITH_REAL = [
  'shadow-proxy/test/integration/**/*.test.{ts,tsx}',
  'counters/test/{one-server,plain,random,*.long}.test.ts',
  'verification/simulation/test/server/!(shard).test.ts',
  'loadtest/test/{hostile,run,*.long}.test.ts',
  'dashboards/test/{views,*.long}.test.ts',
  'packaging/test/*.long.test.ts',
  'terraform/test/local.long.test.ts',
  ...[
    'verification/conformance/test/program.test.ts',
    'verification/drills/test/adversary.test.ts',
    'verification/matrix/test/new.test.ts',
  ],
];

export default tseslint.config(
  { ignores: ['dist/', 'reports/', '.stryker-tmp/', 'counters/dist/', 'node_modules/', 'state/'] },
  js.configs.recommended,
  {
    files: ['**/*.{ts,tsx}'],
    extends: [...tseslint.configs.recommended],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      // A promise that nobody waits for hides its error.
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-misused-promises': ['error', { checksVoidReturn: { arguments: false } }],
      '@typescript-eslint/await-thenable': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
      '@typescript-eslint/consistent-type-imports': ['error', { fixStyle: 'inline-type-imports' }],
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', ignoreRestSiblings: true }],
      // Offsets that were checked, and fields that a constructor's caller fills.
      '@typescript-eslint/no-non-null-assertion': 'off',
      // Bytes of protocols.
      'no-control-regex': 'off',
      // What Prettier cannot break: sentences and patterns may be longer; drawings and tables of routes, too.
      'max-len': [
        'error',
        {
          code: 120,
          ignoreStrings: true,
          ignoreTemplateLiterals: true,
          ignoreRegExpLiterals: true,
          ignoreUrls: true,
          ignorePattern: '[─▶│└┬→]|^ *\\* +(GET|POST|node)|^ *\\*.*\\S {2,}\\S',
        },
      ],
      eqeqeq: ['error', 'always'],
      'no-console': 'error',
      'prefer-const': ['error', { destructuring: 'all' }],
    },
  },
  {
    files: ['**/*.test.{ts,tsx}', '**/test/**/*.{ts,tsx}'],
    rules: {
      // `test` and `describe` of node:test return promises that the runner waits for.
      '@typescript-eslint/no-floating-promises': [
        'error',
        {
          allowForKnownSafeCalls: [
            { from: 'package', package: 'node:test', name: ['test', 'it', 'describe', 'suite'] },
          ],
        },
      ],
    },
  },
  {
    files: ['shadow-proxy/src/cli/**/*.ts', 'shadow-proxy/src/main.ts'],
    ignores: ['shadow-proxy/src/cli/output.ts', 'shadow-proxy/src/cli/redraw.ts'],
    rules: {
      // What a server or a file says may hold control characters.
      'no-restricted-syntax': [
        'error',
        {
          selector:
            "CallExpression[callee.property.name='write'][callee.object.object.name='process'], CallExpression[callee.name='logUpdate']",
          message: 'Print with cli/output.ts, which escapes control characters.',
        },
      ],
    },
  },
  {
    files: [`shadow-proxy/src/{${DATA_PATH}}/**/*.ts`],
    ignores: NODE_ITSELF,
    rules: {
      '@typescript-eslint/no-restricted-imports': [
        'error',
        {
          paths: [
            {
              name: 'node:crypto',
              allowImportNames: ['createHash', 'createHmac', 'hash', 'timingSafeEqual', 'X509Certificate'],
              message: use(INSTEAD.random),
            },
          ],
          patterns: [
            { regex: MODULES, allowImportNamePattern: '^isIP$', allowTypeImports: true, message: use(INSTEAD.modules) },
          ],
        },
      ],
      'no-restricted-globals': [
        'error',
        ...['setTimeout', 'setInterval', 'setImmediate', 'fetch'].map((name) => ({
          name,
          message: use(INSTEAD[name]),
        })),
        ...['clearTimeout', 'clearInterval', 'clearImmediate'].map((name) => ({ name, message: use(INSTEAD.clear) })),
        { name: 'performance', message: use(INSTEAD['performance.now']) },
        { name: 'crypto', message: use(INSTEAD.random) },
        { name: 'globalThis', message: 'Name what you need: io/ has what comes from outside.' },
      ],
      'no-restricted-properties': [
        'error',
        { object: 'Date', property: 'now', message: use(INSTEAD['Date.now']) },
        { object: 'Math', property: 'random', message: use(INSTEAD.random) },
        { object: 'AbortSignal', property: 'timeout', message: use(INSTEAD.setTimeout) },
        { object: 'process', property: 'hrtime', message: use(INSTEAD['process.hrtime']) },
        { object: 'process', property: 'uptime', message: use(INSTEAD['process.hrtime']) },
      ],
      'no-restricted-syntax': [
        'error',
        { selector: "NewExpression[callee.name='Date'][arguments.length=0]", message: use(INSTEAD['new Date()']) },
        { selector: "CallExpression[callee.name='Date']", message: use(INSTEAD['new Date()']) },
        {
          selector: `ImportExpression[source.value=/${MODULES.replaceAll('/', '\\/')}|^(node:)?crypto$/]`,
          message: use(INSTEAD.modules),
        },
      ],
    },
  },
  {
    files: ['**/*.test.{ts,tsx}'],
    plugins: { tests: { rules: { 'say-what-they-show': sayWhatTheyShow } } },
    rules: { 'tests/say-what-they-show': 'error' },
  },
  {
    files: WITH_REAL,
    plugins: { real: { rules: { 'say-what-is-real': sayWhatIsReal } } },
    rules: { 'real/say-what-is-real': 'error' },
  },
  {
    files: ['**/test/**/*.{ts,tsx}', '**/*.test.{ts,tsx}'],
    plugins: { waits: { rules: { 'no-fixed-wait': noFixedWait, 'no-wall-clock-limit': noWallClockLimit } } },
    rules: { 'waits/no-fixed-wait': 'error', 'waits/no-wall-clock-limit': 'error' },
  },
  {
    // Shards with counters of several regions run this package: its time is theirs.
    files: ['counters/src/**/*.ts'],
    ignores: ['counters/src/time.ts'],
    rules: {
      'no-restricted-globals': [
        'error',
        ...['setTimeout', 'setInterval', 'setImmediate', 'performance'].map((name) => ({
          name,
          message: COUNTERS_TIME,
        })),
      ],
      'no-restricted-properties': [
        'error',
        { object: 'Date', property: 'now', message: COUNTERS_TIME },
        { object: 'Math', property: 'random', message: COUNTERS_TIME },
      ],
      'no-restricted-imports': ['error', { patterns: [{ regex: MODULES, message: COUNTERS_TIME }] }],
    },
  },
  {
    files: ['shadow-proxy/src/**/*.{ts,tsx}'],
    ignores: ['shadow-proxy/src/io/**'],
    rules: {
      'no-restricted-imports': [
        'error',
        { patterns: [{ group: ['**/io/world.js'], message: 'The files of io/ ask the world: call them.' }] },
      ],
    },
  },
  { files: ['**/*.generated.ts'], rules: { 'max-len': 'off' } },
  {
    files: ['**/*.{js,mjs,cjs}'],
    languageOptions: {
      globals: {
        process: 'readonly',
        Buffer: 'readonly',
        URL: 'readonly',
        AbortController: 'readonly',
        performance: 'readonly',
        setInterval: 'readonly',
        clearInterval: 'readonly',
        module: 'writable',
      },
    },
  },
);
