/**
 * Writes on a workload whose only writer is another region's node. With two writers it would lose increments. The plan
 * says whether such writes are refused or only counted (`topology.secondWriter`).
 */
import { KeyList, keysOf, WRITES } from '../../command/keys.js';
import type { CommandSpec } from '../../command/table.js';
import { argumentsOf } from '../../resp/decode.js';
import type { Workload } from '../../route/router.js';
import type { StageRule } from '../../route/stage.js';
import { hiddenBy } from './script.js';
import type { CommandContext } from '../context.js';

/**
 * Refuses or counts the command at hand if it is such a write.
 * @param isRetry whether it was counted before
 * @returns true if it was refused
 */
export function takeSecondWriter(context: CommandContext, spec: CommandSpec, isRetry: boolean): boolean {
  const { counts, sequencer } = context.clients;
  const { router } = sequencer;
  const secondWrite = secondWriteOf(context, spec);
  if (secondWrite === null) return false;
  const { workload, hidden } = secondWrite;
  if (!isRetry) counts.addSecondWriterWrite(workload);
  if (router.secondWriter === 'count') return false;
  const name = spec.name.replace('|', ' ').toUpperCase();
  const here = router.region ?? 'another region';
  const what = hidden
    ? `${name} does not name its keys, and may write to "${workload.name}":`
    : `"${workload.name}" must not be written here:`;
  context.refuse(
    `ERR shadow-proxy: ${what} its only writer is ${workload.writtenIn}, and this is the proxy of ${here}: ${hidden ? 'declare the keys, or send it' : 'send writes'} to the proxy of ${workload.writtenIn}`,
  );
  return true;
}

interface SecondWrite {
  readonly workload: Workload;
  /** The keys are unknown: the command may be a second writer's. */
  readonly hidden: boolean;
}

function secondWriteOf(context: CommandContext, spec: CommandSpec): SecondWrite | null {
  const { sequencer } = context;
  const { router, scripts, table } = sequencer;
  const isScript = spec.handling === 'script';
  if ((!spec.write && !isScript) || spec.readOnlyScript || spec.aboutCode) return null;
  const { frame, argStart, argEnd, argc } = context.parser;
  const keys = new KeyList();
  const found = keysOf(spec, frame, argStart, argEnd, argc, keys);
  const count = found < 0 ? keys.known : found;
  if (isScript && scripts.find(argumentsOf(context.command))?.writesNothing(table) === true) return null;
  for (let i = 0; i < count; i++) {
    if ((keys.access[i] & WRITES) === 0) continue;
    const [start, end] = [argStart[keys.index[i]], argEnd[keys.index[i]]];
    const workload = router.match(frame, start, end);
    if (workload.writtenIn !== null && reachesTarget(workload.position.rule(frame, start, end)))
      return { workload, hidden: false };
  }
  if (count > 0) return null;
  const hides = isScript
    ? hiddenBy(sequencer, spec, context.command, router.default.position.keylessRule.authority) === 'writes'
    : spec.handling === 'exclusive';
  const workload = hides
    ? router.workloads.find(
        ({ writtenIn, position: { keylessRule } }) => writtenIn !== null && reachesTarget(keylessRule),
      )
    : undefined;
  return workload === undefined ? null : { workload, hidden: true };
}

/** Each region has its own source; all regions share the target's nodes. */
const reachesTarget = ({ authority, mirrorsWrites }: StageRule): boolean => authority === 'target' || mirrorsWrites;
