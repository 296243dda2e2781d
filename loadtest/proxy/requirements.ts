/** Requirements of the proxy, judged by `npm run bench -- --require` and `npm run soak`. */
import { LoadtestError } from '../rig/errors.js';
import {
  comparable,
  COMPARISON_NAMES,
  keptRate,
  ratioOf,
  reachOf,
  rowOf,
  type Comparison,
  type Sample,
  type Spread,
} from './bench/figures.js';
import type { ShadowName } from './bench/peers.js';
import { CLIENTS, samePoint, type Point } from './bench/point.js';

/** A limit for a ratio of a shadow proxy, by the median of the rounds. */
export interface Requirement {
  readonly peer: ShadowName;
  readonly ratio: Comparison;
  readonly pipeline: number;
  readonly clients: number;
  readonly bound: '<=' | '>=';
  readonly value: number;
  readonly says: string;
}

const required = (
  peer: ShadowName,
  ratio: Comparison,
  [pipeline, clients]: readonly [number, number],
  bound: Requirement['bound'],
  value: number,
  says: string,
): Requirement => ({ peer, ratio, pipeline, clients, bound, value, says });

const SATURATES = 'Redis saturates before the sequencing thread';
const SATURATES_16 = 'The sequencing thread costs hardly more than Redis';

/**
 * The requirements of the bench. On two cores the sum of the CPU time counts, and a proxy without front threads is
 * judged. On more, the slowest thread counts, and front threads are the default.
 */
export const REQUIREMENTS: readonly Requirement[] = [
  required('shadow-1', 'thread/redis', [1, CLIENTS], '<=', 0.8, `${SATURATES}.`),
  required('shadow-1', 'thread/redis', [16, CLIENTS], '<=', 1.1, `${SATURATES_16}.`),
  required('shadow-1', 'thread/redis', [1, 1000], '<=', 0.8, `${SATURATES}, with 1,000 clients, too.`),
  required('shadow-1', 'thread/redis', [16, 1000], '<=', 1.1, `${SATURATES_16}, with 1,000 clients, too.`),
  required('shadow', 'cpu/envoy', [1, CLIENTS], '<=', 0.8, 'The whole proxy costs less CPU than Envoy.'),
  required(
    'shadow',
    'cpu/envoy',
    [16, CLIENTS],
    '<=',
    0.3,
    'The whole proxy costs less than a third of the CPU of Envoy.',
  ),
  required('shadow', 'ops/envoy', [1, CLIENTS], '>=', 1.5, 'The proxy serves half as much again as Envoy.'),
  required('shadow', 'ops/envoy', [16, CLIENTS], '>=', 2.5, 'The proxy serves two and a half times as much as Envoy.'),
  required(
    'shadow',
    'ops/twemproxy',
    [1, CLIENTS],
    '>=',
    0.8,
    'The proxy serves nearly as much as twemproxy, which does not mirror.',
  ),
  required(
    'shadow',
    'ops/twemproxy',
    [16, CLIENTS],
    '>=',
    0.95,
    'The proxy serves as much as twemproxy, which does not mirror.',
  ),
  required(
    'shadow',
    'p99/redis',
    [1, CLIENTS],
    '<=',
    1.3,
    'At a rate that all keep, the proxy adds little to the slowest replies.',
  ),
];

/** The requirement of the soak. */
export const MEMORY_REQUIREMENT = {
  maxRssMib: 200,
  says: 'With 1,000 clients and values up to 64 KiB the resident memory stays small.',
};

/** The text of the limit: `≤ 1.1`. */
export const boundOf = ({ bound, value }: Requirement): string => `${bound === '<=' ? '≤' : '≥'} ${value}`;

/**
 * The text of the requirement: `thread/redis@16,1000<=1.1`; for another peer than `shadow`,
 * `shadow-1:thread/redis@16<=1.1`.
 */
export const ruleOf = ({ peer, ratio, pipeline, clients, bound, value }: Requirement): string =>
  `${peer === 'shadow' ? '' : `${peer}:`}${ratio}@${pipeline}${clients === CLIENTS ? '' : `,${clients}`}${bound}${value}`;

/** Reads the text of `ruleOf`. @throws {LoadtestError} that says what is allowed */
export function parseRequirement(text: string): Requirement {
  const [, peer = 'shadow', ratio, pipeline, clients, bound, value] =
    /^(?:(shadow(?:-\d)?):)?([a-z0-9/]+)@(\d+)(?:,(\d+))?(<=|>=)(\d+(?:\.\d+)?)$/.exec(text) ?? [];
  if (!COMPARISON_NAMES.some((name) => name === ratio)) {
    const form = `[PEER:]RATIO@PIPELINE[,CLIENTS]<=VALUE or >=VALUE, such as ${ruleOf(REQUIREMENTS[0])}`;
    throw new LoadtestError(
      'USAGE',
      `--require ${text}: write ${form}; RATIO is one of ${COMPARISON_NAMES.join(', ')}`,
    );
  }
  return {
    peer: peer as ShadowName,
    ratio: ratio as Comparison,
    pipeline: Number(pipeline),
    clients: clients === undefined ? CLIENTS : Number(clients),
    bound: bound as Requirement['bound'],
    value: Number(value),
    says: 'Required on the command line.',
  };
}

/** The point of a run at which a requirement is measured. */
export const pointOf = ({ ratio, pipeline, clients }: Requirement, points: readonly Point[]): Point | undefined =>
  points.find((point) => point.pipeline === pipeline && point.clients === clients && comparable(ratio, point));

/**
 * `rate not kept`: the latencies are those of another load, and show nothing. `out of reach`: missed, and a proxy that
 * takes no CPU time would also miss it here.
 */
export type Verdict = 'holds' | 'missed' | 'out of reach' | 'rate not kept' | 'not measured';

/**
 * @param measured the median of the rounds
 * @param kept whether all peers kept the rate of the point
 * @param reach what a proxy that takes no CPU time would reach (`reachOf`); null if that does not apply
 */
export function verdictOf(
  { bound, value }: Requirement,
  measured: number | undefined,
  kept: boolean,
  reach: number | null,
): Verdict {
  if (measured === undefined) return 'not measured';
  if (!kept) return 'rate not kept';
  if (bound === '<=' ? measured <= value : measured >= value) return 'holds';
  return reach !== null && reach < value ? 'out of reach' : 'missed';
}

export interface Judgement extends Requirement {
  readonly measured: Spread | null;
  /** The parameter of `verdictOf`. */
  readonly reach: number | null;
  readonly verdict: Verdict;
}

/** @param cores number of cores of the machine that all of them shared */
export function judge(samples: readonly Sample[], requirement: Requirement, cores: number): Judgement {
  const point = pointOf(requirement, samples);
  if (point === undefined) return { ...requirement, measured: null, reach: null, verdict: 'not measured' };
  const measured = ratioOf(samples, requirement.peer, requirement.ratio, point);
  const peers = samples.filter((sample) => samePoint(sample, point)).map(({ peer }) => peer);
  const kept = peers.every((peer) => keptRate(rowOf(samples, peer, point)));
  const reach = reachOf(samples, requirement.peer, requirement.ratio, point, cores);
  return { ...requirement, measured, reach, verdict: verdictOf(requirement, measured?.median, kept, reach) };
}
