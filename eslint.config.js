import js from '@eslint/js';
import tseslint from 'typescript-eslint';

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
    ignores: ['shadow-proxy/src/cli/output.ts'],
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
