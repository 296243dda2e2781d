/**
 * Preloaded (`node --import`) by the processes of a run of many files. node:test follows each promise and each timer with
 * an async hook, to know which test an error comes from that nobody has caught. In tests of many promises that takes a
 * third of the CPU time (unit/session/way-out: 7.1 s with it, 4.3 s without), in others little. Here node:test follows its
 * own tests alone, and such an error is that of the test that began last.
 */
import asyncHooks from 'node:async_hooks';
import { isMainThread } from 'node:worker_threads';

// The programs that tests start are no tests.
process.env.NODE_OPTIONS = process.env.NODE_OPTIONS?.replace(/ ?--import \S+\/without-hooks\.mjs/, '') ?? '';
if (process.env.NODE_OPTIONS === '') delete process.env.NODE_OPTIONS;

if (isMainThread) {
  const { AsyncResource, createHook, executionAsyncId } = asyncHooks;
  let noted = () => undefined;
  let began = 0;
  let isError = false;
  asyncHooks.createHook = ({ init }) => {
    noted = init;
    return { enable: () => undefined, disable: () => undefined };
  };
  // A test is such a resource: what its function calls at once, as that of a suite does, is known by its number.
  asyncHooks.AsyncResource = class extends AsyncResource {
    constructor(type, options) {
      super(type, options);
      noted(this.asyncId(), type, this.triggerAsyncId(), this);
    }
    runInAsyncScope(...args) {
      began = this.asyncId();
      return super.runInAsyncScope(...args);
    }
  };
  asyncHooks.executionAsyncId = () => {
    if (!isError) return executionAsyncId();
    isError = false;
    return began;
  };
  await import('node:test');
  Object.assign(asyncHooks, { AsyncResource, createHook, executionAsyncId });

  // Both come before the handlers of node:test, which ask for the number.
  process.on('uncaughtExceptionMonitor', () => (isError = true));
  process.on('unhandledRejection', (error) => {
    if (process.listenerCount('unhandledRejection') === 1) throw error;
    isError = true;
  });
}
