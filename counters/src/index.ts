/**
 * Counters and rate limiters that stay exact on active-active KeyDB. README.md explains what that means, and its
 * limits.
 */
export { Counters, type CountersOptions } from './counters.js';
export { type CounterOptions, type GrowOnlyCounter, type UpDownCounter } from './counter.js';
export { CounterError, type CounterErrorCode } from './errors.js';
export { type Limiter, type LimiterOptions, type SlidingOptions, type Taken } from './limiter.js';
export { type PlainCounters, type PlainOptions } from './plain.js';
export { add, begins, expireAt, look, remove, withdraw, type CounterState, type Step } from './plain-layout.js';
export { type Command, type Store } from './store.js';
export { type Time } from './time.js';
