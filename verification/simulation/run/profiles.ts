/** What a run does: load, faults by probability, operator. Times are milliseconds of virtual time. */
import type { Mix } from '../clients/commands.js';
import { SLOTS, slotOf } from '../server/slots.js';
import type { NetworkOptions } from '../world/network.js';

/** The mean time between two of a kind; absent: never. */
export interface Faults {
  /** A connection is cut at any byte. */
  readonly cut?: number;
  /** The proxy loses a connection to a server, which reads what was sent, and sees the end later. */
  readonly laneCut?: number;
  /** The next command of one kind is run, and its connection is cut before the reply arrives. */
  readonly answerLost?: number;
  /** One direction of a connection is silent for up to `silenceMs`. */
  readonly silence?: number;
  readonly silenceMs?: number;
  /** A client closes its connection, whatever waits. */
  readonly leave?: number;
  /** No client sends anything for up to `restMs`. */
  readonly rest?: number;
  readonly restMs?: number;
  /** A client reads nothing for a while. */
  readonly slowReader?: number;
  /** A server is stopped (SIGSTOP) for up to `pauseMs`. */
  readonly pause?: number;
  readonly pauseMs?: number;
  /** Both are stopped at once for up to `pauseMs`. */
  readonly bothPause?: number;
  /** A server ends and starts again with its data. */
  readonly serverRestart?: number;
  /** Both do at once, and start after several seconds. */
  readonly bothRestart?: number;
  /** The source alone does. */
  readonly sourceRestart?: number;
  /** One connection to a server is silent in both directions for several seconds. */
  readonly mute?: number;
  /** A server's address leads to the other server for a while, and some of its connections are cut. */
  readonly astray?: number;
  /** The target has no room for all keys, for seconds. */
  readonly tight?: number;
  /** Once the status is clean, a server does not answer for up to `hangMs`: it is stopped, or loads its data. */
  readonly hang?: number;
  readonly hangMs?: number;
  /** It is stopped for so short that it is not down, or answers PING with an error for long. */
  readonly blip?: number;
  /** The mirror ends, and starts again with its data after several seconds. */
  readonly outage?: number;
  /** The mirror ends and starts again without its data. */
  readonly mirrorLoss?: number;
  /** The authority ends, and starts again without its keys. */
  readonly authorityLoss?: number;
  /** A server is loading, busy, out of memory, cannot save, or is a replica, for up to `troubleMs`. */
  readonly trouble?: number;
  readonly troubleMs?: number;
  /** A server refuses a share of all commands for up to `troubleMs`. */
  readonly refusal?: number;
  /** A server refuses a step of new connections for up to `troubleMs`. */
  readonly handshake?: number;
  /** A server ends, and its replica is promoted with all keys: Sentinels name another address. */
  readonly failover?: number;
  /** A slot of a cluster moves to another node with its keys, and back. */
  readonly slotMove?: number;
  /** The clock of a server, or of the proxy's machine, is set by 0.6 s to `clockSetMs`, forwards or back. */
  readonly clockSet?: number;
  readonly clockSetMs?: number;
  /** The proxy's process is killed at any event, and starts again. */
  readonly proxyKill?: number;
  /** It is asked to end (SIGTERM), and starts again. */
  readonly proxyStop?: number;
  /** It is stopped (SIGSTOP) for up to `proxyPauseMs`. */
  readonly proxyPause?: number;
  readonly proxyPauseMs?: number;
  /** Its machine loses its power: what was not synced may be lost. */
  readonly powerLoss?: number;
  /** It is killed, and its state folder is damaged before it starts again. */
  readonly tamper?: number;
  /** The process that serves is killed. */
  readonly holderKill?: number;
  /** It is asked to end (SIGTERM). */
  readonly holderEnd?: number;
  /** It is stopped (SIGSTOP) for up to `holderStopMs`. */
  readonly holderStop?: number;
  readonly holderStopMs?: number;
  /** It is stopped for seconds together with both servers, with all that wait, or with all of them. */
  readonly allStop?: number;
  /** It cannot reach one server for up to `holderCutMs`. */
  readonly holderCut?: number;
  /** It loses all its connections to both at once, and cannot connect for a second at most. */
  readonly holderReset?: number;
  /** It cannot reach both; who takes over is killed soon, and then it can. */
  readonly relapse?: number;
  readonly holderCutMs?: number;
  /** A process that waits is stopped for up to `standbyStopMs`, or killed. */
  readonly standbyStop?: number;
  readonly standbyStopMs?: number;
  readonly standbyKill?: number;
  /** Its machine loses its power: servers see the end of its connections seconds later. */
  readonly standbyLoss?: number;
  /** One cannot reach one server for up to `holderCutMs`. */
  readonly standbyCut?: number;
  /** Its disk refuses writes, or is slow. */
  readonly diskFull?: number;
  readonly diskSlow?: number;
  /** The operator changes the stage, or takes it back. */
  readonly stageChange?: number;
  readonly rollback?: number;
  /** The operator begins a verification or a copy, ends it, pauses it, or changes its limits. */
  readonly verify?: number;
  readonly backfill?: number;
  readonly stopJob?: number;
  readonly changeJob?: number;
  /** The operator raises the fence by hand, or lifts it. */
  readonly handFence?: number;
  /** The operator reloads the plan with other limits. */
  readonly reload?: number;
}

/** What only says how long a fault lasts at most. */
export const DURATIONS = [
  ...(['silenceMs', 'pauseMs', 'troubleMs', 'proxyPauseMs', 'holderStopMs', 'holderCutMs', 'standbyStopMs'] as const),
  ...(['clockSetMs', 'hangMs', 'restMs'] as const),
] as const;

export type Fault = Exclude<keyof Faults, (typeof DURATIONS)[number]>;

export interface Profile {
  readonly name: string;
  readonly clients: number;
  readonly pipeline: number;
  readonly thinkMs: readonly [number, number];
  readonly keys: number;
  /** Share of pipelines that do something to their own or to another client's connection. */
  readonly sessionShare: number;
  readonly mix: Partial<Mix>;
  readonly network: NetworkOptions;
  /** The clocks of the machines are apart by up to twice as much. */
  readonly clocksOffMs: number;
  readonly faults: Faults;
  /** A process of the proxy that has ended is started again within so long. */
  readonly restartMs: number;
  /** Processes that wait to take over, each on a machine and a disk of its own. */
  readonly standbys: number;
  /** Nothing in it is a reason for one of them to take over. */
  readonly holderStays: boolean;
  /** A workload that is suspect as a whole for so long is copied. */
  readonly backfillAfterMs: number;
  readonly stage: 'off' | 'dualwrite' | 'shadow' | 'live' | 'rampdown';
  /** Written into the plan. */
  readonly plan?: Readonly<Record<string, unknown>>;
  /** That of the first client, the second …, and so on again; absent: most are in database 0. */
  readonly databases?: readonly number[];
  /** No client waits longer than that, beside the time for which it asked to block. */
  readonly boundMs?: number;
  /** No effect waits longer than that for the mirror. */
  readonly lagMs?: number;
  /** The journal is looked at with each change: it takes time. */
  readonly journaled?: boolean;
  /** Which keys have another authority than the others, at every time; absent: none. */
  readonly isApart?: (key: string) => boolean;
  /** All clients are in database 0, with RESP2 and without a user: one connection carries what does not block. */
  readonly oneLane?: boolean;
  /** Nothing in it is a reason to refuse a change of stage for suspects: they are repaired at once. */
  readonly certainMoves?: boolean;
  /** Nothing in it is a reason for the proxy to suspect a key. */
  readonly certain?: boolean;
  /** The target has a bound of memory, and room for all keys; it has evicted some before. Copies last for seconds. */
  readonly bounded?: boolean;
  /** Servers say that keys take so many times what they take. A key with some elements is copied in chunks. */
  readonly memoryFactor?: number;
  /** One client queues more than all clients may together. */
  readonly hoards?: boolean;
  /** The share of the reads that the target is to get, 0 to 1. */
  readonly readShare?: number;
  /** A client reads all keys with SCAN. */
  readonly scans?: boolean;
  /** What blocks takes nothing behind the end of its client. With some seeds servers refuse CLIENT UNBLOCK. */
  readonly endsAtLeave?: boolean;
  /** The target has keys of its own before the proxy begins. */
  readonly foreign?: boolean;
  /** The target is that of another shard, too: whether a key is the other's. */
  readonly isOfOtherShard?: (key: string) => boolean;
  /** A client writes to the target, bypassing the proxy. */
  readonly bypassed?: boolean;
  /** The source is fenced while clients get replies of the target. */
  readonly fenced?: boolean;
  /** Each process answers as a Sentinel, and clients ask it. */
  readonly announced?: boolean;
  /** Each server has a replica. Sentinels name the master, or it has half of the slots of a cluster. */
  readonly topology?: 'sentinels' | 'clusters';
}

/** Connections that differ: what was sent first arrives last. */
const NEAR: NetworkOptions = { delayMs: [0.02, 1], lateShare: 0.005, lateMs: 40, splitShare: 0.01 };
const UNFOLLOWED: Partial<Mix> = {
  ...{ strings: 4, expiring: 3, counters: 2, floats: 1, lists: 3, blocking: 3, hashes: 2, sets: 2, sortedSets: 3 },
  ...{ streams: 3, transactions: 2, several: 2, mixed: 1, keyspace: 1, ofRedisOnly: 1, scripts: 2, publish: 2 },
  ...{ large: 0.3, forbidden: 0.1 },
};
const ALL: Partial<Mix> = { ...UNFOLLOWED, databases: 0.5, followed: 20, hidden: 0.3 };
/** Several lanes, few keys: what one lane does must wait for the others. */
const CROWDED: Partial<Mix> = {
  ...{ strings: 3, counters: 3, lists: 2, blocking: 3, several: 3, expiring: 2, streams: 2, transactions: 3 },
  followed: 20,
};

const profile = (name: string, faults: Faults, more: Partial<Profile> = {}): Profile => ({
  ...{
    name,
    clients: 12,
    pipeline: 6,
    thinkMs: [0, 4],
    keys: 5,
    sessionShare: 0.02,
    mix: ALL,
    network: NEAR,
    clocksOffMs: 0,
    faults,
    restartMs: 300,
    standbys: 0,
    holderStays: false,
    backfillAfterMs: 3_000,
    stage: 'shadow',
  },
  ...more,
});

/** Nothing in it makes a whole workload suspect, and what is written is written to few keys. */
const NAMED: Partial<Profile> = {
  mix: {
    ...{ strings: 4, counters: 3, lists: 4, hashes: 2, sets: 2, sortedSets: 2, transactions: 2, several: 3 },
    ...{ expiring: 2, unwritten: 3, followed: 4 },
  },
  keys: 3,
  restartMs: 20,
};
/** Both servers know all of it. */
const COMMON: Partial<Mix> = { counters: 4, floats: 1, pairs: 3, certainWaits: 2, longScripts: 0.03 };
/** Clients are moved by themselves to a server that answers, from one that does not for a second. */
const FAILOVER: Partial<Profile> = {
  ...{ clients: 6, pipeline: 2, thinkMs: [10, 150], backfillAfterMs: 200 },
  mix: COMMON,
  plan: { failover: 'automatic', limits: { downAfterMs: 1_000, flipMs: 1_000 } },
};
/** Two processes wait, for minutes of few commands. */
const TAKEOVER: Partial<Profile> = { standbys: 2, clients: 4, thinkMs: [200, 1_600], backfillAfterMs: 200 };
/** Many keys, few commands: most keys are not touched before they are restored. */
const EMPTIED: Faults = {
  authorityLoss: 3_000,
  stageChange: 4_000,
  cut: 1_500,
  pause: 3_000,
  pauseMs: 300,
  proxyKill: 20_000,
};
const RESTORING: Partial<Profile> = {
  ...{ clients: 6, thinkMs: [20, 200], pipeline: 3, keys: 25, sessionShare: 0, backfillAfterMs: 500 },
  mix: {
    ...{ strings: 4, counters: 2, lists: 3, blocking: 2, hashes: 2, sets: 2, sortedSets: 2, streams: 1 },
    ...{ transactions: 1, several: 2 },
  },
};
const EXPIRING: Partial<Profile> = { mix: { expiring: 10, locks: 2, transactions: 1 }, keys: 15, thinkMs: [0, 40] };

/** The plan of runs in which some keys are not written twice, or have another authority. */
const twoWorkloads = (stage: string): Profile['plan'] => ({
  workloads: [{ name: 'odd', keys: ['*1', 'q[0246]'], stage }],
});
const REGIONAL: Profile['plan'] = {
  shards: [
    {
      ...{ name: 's0', listen: 'redis://10.0.0.1:7000', region: 'eu' },
      ...{ source: 'redis://10.0.0.2:6379', target: 'redis://10.0.0.3:6379' },
    },
  ],
  topology: { mode: 'active-active', regions: ['eu', 'us'], secondWriter: 'refuse' },
  workloads: [
    { name: 'theirs', keys: ['u*'], writer: 'us', stage: 'complete' },
    { name: 'apart', keys: ['y*'], writer: 'us', stage: 'off' },
  ],
};
const CLUSTERS: Profile['plan'] = {
  cluster: { source: 'redis://10.0.0.6:6379', target: 'redis://10.0.0.7:6379', listen: 'redis://10.0.0.1:7000' },
};
const isUpper = (key: string): boolean => slotOf(key) >= SLOTS / 2;
/** Two shards have the same target. */
const SHARED: Profile['plan'] = {
  shards: [
    {
      ...{ name: 's0', listen: 'redis://10.0.0.1:7000', owns: { slots: `0-${SLOTS / 2 - 1}` } },
      ...{ source: 'redis://10.0.0.2:6379', target: 'redis://10.0.0.3:6379' },
    },
    {
      ...{ name: 's1', listen: 'redis://10.0.0.1:7001', owns: { slots: `${SLOTS / 2}-${SLOTS - 1}` } },
      ...{ source: 'redis://10.0.0.4:6379', target: 'redis://10.0.0.3:6379' },
    },
  ],
};
const SWAPPED: Partial<Mix> = {
  ...{ strings: 3, counters: 3, lists: 2, blocking: 4, several: 2, expiring: 2, transactions: 2, swaps: 6, publish: 1 },
};

/** The first pattern that has a key says whose it is: later ones have some keys of those before, too. */
const OVERLAPPING: Profile['plan'] = {
  workloads: [
    { name: 'none', keys: ['q0', 'b0'], stage: 'off' },
    { name: 'odd', keys: ['*1', 'q[0246]'], stage: 'shadow' },
    { name: 'all', keys: ['q*'], stage: 'rampdown' },
  ],
};

/** The keys whose authority is the source. */
const APART = /1$|^q[0246]|^b0$/;
const LATE: NetworkOptions = { ...NEAR, lateShare: 0.04, lateMs: 12 };
const LEAVING: Faults = { leave: 8, pause: 20, pauseMs: 40 };
const CERTAIN: Partial<Mix> = {
  ...{ strings: 3, counters: 2, floats: 1, hashes: 2, sets: 2, sortedSets: 2, several: 4, pairs: 2, unwritten: 2 },
  ...{ certainWaits: 6, certainTransactions: 2, certainStreams: 3 },
};
const WAITING: Partial<Mix> = { waits: 9, followedWaits: 1, blocking: 3, several: 1, followed: 4 };

/** Without CLIENT KILL, UNBLOCK, QUIT and the like, replies are bound to come in time, and connections to last. */
const WITHOUT_SESSIONS: readonly Profile[] = [
  ...[
    profile(
      'lanes',
      {},
      { mix: { ...CROWDED, fresh: 3 }, keys: 2, boundMs: 250, lagMs: 100, journaled: true, databases: [0] },
    ),
    profile('certain', {}, { mix: CERTAIN, keys: 2, network: LATE, databases: [0], certain: true }),
    profile('certain-lane', {}, { mix: CERTAIN, keys: 2, network: LATE, oneLane: true, certain: true }),
    profile(
      'lost',
      { laneCut: 15, answerLost: 15 },
      { mix: { ...NAMED.mix, waits: 8 }, keys: 12, thinkMs: [0, 10], oneLane: true },
    ),
    profile('waits', LEAVING, { mix: WAITING, keys: 2, network: LATE, endsAtLeave: true, databases: [0] }),
    profile('one-lane', LEAVING, { mix: WAITING, keys: 2, network: LATE, endsAtLeave: true, oneLane: true }),
    profile(
      'taken',
      {},
      { mix: { waits: 6, blocking: 6, lists: 1, fresh: 2 }, oneLane: true, boundMs: 250, journaled: true },
    ),
    profile(
      'apart',
      { leave: 200 },
      {
        mix: { ...UNFOLLOWED, blocking: 8, scripts: 0, pairs: 15, fresh: 3, databases: 0.5 },
        ...{ plan: OVERLAPPING, stage: 'rampdown', journaled: true },
        isApart: (key) => APART.test(key),
        scans: true,
      },
    ),
    profile(
      'half',
      { leave: 200, proxyStop: 80 },
      {
        mix: { ...UNFOLLOWED, scripts: 0, pairs: 15, fresh: 3, databases: 1 },
        databases: [0, 0, 0, 1, 2],
        keys: 40,
        journaled: true,
        stage: 'live',
        plan: { default: { stage: 'live', percent: 50 } },
        isApart: isUpper,
      },
    ),
    profile(
      'swaps',
      { cut: 100, proxyStop: 200 },
      { mix: { ...SWAPPED, fresh: 2 }, keys: 4, databases: [0, 1, 2, 3], stage: 'rampdown', journaled: true },
    ),
    profile(
      'swaps-of-source',
      {},
      { mix: { ...SWAPPED, fresh: 2, hidden: 0.05 }, keys: 4, databases: [0, 1, 2, 3], boundMs: 500, journaled: true },
    ),
    profile(
      'swapped-copies',
      { mirrorLoss: 600, backfill: 200, verify: 300, proxyKill: 1_500 },
      {
        mix: { ...SWAPPED, fresh: 4 },
        ...{ keys: 8, databases: [0, 1, 2, 3], backfillAfterMs: 50, thinkMs: [0, 60] },
      },
    ),
    profile(
      'share',
      { leave: 200 },
      { mix: UNFOLLOWED, plan: { default: { stage: 'shadow', shadowReads: 30 } }, readShare: 0.3 },
    ),
    profile(
      'workloads',
      { stageChange: 8, cut: 200, proxyKill: 500 },
      { mix: { ...UNFOLLOWED, pairs: 12, several: 4 }, plan: twoWorkloads('off') },
    ),
    profile(
      'split',
      { stageChange: 60, leave: 40, trouble: 150, troubleMs: 100, answerLost: 40, proxyKill: 500 },
      { mix: { ...UNFOLLOWED, pairs: 20 }, plan: twoWorkloads('shadow'), stage: 'rampdown' },
    ),
    profile(
      'flips',
      { stageChange: 8, diskSlow: 60 },
      { mix: { ...CROWDED, waits: 3, databases: 2 }, keys: 2, network: LATE, scans: true, certainMoves: true },
    ),
    profile(
      'limits',
      {},
      {
        ...{ mix: { ...UNFOLLOWED, longWaits: 1, logins: 1 }, thinkMs: [0, 400], pipeline: 2, boundMs: 250 },
        plan: { limits: { loginMs: 300, idleMs: 700 } },
      },
    ),
    profile(
      'memory',
      {},
      { thinkMs: [0, 100], boundMs: 250, hoards: true, plan: { limits: { totalClientBytes: '3MiB' } } },
    ),
    profile(
      'floods',
      { slowReader: 15, pause: 30, pauseMs: 300 },
      {
        ...{ mix: { strings: 16, counters: 8, transactions: 6, large: 3, floods: 0.2 }, clients: 6 },
        plan: { limits: { clientOutputBytes: '1MiB' } },
      },
    ),
    profile(
      'small-queue',
      { pause: 60, pauseMs: 40 },
      { mix: { ...SWAPPED, large: 0.3 }, databases: [2, 3], plan: { limits: { queueBytes: '1KiB' } } },
    ),
    profile(
      'bounded',
      { backfill: 1_500, tight: 4_000 },
      { mix: NAMED.mix, thinkMs: [0, 800], pipeline: 2, bounded: true },
    ),
    profile('mute', { mute: 2_000 }, { boundMs: 3_500, thinkMs: [0, 400], pipeline: 2 }),
    profile('hangs', { hang: 1_000, hangMs: 12_000, blip: 3_000, rest: 3_000, restMs: 4_000 }, FAILOVER),
    profile(
      'late-changes',
      { stageChange: 100, pause: 600, pauseMs: 3_000, serverRestart: 2_000 },
      {
        mix: SWAPPED,
        keys: 4,
        databases: [0, 1, 2, 3],
        thinkMs: [0, 400],
        clients: 6,
        plan: { limits: { flipMs: 200 } },
      },
    ),
    profile(
      'guarded',
      { stageChange: 4_000, proxyKill: 30_000, cut: 2_000 },
      { thinkMs: [0, 1_000], pipeline: 2, stage: 'live', plan: { guard: { forSeconds: 1, maxErrorShare: 0 } } },
    ),
    profile('outages', { outage: 6_000 }, { thinkMs: [0, 300], pipeline: 2, boundMs: 250 }),
    profile(
      'blocked',
      { stageChange: 40, leave: 300, answerLost: 200 },
      {
        mix: { sleepers: 12, counters: 2, fresh: 1, hidden: 0.1, longNames: 0.1 },
        keys: 2,
        pipeline: 2,
        boundMs: 1_500,
        journaled: true,
      },
    ),
    profile(
      'bypassed',
      {},
      { mix: { strings: 4, lists: 2, transactions: 1 }, clients: 5, pipeline: 2, thinkMs: [10, 80], bypassed: true },
    ),
    profile(
      'fenced',
      {
        ...{ stageChange: 500, handFence: 700, rollback: 2_500 },
        ...{ proxyKill: 2_500, sourceRestart: 1_500, pause: 1_500, pauseMs: 300, cut: 200, mute: 2_000 },
      },
      {
        mix: { ...COMMON, strings: 4, lists: 3, blocking: 6, hashes: 2, streams: 2, transactions: 2, longScripts: 0 },
        ...{ thinkMs: [0, 80], stage: 'rampdown', backfillAfterMs: 100, fenced: true, plan: { fence: 'acl' } },
      },
    ),
    profile(
      'foreign',
      { proxyKill: 400 },
      {
        mix: { ...UNFOLLOWED, scripts: 0.2, foreign: 8, databases: 0.1 },
        ...{ databases: [0, 0, 1, 2], foreign: true, stage: 'off', backfillAfterMs: 50 },
      },
    ),
    profile(
      'shared',
      { leave: 200, cut: 200, verify: 100, backfill: 150 },
      {
        mix: { ...UNFOLLOWED, scripts: 0, pairs: 15, databases: 2 },
        ...{
          databases: [0, 0, 1, 2],
          plan: SHARED,
          stage: 'rampdown',
          scans: true,
          isApart: isUpper,
          isOfOtherShard: isUpper,
        },
      },
    ),
    profile(
      'hidden',
      { cut: 60, proxyKill: 600 },
      {
        mix: { hidden: 4, scripts: 3, strings: 3, counters: 3, several: 2, transactions: 1 },
        ...{ keys: 3, journaled: true, backfillAfterMs: 20, databases: [0, 0, 1] },
      },
    ),
    profile(
      'chunks',
      { cut: 80, backfill: 30, verify: 40, stopJob: 300, mirrorLoss: 500 },
      {
        mix: {
          ...{ lists: 4, hashes: 3, sets: 3, sortedSets: 3, streams: 4, several: 2, expiring: 2, transactions: 1 },
          ...{ scripts: 1, keyspace: 0.5, databases: 0.3 },
        },
        ...{ keys: 2, memoryFactor: 2_000, backfillAfterMs: 50, plan: { limits: { largeKeyBytes: '300KiB' } } },
      },
    ),
    profile('regions', {}, { mix: { strings: 4, secondWriter: 10 }, plan: REGIONAL }),
  ].map((each) => ({ ...each, sessionShare: 0 })),
];

/** In 100 ms about 1,000 commands are sent, where nothing waits. */
export const PROFILES: readonly Profile[] = [
  profile('calm', {}),
  profile('cuts', { cut: 15, answerLost: 60, leave: 20, slowReader: 60, silence: 30, silenceMs: 300 }),
  profile('astray', { astray: 60, cut: 100 }),
  profile('expiry', { cut: 150, pause: 600, pauseMs: 300 }, EXPIRING),
  profile('clocks', { cut: 200, proxyKill: 800, stageChange: 100 }, { ...EXPIRING, clocksOffMs: 2_000 }),
  profile('clocks-set', { clockSet: 500, clockSetMs: 3_000, cut: 200, proxyKill: 1_000 }, EXPIRING),
  profile('pauses', { pause: 1_000, pauseMs: 3_000, cut: 50 }),
  profile('servers', { serverRestart: 100, cut: 40 }),
  profile('restarts', { proxyKill: 70, cut: 40 }),
  profile('expiry-restarts', { proxyKill: 300, cut: 200 }, EXPIRING),
  profile('crashes', { proxyKill: 50, sourceRestart: 1_500, pause: 150, pauseMs: 300, cut: 200 }, NAMED),
  profile(
    'journals',
    { proxyKill: 150, cut: 100, pause: 300, pauseMs: 300 },
    { ...NAMED, mix: { ...NAMED.mix, longNames: 0.5 } },
  ),
  profile('damages', { tamper: 15, powerLoss: 30, pause: 500, pauseMs: 300 }, { ...NAMED, backfillAfterMs: 50 }),
  profile('full-disk', { proxyKill: 50, diskFull: 100 }, NAMED),
  profile(
    'standbys',
    {
      ...{ holderStop: 8_000, holderStopMs: 900, holderCut: 6_000, holderCutMs: 9_000, holderReset: 4_000 },
      ...{ standbyStop: 8_000, standbyStopMs: 7_000, standbyKill: 10_000 },
      ...{ pause: 12_000, bothPause: 4_000, pauseMs: 6_000, bothRestart: 12_000, allStop: 1_500 },
    },
    { ...TAKEOVER, holderStays: true },
  ),
  profile(
    'takeovers',
    {
      ...{ holderKill: 12_000, holderStop: 20_000, holderStopMs: 12_000, holderEnd: 8_000, holderCut: 10_000 },
      ...{ holderCutMs: 8_000, holderReset: 10_000, relapse: 20_000 },
      ...{ standbyStop: 12_000, standbyStopMs: 40_000, standbyKill: 20_000, standbyCut: 15_000 },
    },
    { ...TAKEOVER, stage: 'rampdown' },
  ),
  profile(
    'announced',
    { holderKill: 4_000, holderEnd: 1_500, standbyKill: 10_000, standbyLoss: 4_000 },
    {
      ...{
        clients: 10,
        thinkMs: [0, 60],
        standbys: 2,
        backfillAfterMs: 200,
        mix: { strings: 4, counters: 4, lists: 2 },
      },
      ...{ announced: true, plan: { limits: { clientOutputBytes: '1MiB' } } },
    },
  ),
  profile('operator', {
    ...{
      stageChange: 15,
      rollback: 100,
      cut: 50,
      answerLost: 100,
      verify: 100,
      backfill: 100,
      stopJob: 100,
      changeJob: 30,
      reload: 150,
    },
  }),
  profile('troubles', { trouble: 60, troubleMs: 200, cut: 50 }),
  profile('refusals', { refusal: 60, handshake: 60, troubleMs: 200, cut: 40 }, { mix: { ...ALL, lasting: 3 } }),
  profile('emptied', EMPTIED, RESTORING),
  profile('losses', { mirrorLoss: 200, cut: 40, proxyKill: 300 }),
  profile('disk', { diskFull: 300, diskSlow: 300, powerLoss: 150, proxyKill: 200, cut: 50, stageChange: 20 }),
  ...WITHOUT_SESSIONS,
  profile(
    'sentinels',
    { failover: 800, cut: 150, stageChange: 150, proxyKill: 2_000, pause: 1_500, pauseMs: 500 },
    { thinkMs: [0, 60], pipeline: 3, topology: 'sentinels' },
  ),
  profile(
    'clusters',
    { slotMove: 600, failover: 800, cut: 150, stageChange: 150, proxyKill: 2_000, pause: 1_500, pauseMs: 500 },
    {
      ...{ thinkMs: [0, 60], pipeline: 3, keys: 10, mix: { ...ALL, databases: 0.1 }, databases: [0] },
      ...{ topology: 'clusters', plan: CLUSTERS },
    },
  ),
  profile('upgrades', { proxyStop: 100, proxyPause: 800, proxyPauseMs: 2_000, cut: 40 }),
  profile('storm', {
    ...{ cut: 30, leave: 40, silence: 50, silenceMs: 1_000, pause: 2_000, pauseMs: 2_000, slowReader: 60 },
    ...{ serverRestart: 800, proxyKill: 600, stageChange: 10, verify: 150, changeJob: 40 },
  }),
];
