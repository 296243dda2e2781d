/** The destination of each command of a transaction, and whether the transaction can be run. */
import { Command } from '../../command/command.js';
import type { CommandSpec } from '../../command/table.js';
import { NOTHING, WRITE, type Follow } from '../../pipeline/operation.js';
import type { QueuedCommand } from '../../pipeline/transaction.js';
import { RequestParser } from '../../resp/request.js';
import type { Workload } from '../../route/router.js';
import { hashSlot } from '../../route/slot.js';
import { otherSide, type Side } from '../../route/stage.js';
import { otherDatabase } from '../../script/frame-keys.js';
import type { Clients } from '../clients.js';
import type { CommandContext } from '../context.js';
import { followOf, mayWriteOthers, routeKeys } from '../routing.js';
import { isAboutEveryKey, refusalOfEveryKey } from './exclusive.js';
import { followOfPublish, mirrorsMessages } from './pubsub.js';
import { rewrittenIn } from './regional.js';
import { hiddenBy, refusalOf, usesKeys } from './script.js';
import { crossing } from './split.js';

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** A command that was answered QUEUED. */
export interface Queued {
  readonly frame: Buffer;
  readonly spec: CommandSpec;
}

export interface ExecPlan {
  readonly commands: Mutable<QueuedCommand>[];
  readonly authority: Side;
  readonly workload: Workload;
  /** The keys, by database. A database is listed if the mirror gets something there, or the order matters. */
  readonly keys: Map<number, string[]>;
}

/** Whether the command works on keys that it names. */
export const isKeyed = ({ handling, name }: CommandSpec): boolean =>
  handling === 'keyed' || handling === 'script' || name === 'move';

/**
 * The destination of each command, by the stages as they are now.
 * @returns `held` while a stage is changing; an Error, which is EXEC's reply, if the transaction cannot be run
 */
export function planOf(context: CommandContext, queue: readonly Queued[]): ExecPlan | 'held' | Error {
  const { sequencer, foreignKeys } = context.clients;
  const { router } = sequencer;
  const parser = new RequestParser();
  const { db } = context.client;
  const commands: Mutable<QueuedCommand>[] = [];
  const keys = new Set<string>();
  let authority: Side | null = null;
  let first: Workload | null = null;
  for (const { frame, spec } of queue) {
    parser.feed(frame);
    parser.next();
    const keyed = isKeyed(spec);
    if (spec.handling === 'publish') {
      const workload = router.channel(frame, parser.argStart[1], parser.argEnd[1]);
      if (workload.position.held || context.clients.subscribers.moving) return 'held';
      commands.push({ frame, spec, workload, follow: NOTHING, mustCopy: false, keys: [], db });
      continue;
    }
    // The stage may have changed since the command was queued.
    if (router.rewrites && rewrittenIn(router, spec, parser).workload !== null)
      return new Error(
        'EXECABORT shadow-proxy: the counters of this transaction became per-region after MULTI: send the transaction again',
      );
    const route = routeKeys(router, spec, parser);
    if (route === null) return 'held';
    sequencer.counters.addSpanning(route.spanning);
    let own: readonly string[] = [];
    if (keyed && (route.keys > 0 || usesKeys(sequencer, spec, frame))) {
      if (route.other !== null) return new Error(crossing('a transaction', route.workload, route.other));
      if (authority !== null && authority !== route.rule.authority)
        return new Error(crossing('a transaction', first!, route.workload));
      authority = route.rule.authority;
      first ??= route.workload;
      own = sequencer.keys.ids(frame, 0);
      for (const key of own) keys.add(key);
    }
    const hidden = spec.handling === 'script' ? hiddenBy(sequencer, spec, frame, route.rule.authority) : 'nothing';
    const refused =
      spec.handling === 'script' ? refusalOf(context.clients, spec, frame, hidden, route.rule.authority) : null;
    if (refused !== null) return new Error(refused);
    if (hidden !== 'nothing') {
      const follow = hidden === 'writes' && router.mirrors ? WRITE : NOTHING;
      commands.push({ frame, spec, workload: route.workload, follow, mustCopy: !router.uniform, keys: own, db });
      continue;
    }
    if (isAboutEveryKey(spec)) {
      const refused = refusalOfEveryKey(context.clients, spec);
      if (refused !== null) return new Error(refused);
      if (router.rewrites)
        return new Error(
          `ERR shadow-proxy: ${spec.name.toUpperCase()} is refused while a workload has counterLayout per-region`,
        );
      const follow = router.mirrors && !foreignKeys.mayHoldForeignKeys ? WRITE : NOTHING;
      commands.push({ frame, spec, workload: router.default, follow, mustCopy: false, keys: own, db });
      continue;
    }
    const hides = mayWriteOthers(sequencer, spec, frame, 0);
    const follow = hides ? WRITE : keyed ? followOf(sequencer, spec, route.rule, route.mixed) : NOTHING;
    commands.push({ frame, spec, workload: route.workload, follow, mustCopy: route.mixed, keys: own, db });
  }
  if (spansSlots(keys)) sequencer.counters.addSpanning([...new Set(commands.map((command) => command.workload))]);
  const published = commands.filter(({ spec }) => spec.handling === 'publish');
  first ??= published[0]?.workload ?? router.default;
  authority ??= first.position.keylessRule.authority;
  for (const command of published) command.follow = followOfMessage(context.clients, command, authority);
  const all =
    context.clients.ownedAt(authority) !== null ? commands.find(({ spec }) => spec.asksForAllKeys) : undefined;
  if (all !== undefined)
    return new Error(
      `ERR shadow-proxy: ${all.spec.name.toUpperCase()} inside MULTI is refused: other shards keep their keys on the same server`,
    );
  return { commands, authority, workload: first, keys: new Map() };
}

/** A PUBLISH runs at the transaction's server. From there it goes to its channel's authority, too. */
function followOfMessage(clients: Clients, { spec, workload }: QueuedCommand, authority: Side): Follow {
  const isOtherAuthority = workload.position.keylessRule.authority !== authority;
  if (isOtherAuthority) clients.sequencer.mirrors[otherSide(authority)].start();
  return followOfPublish(
    clients,
    spec,
    authority,
    isOtherAuthority || mirrorsMessages(clients, workload.position.keylessRule),
  );
}

function spansSlots(keys: ReadonlySet<string>): boolean {
  const slots = new Set<number>();
  if (keys.size > 1) for (const key of keys) slots.add(hashSlot(Buffer.from(key, 'latin1'), 0, key.length));
  return slots.size > 1;
}

/** Whether the command affects another database than the selected one, or every key. */
export const leavesDatabase = ({ spec, frame }: Queued): boolean =>
  spec.name === 'move' || isAboutEveryKey(spec) || (spec.name === 'copy' && otherDatabase(new Command(frame)) !== null);
