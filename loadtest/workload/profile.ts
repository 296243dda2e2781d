/** The shape of a profile, which says what is sent to a server. Each is one YAML file in `loadtest/profiles/`. */
import { z } from 'zod';
import { counterOf, verbOf } from './command.js';
import { keysOutside } from './keys.js';

const count = z.number().int().positive();

const keys = z.discriminatedUnion('distribution', [
  z.strictObject({ count, distribution: z.literal('uniform').describe('Every key is as likely as any other') }),
  z.strictObject({
    count,
    distribution: z.literal('zipf').describe('The key of rank r is as likely as 1 / r ^ exponent'),
    exponent: z.number().gt(0).lt(5),
  }),
  z.strictObject({
    count,
    distribution: z
      .literal('gaussian')
      .describe('Around the middle of the keys, with a standard deviation of a sixth of them'),
  }),
]);

const weights = z.record(z.string().regex(/^[1-9]\d*$/, 'a size in bytes'), count);
const value = z.union([
  z.strictObject({ bytes: count }),
  z.strictObject({ weights: weights.describe('Size in bytes: how many values of all have it') }),
]);

const shape = z.strictObject({
  name: z.string().regex(/^[a-z][a-z0-9-]*$/, 'small letters, digits and dashes'),
  description: z.string().min(1),
  keys,
  value,
  connections: count.describe('Of all threads together'),
  threads: count.default(1).describe('Of the load generator'),
  pipeline: count.default(1).describe('Commands that a connection has in flight'),
  tls: z.boolean().default(false),
  expiry: count.optional().describe('Seconds; replaces __expiry__ in the commands'),
  prefill: z.array(z.string()).describe('Sent once for each key, in turn, before anything is measured'),
  commands: z.array(z.strictObject({ command: z.string().min(1), ratio: count })).min(1),
  fallback: z
    .string()
    .optional()
    .describe('The one command for redis-benchmark; a profile without it needs memtier_benchmark'),
});

/** A checked profile. Commands contain the placeholders `__key__`, `__data__`, `__prefix__` and `__expiry__`. */
export type Profile = z.infer<typeof shape>;

export const profileSchema = shape.superRefine((profile, context) => {
  const say = (path: (string | number)[], message: string): void => context.addIssue({ code: 'custom', path, message });
  if (profile.connections % profile.threads !== 0)
    say(['connections'], `must be a multiple of threads (${profile.threads})`);
  for (const [path, command] of commandsOf(profile))
    for (const problem of problemsOf(command, profile)) say(path, problem);
  const verbs = profile.commands.map(({ command }) => verbOf(command));
  for (const [i, verb] of verbs.entries()) {
    if (verbs.indexOf(verb) < i)
      say(
        ['commands', i],
        `${verb} is there twice: memtier_benchmark counts by name, and could not tell the two apart`,
      );
  }
});

type Placed = readonly [path: (string | number)[], command: string];

const commandsOf = ({ prefill, commands, fallback }: Profile): Placed[] => [
  ...prefill.map((command, i): Placed => [['prefill', i], command]),
  ...commands.map(({ command }, i): Placed => [['commands', i, 'command'], command]),
  ...(fallback === undefined ? [] : [[['fallback'], fallback] as Placed]),
];

function problemsOf(command: string, { expiry }: Profile): string[] {
  const problems = [...keysOutside(command)];
  if (command.includes('__expiry__') && expiry === undefined)
    problems.push('has __expiry__, but the profile gives no expiry');
  const counter = counterOf(command);
  if (counter !== null && !Number.isSafeInteger(counter.amount))
    problems.push('counts by no whole number, so that its sum could not be checked');
  return problems;
}
