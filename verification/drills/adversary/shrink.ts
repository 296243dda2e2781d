/**
 * Makes a program shorter that still finds the same. Delta debugging (Zeller and Hildebrandt, "Simplifying and
 * Isolating Failure-Inducing Input", 2002): leaves out halves, quarters, … first of the acts, then of each send's
 * commands.
 */
import type { Act, Program } from './program.js';

export interface ShrinkOptions {
  /** Whether the shorter program finds the same. */
  readonly reproduces: (program: Program) => Promise<boolean>;
  /** Whether time is up. */
  readonly isOver: () => boolean;
}

/** The shortest program that was found in time; the same one where nothing could be left out. */
export async function shrink(program: Program, { reproduces, isOver }: ShrinkOptions): Promise<Program> {
  const withActs = (acts: readonly Act[]): Program => ({ ...program, acts });
  let acts = await leaveOut(program.acts, (shorter) => reproduces(withActs(shorter)), isOver);
  for (let at = 0; at < acts.length && !isOver(); at++) {
    const act = acts[at];
    if (act.do !== 'send' || act.commands.length < 2) continue;
    const replaced = (commands: (typeof act)['commands']): Act[] =>
      acts.map((each, i) => (i === at ? { do: 'send', client: act.client, commands } : each));
    const commands = await leaveOut(act.commands, (shorter) => reproduces(withActs(replaced(shorter))), isOver);
    if (commands.length < act.commands.length) acts = replaced(commands);
  }
  return withActs(acts);
}

async function leaveOut<T>(
  items: readonly T[],
  holds: (shorter: readonly T[]) => Promise<boolean>,
  isOver: () => boolean,
): Promise<T[]> {
  let left = [...items];
  let size = Math.ceil(left.length / 2);
  while (left.length > 1 && !isOver()) {
    let at = 0;
    while (at < left.length && left.length > 1 && !isOver()) {
      const shorter = [...left.slice(0, at), ...left.slice(at + size)];
      if (shorter.length > 0 && (await holds(shorter))) left = shorter;
      else at += size;
    }
    if (size === 1) break;
    size = Math.ceil(size / 2);
  }
  return left;
}
