/** Loaded by Node: a test file that asks for `node:test` gets the stand-in that Stryker's runner can drive. */
import type { ResolveHook } from 'node:module';

const STAND_IN = new URL('./node-test.js', import.meta.url).href;

export const resolve: ResolveHook = (specifier, context, next) =>
  specifier === 'node:test' && context.parentURL !== STAND_IN
    ? { url: STAND_IN, shortCircuit: true }
    : next(specifier, context);
