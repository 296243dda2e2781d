/**
 * The shards of a plan that names a cluster: derived from the present slot maps of both sides. For a side that does not
 * answer, the map of the last start is used (`<state>/slots.json`): so a retired source prevents no start.
 */
import { disk, replaceFile } from '../io/files.js';
import { printable } from '../text/printable.js';
import { join } from 'node:path';
import { countSlots, formatSlots, refine, unserved, withShards, type SlotMaster } from '../plan/cluster-shards.js';
import { checkPlan } from '../plan/check.js';
import { formatAddress } from '../plan/endpoint.js';
import { PlanError, type PlanPath } from '../plan/errors.js';
import { loadPlan } from '../plan/load.js';
import type { ClusterPlan, ClusterSide, Plan } from '../plan/plan.js';
import { readSlots } from './slots.js';

/** The most masters that were tested. */
const MAX_MASTERS = { source: 12, target: 6 };
const KEPT = 'slots.json';

/**
 * Reads a plan, and the slot maps of its cluster if it has one.
 * @throws {PlanError} also if the cluster cannot be read, or slots have no master
 */
export const openPlan = async (file: string, keeps = false): Promise<Plan> => derive(loadPlan(file), file, keeps);

/**
 * The plan with its shards.
 * @param keeps whether the maps are saved for the next start
 * @throws {PlanError} if the cluster cannot be read, or slots have no master
 */
export async function derive(plan: Plan, file: string, keeps = false): Promise<Plan> {
  const { cluster } = plan;
  if (cluster === null) return plan;
  const kept = keptMaps(plan.state);
  const [source, target] = await Promise.all([
    read(cluster, 'source', file, kept),
    read(cluster, 'target', file, kept),
  ]);
  const refuse = refusing(file);
  if (source === null)
    return refuse(['cluster', 'source'], 'is not in cluster mode: write shards, each with its source and target');
  if (target === null && cluster.target.seeds.length > 1)
    refuse(
      ['cluster', 'target'],
      'names several servers that are not in cluster mode: give one standalone KeyDB, or nodes of a cluster',
    );
  const derived = withShards(plan, cluster, refine(source, target, cluster.cuts));
  const [problem] = checkPlan(derived);
  if (problem)
    throw new PlanError(file, [
      { path: ['cluster'], message: `gives shards that the plan does not allow: ${problem.message}` },
    ]);
  if (keeps) keepMaps(plan.state, { source, target });
  return derived;
}

type Side = 'source' | 'target';
/** Null for a side that is one standalone server. */
type Maps = Readonly<Record<Side, readonly SlotMaster[] | null>>;

/** Null if no maps are saved, or they cannot be read: they are needed only for a server that does not answer. */
function keptMaps(state: string): Maps | null {
  try {
    return JSON.parse(disk.readFile(join(state, KEPT)).toString()) as Maps;
  } catch {
    return null;
  }
}

/** @throws {Error} if the state's directory cannot be written */
function keepMaps(state: string, maps: Maps): void {
  disk.mkdir(state);
  replaceFile(join(state, KEPT), `${JSON.stringify(maps)}\n`);
}

const refusing =
  (file: string) =>
  (path: PlanPath, message: string): never => {
    throw new PlanError(file, [{ path, message }]);
  };

/** Null if that side is one standalone server. @throws {PlanError} */
async function read(
  cluster: ClusterPlan,
  side: Side,
  file: string,
  kept: Maps | null,
): Promise<readonly SlotMaster[] | null> {
  const refuse = refusing(file);
  const masters = await ask(cluster[side]).catch((error: Error) => {
    if (kept === null) return refuse(['cluster', side], `cannot be read: ${error.message}`);
    process.stderr.write(
      `cluster.${side} cannot be read (${printable(error.message)}): the slots of the last start are used\n`,
    );
    return kept[side];
  });
  if (masters === null) return null;
  const missing = unserved(masters);
  if (missing.length > 0)
    refuse(
      ['cluster', side],
      `has no master for ${countSlots(missing)} slots (${formatSlots(missing.slice(0, 4))}${missing.length > 4 ? ',…' : ''}): assign them first`,
    );
  if (masters.length > MAX_MASTERS[side])
    refuse(['cluster', side], `has ${masters.length} masters: at most ${MAX_MASTERS[side]} are supported`);
  return masters;
}

/** The answer of the first node that answers. @throws {Error} with each node's error, if none does */
async function ask({ seeds, tls, username, password }: ClusterSide): Promise<SlotMaster[] | null> {
  const credentials = password === null ? undefined : { username: username ?? undefined, password };
  const failures: string[] = [];
  for (const seed of seeds) {
    try {
      return await readSlots(seed, tls, credentials);
    } catch (error) {
      failures.push(`${formatAddress(seed)}: ${(error as Error).message}`);
    }
  }
  throw new Error(failures.join('; '));
}
