/** The workload and the server of a command with several keys. */
import { isWord, KeyList, keysOf, UNKNOWN_KEYS } from '../command/keys.js';
import type { CommandSpec } from '../command/table.js';
import type { Router, Workload } from '../route/router.js';
import { hashSlot } from '../route/slot.js';
import type { StageRule } from '../route/stage.js';
import { NOTHING, READ, WRITE, type Follow } from '../pipeline/operation.js';
import type { Sequencer } from '../pipeline/sequencer.js';
import type { CommandCounts } from './command-counts.js';

/** A command's bytes, and the positions of its arguments. */
export interface CommandBytes {
  readonly frame: Buffer;
  readonly argStart: readonly number[];
  readonly argEnd: readonly number[];
  readonly argc: number;
}

export interface Route {
  /** The workload of the first key; `default` if there is no key. */
  readonly workload: Workload;
  readonly rule: StageRule;
  /** A workload of another key whose authority differs from the first key's. */
  readonly other: Workload | null;
  /** The keys follow different rules, or not all keys are known. */
  readonly mixed: boolean;
  /** Some keys of the command are not among its arguments. */
  readonly hidden: boolean;
  readonly keys: number;
  /**
   * A workload for each key whose slot is not that of the key before it, and one if keys are hidden. The handler that
   * takes the command counts them.
   */
  readonly spanning: readonly Workload[];
}

const NONE: readonly Workload[] = [];

/** The route of a command; null while one of its workloads is changing its stage. */
export function routeKeys(router: Router, spec: CommandSpec, command: CommandBytes): Route | null {
  const { frame, argStart, argEnd, argc } = command;
  const keys = new KeyList();
  const found = keysOf(spec, frame, argStart, argEnd, argc, keys);
  const hidden = found === UNKNOWN_KEYS;
  const count = hidden ? keys.known : found;
  if (count <= 0) return routeKeyless(router, hidden);
  let first: Workload | null = null;
  let rule: StageRule | null = null;
  let slot = -1;
  let other: Workload | null = null;
  let spanning: Workload[] | null = null;
  let mixed = hidden && !router.uniform;
  for (let i = 0; i < count; i++) {
    const start = argStart[keys.index[i]];
    const end = argEnd[keys.index[i]];
    const workload = router.match(frame, start, end);
    if (workload.position.held) return null;
    const own = workload.position.rule(frame, start, end);
    if (first === null || rule === null) {
      first = workload;
      rule = own;
    } else if (own !== rule) {
      mixed = true;
      if (own.authority !== rule.authority) other ??= workload;
    }
    if (count > 1) {
      const here = hashSlot(frame, start, end);
      if (slot !== -1 && slot !== here) (spanning ??= []).push(workload);
      slot = here;
    }
  }
  if (hidden) (spanning ??= []).push(first!);
  return { workload: first!, rule: rule!, other, mixed, hidden, keys: count, spanning: spanning ?? NONE };
}

function routeKeyless(router: Router, hidden: boolean): Route | null {
  const workload = router.default;
  if (workload.position.held) return null;
  return {
    ...{
      workload,
      rule: workload.position.keylessRule,
      other: null,
      mixed: hidden && !router.uniform,
      hidden,
      keys: 0,
    },
    spanning: hidden ? [workload] : NONE,
  };
}

/** COPY source destination DB n. */
export function crossesDatabases({ frame, argStart, argEnd, argc }: CommandBytes): boolean {
  for (let i = 3; i < argc - 1; i++) if (isWord(frame, argStart[i], argEnd[i], 'db')) return true;
  return false;
}

/** Counts commands that spanned two authorities and were refused. */
interface Refusing {
  readonly sequencer: Sequencer;
  readonly counts: Pick<CommandCounts, 'addRefused'>;
}

/** Why the command at hand cannot be run although some of its keys are unknown; null if it can. */
export function hiddenKeys(clients: Refusing, spec: CommandSpec, route: Route): string | null {
  if (!route.hidden || clients.sequencer.router.oneAuthority) return null;
  clients.counts.addRefused();
  return `ERR shadow-proxy: ${spec.name.toUpperCase()} with a pattern reads keys that the proxy cannot know, and is refused while workloads have different authorities`;
}

/**
 * Whether the command is a script that may write keys which it does not name: those of any workload, whatever the stage
 * of its own.
 */
export const mayWriteOthers = (sequencer: Sequencer, spec: CommandSpec, frame: Buffer, start: number): boolean =>
  spec.handling === 'script' &&
  !spec.readOnlyScript &&
  sequencer.router.mirrors &&
  sequencer.scriptEffects.hidesChanges(frame, start);

/** What the mirror is sent for the command. */
export function followOf(sequencer: Sequencer, spec: CommandSpec, rule: StageRule, mixed: boolean): Follow {
  if (spec.write || spec.handling === 'script') {
    if (!rule.mirrorsWrites && !mixed) return NOTHING;
    if (!spec.write && spec.readOnlyScript) return NOTHING;
    return WRITE;
  }
  if (!rule.mirrorsReads || mixed) return NOTHING;
  return sequencer.mirrorKnows(rule.authority, spec) && sequencer.servers[rule.authority].traits.supported.knows(spec)
    ? READ
    : NOTHING;
}
