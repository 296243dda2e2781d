/** The arithmetic of the bench: medians, ratios and their spread, requirements. Pure. */
import { median } from '../../figures/median.js';
import { LoadtestError } from '../../rig/errors.js';
import { PEER_NAMES, type PeerName } from './peers.js';

/** One measurement of one peer. */
export interface Sample {
  readonly round: number;
  readonly peer: PeerName;
  readonly pipeline: number;
  readonly operations: number;
  readonly opsPerSecond: number;
  /** Milliseconds. */
  readonly p50: number;
  readonly p99: number;
  /** Seconds of CPU per million operations, until the mirror was quiet; null for a peer without a process. */
  readonly cpu: number | null;
  readonly sourceCpu: number;
  readonly targetCpu: number;
  /** Bytes after the load, and the highest during it; null for a peer without a process. */
  readonly rss: number | null;
  readonly peakRss: number | null;
  /** Commands that reached the target, of those that reached the source (1 = all). */
  readonly mirrored: number;
  /** Milliseconds from the load's end until the mirror was quiet. */
  readonly mirrorLagMs: number;
  /** Whether both servers held the same values afterwards; null for a peer that does not mirror. */
  readonly equal: boolean | null;
}

/** The medians over the rounds of one peer at one pipeline depth. */
export interface Row extends Record<Measure, number | null> {
  readonly peer: PeerName;
  readonly pipeline: number;
  /** False when after some round the two servers held different values; null for a peer that does not mirror. */
  readonly equal: boolean | null;
}

const MEASURES = [
  'opsPerSecond',
  'p50',
  'p99',
  'cpu',
  'sourceCpu',
  'targetCpu',
  'rss',
  'peakRss',
  'mirrored',
  'mirrorLagMs',
] as const;
type Measure = (typeof MEASURES)[number];

export function rowOf(samples: readonly Sample[], peer: PeerName, pipeline: number): Row {
  const own = samples.filter((s) => s.peer === peer && s.pipeline === pipeline);
  const medians = MEASURES.map((name) => [name, median(own.map((s) => s[name]).filter((v) => v !== null))] as const);
  const equal = own.some((s) => s.equal === null) ? null : own.every((s) => s.equal);
  return { peer, pipeline, equal, ...(Object.fromEntries(medians) as Record<Measure, number | null>) };
}

/** The shadow proxy's throughput divided by a peer's, round by round. */
export interface Ratio {
  readonly peer: PeerName;
  readonly pipeline: number;
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

/** Null when the two did not both run in any round. */
export function ratioTo(samples: readonly Sample[], peer: PeerName, pipeline: number): Ratio | null {
  const of = (name: PeerName): Map<number, number> =>
    new Map(samples.filter((s) => s.peer === name && s.pipeline === pipeline).map((s) => [s.round, s.opsPerSecond]));
  const [proxy, other] = [of('shadow'), of(peer)];
  const ratios = [...proxy].filter(([round]) => other.has(round)).map(([round, ops]) => ops / other.get(round)!);
  const middle = median(ratios);
  return middle === null
    ? null
    : { peer, pipeline, median: middle, min: Math.min(...ratios), max: Math.max(...ratios) };
}

/** The shadow proxy must reach `atLeast` times the peer's throughput, by the median of the rounds' ratios. */
export interface Requirement {
  readonly peer: PeerName;
  readonly pipeline: number;
  readonly atLeast: number;
}

export const DEFAULT_REQUIREMENTS = ['envoy@1=1.1', 'envoy@16=2', 'twemproxy@16=0.75'];

/** Reads `envoy@16=2`: twice Envoy at pipeline 16. @throws {LoadtestError} with what is allowed */
export function parseRequirement(text: string): Requirement {
  const [, peer, pipeline, atLeast] = /^([a-z]+)@(\d+)>?=(\d+(?:\.\d+)?)$/.exec(text) ?? [];
  if (!PEER_NAMES.some((name) => name === peer && name !== 'shadow')) {
    throw new LoadtestError(
      'USAGE',
      `--require ${text}: write peer@pipeline=ratio, such as ${DEFAULT_REQUIREMENTS[1]}`,
    );
  }
  return { peer: peer as PeerName, pipeline: Number(pipeline), atLeast: Number(atLeast) };
}

export interface Judgement extends Requirement {
  readonly ratio: Ratio | null;
  readonly holds: boolean;
}

export function judge(samples: readonly Sample[], requirement: Requirement): Judgement {
  const ratio = ratioTo(samples, requirement.peer, requirement.pipeline);
  return { ...requirement, ratio, holds: ratio !== null && ratio.median >= requirement.atLeast };
}
