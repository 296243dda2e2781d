/** Every state of a client, ended in every way: afterwards the client is as one that has just connected. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { reservationsOf } from '../../../src/pipeline/key-locks.js';
import type { Lane } from '../../../src/pipeline/lane.js';
import { SIDES } from '../../../src/route/stage.js';
import { HandshakeRefused } from '../../../src/upstream/server.js';
import { connect, settled, type FakeClient, type FakeProxy } from '../../support/context.js';

interface Scene {
  readonly client: FakeClient;
  readonly proxy: FakeProxy;
  /** Lanes that one client has to itself now. */
  readonly borrowed: ReadonlySet<Lane>;
}

type Step = (scene: Scene) => Promise<unknown> | void;

interface State {
  readonly name: string;
  readonly enter: Step;
  /** What ends it, by event. */
  readonly ways: Readonly<Record<string, Step>>;
}

const MASTERDOWN = new HandshakeRefused('MASTERDOWN the source is lost', 'source');

/** A server's usual reply. Commands that block have found nothing, or are out of time. */
function usual(): (command: string) => string {
  let queues = false;
  return (command) => {
    const name = command.split(' ')[0].toUpperCase();
    if (name === 'MULTI') queues = true;
    if (name === 'EXEC') queues = false;
    if (name === 'EXEC') return '*1 +OK';
    if (queues && name !== 'MULTI') return '+QUEUED';
    if (name === 'XADD') return '$3 1-1';
    if (['XLEN', 'WAIT', 'PUBLISH'].includes(name)) return ':1';
    if (['SET', 'MULTI', 'WATCH', 'UNWATCH', 'CLIENT', 'PING', 'HELLO'].includes(name)) return '+OK';
    return '*-1';
  };
}

/** The next command that is answered gets this reply. */
function firstly(reply: string): (command: string) => string {
  const next = usual();
  let first = true;
  return (command) => {
    const plain = next(command);
    if (!first) return plain;
    first = false;
    return reply;
  };
}

const send =
  (...commands: readonly string[]): Step =>
  ({ client }) => {
    for (const command of commands) client.send(...command.split(' '));
    return settled();
  };
const answered: Step = ({ proxy }) => proxy.answerAll(usual());
const refused: Step = ({ proxy }) => proxy.answerAll(firstly('-NOPERM no'));
const disconnect: Step = ({ client, proxy }) => {
  client.leave();
  return proxy.answerAll(usual());
};
const serverLost: Step = async ({ client, proxy }) => {
  proxy.lose('source');
  await settled();
  assert.equal(client.destroyed, true);
  client.leave();
  await proxy.answerAll(usual());
};
const steps =
  (...all: readonly Step[]): Step =>
  async (scene) => {
    for (const step of all) await step(scene);
  };

const beginFlip: Step = ({ proxy }) => {
  proxy.hold('default');
};
const endFlip: Step = async ({ proxy }) => {
  proxy.move('default', 'live');
  proxy.release('default');
  proxy.clients.waitingRoom.open();
  await proxy.answerAll(usual());
};
/** What blocks at the server is let go, and sent to the other one. */
const flip: Step = async (scene) => {
  const { proxy } = scene;
  await beginFlip(scene);
  const over = proxy.clients.interrupt(proxy.router.default);
  await proxy.answerAll(usual());
  await over;
  await endFlip(scene);
};
/** As `flip`, of the keys that begin with w: alone. */
const flipOne: Step = async ({ proxy }) => {
  const workload = proxy.workload('w');
  const endHold = proxy.router.hold(workload);
  const over = proxy.clients.interrupt(workload);
  await proxy.answerAll(usual());
  await over;
  proxy.router.move(workload, { stage: 'live', percent: 100 });
  endHold();
  proxy.clients.waitingRoom.open();
  await proxy.answerAll(usual());
};
const unblock =
  (how: 'TIMEOUT' | 'ERROR', reply: string): Step =>
  async ({ client, proxy }) => {
    const other = await proxy.connect();
    other.send('CLIENT', 'UNBLOCK', String(client.client.id), how);
    proxy.answerTo('CLIENT UNBLOCK 9223372036854775807', '-ERR no such client');
    await proxy.answerAll(firstly(reply));
    other.leave();
  };

/** Lets the lanes that are being opened be open. */
const opening = new WeakMap<FakeProxy, () => void>();
/** The shared lanes to the source are lost while the client is idle; it gets others only when `opened` says so. */
const lanesLost: Step = ({ proxy }) => {
  for (const lane of [...proxy.sequencer.lanes.source.all()]) lane.lost(new Error('lost'));
  let opened = (): void => undefined;
  proxy.servers.source.opening = new Promise<void>((resolve) => (opened = resolve));
  opening.set(proxy, opened);
};
const opened: Step = async ({ proxy }) => {
  opening.get(proxy)!();
  await proxy.answerAll(usual());
};
const notOpened =
  (problem: Error): Step =>
  async (scene) => {
    scene.proxy.servers.source.refusals.push(problem);
    await opened(scene);
  };
const neverOpened: Step = async (scene) => {
  await notOpened(new Error('connection refused'))(scene);
  assert.equal(scene.client.destroyed, true);
  scene.client.leave();
  await scene.proxy.answerAll(usual());
};

const BLOCKING = [
  'BLPOP k 5',
  'BRPOP k 5',
  'BLMOVE k j LEFT RIGHT 5',
  'BRPOPLPUSH k j 5',
  'BZPOPMIN k 5',
  'BZPOPMAX k 5',
  'BLMPOP 5 1 k LEFT',
  'BZMPOP 5 1 k MIN',
  'XREAD BLOCK 5000 STREAMS k 0',
  'XREAD BLOCK 5000 STREAMS k $',
  'XREADGROUP GROUP g c BLOCK 5000 STREAMS k >',
];
/** The attempt without blocking has found nothing. */
const findsNothing: Step = async ({ client, proxy }) => {
  if (client.client.blocked?.isSent !== true) proxy.answer('*-1');
  await settled();
  assert.equal(client.client.blocked!.isSent, true);
};
const isBlocked = (command: string): Step => steps(send(command), findsNothing);

/** Sets the key free that another client has. */
const freeing = new WeakMap<FakeProxy, () => void>();
/** Another client has the key, until `freed`. */
const keyTaken: Step = async ({ proxy }) => {
  const locks = proxy.sequencer.lanes.source.locks(0);
  const reservation = locks.reserve(['k']);
  freeing.set(proxy, () => locks.releaseReservation(reservation));
};
const nobodyWaits: Step = ({ proxy }) =>
  assert.equal(proxy.sequencer.lanes.source.locks(0).waitsSince(), null, 'others wait behind a client that has left');
const freed: Step = ({ proxy }) => {
  freeing.get(proxy)!();
  return proxy.answerAll(usual());
};

const confirmed = (what: string, count: number): string => `*3 $${what.length} ${what} $1 c :${count}`;
const say =
  (...frames: string[]): Step =>
  ({ proxy }) => {
    proxy.servers.source.links.at(-1)!.say(...frames);
    return settled();
  };

const STATES: readonly State[] = [
  { name: 'idle', enter: () => undefined, ways: { answered, RESET: send('RESET'), disconnect } },
  ...['GET k', 'SET k v', 'XADD k MAXLEN ~ 10 * f v', 'PUBLISH c m', 'CLIENT GETNAME', 'EVAL return 0'].map(
    (command): State => ({
      name: `${command} in flight`,
      enter: send(command),
      ways: { answered, refused, 'server lost': serverLost, RESET: steps(send('RESET'), answered), flip, disconnect },
    }),
  ),
  ...BLOCKING.flatMap((command): State[] => [
    ...(command.includes('$')
      ? []
      : [
          {
            name: `${command} asked without blocking`,
            enter: send(command),
            ways: {
              'server error': ({ proxy }: Scene) => proxy.answerAll(firstly('-WRONGTYPE no')),
              'nothing, then out of time': answered,
              'server lost': serverLost,
              flip: steps(beginFlip, answered, endFlip),
              disconnect,
            },
          },
        ]),
    {
      name: `${command} blocked`,
      enter: isBlocked(command),
      ways: {
        'an element': ({ proxy }) => proxy.answerAll(firstly('*2 $1 k $1 v')),
        'out of time': answered,
        'server error': refused,
        'server lost': serverLost,
        'CLIENT UNBLOCK TIMEOUT': unblock('TIMEOUT', '*-1'),
        'CLIENT UNBLOCK ERROR': unblock('ERROR', '-UNBLOCKED client unblocked'),
        RESET: steps(send('RESET'), answered),
        flip,
        disconnect,
      },
    },
    {
      name: `${command} waiting for a lane`,
      enter: steps(lanesLost, send(command)),
      ways: {
        opened,
        'refused by the server': notOpened(MASTERDOWN),
        'server lost': neverOpened,
        flip: steps(beginFlip, opened, endFlip),
        RESET: steps(send('RESET'), notOpened(MASTERDOWN)),
        disconnect: steps(disconnect, notOpened(MASTERDOWN)),
      },
    },
    {
      name: `${command} waiting for its keys`,
      enter: steps(keyTaken, send(command)),
      ways: {
        freed,
        flip: steps(beginFlip, freed, endFlip),
        disconnect: steps(disconnect, freed),
      },
    },
  ]),
  {
    name: 'WAIT blocked',
    enter: send('WAIT 1 5000'),
    ways: { answered, 'server lost': serverLost, flip, disconnect },
  },
  ...[
    'GET k',
    'SET k v',
    'WATCH k',
    'CLIENT GETNAME',
    'PUBLISH c m',
    'MULTI|SET k v|EXEC',
    'MULTI|CLIENT GETNAME|EXEC',
    'HELLO 3',
    'SELECT 0',
    'UNWATCH',
  ].map((commands): State => ({
    name: `${commands} waiting for a lane`,
    enter: steps(lanesLost, send(...commands.split('|'))),
    ways: {
      opened: steps(opened, send('UNWATCH'), answered, send('RESET'), answered),
      'refused by the server': steps(notOpened(MASTERDOWN), send('UNWATCH'), answered),
      'server lost': neverOpened,
      disconnect: steps(disconnect, notOpened(MASTERDOWN)),
    },
  })),
  {
    name: 'SET k v waiting for its key',
    enter: steps(keyTaken, send('SET k v')),
    ways: {
      freed,
      'refused by the server': steps(lanesLost, freed, notOpened(MASTERDOWN)),
      flip: steps(beginFlip, freed, endFlip),
      disconnect: steps(disconnect, nobodyWaits, freed),
    },
  },
  {
    name: 'BLPOP w:k k 5 blocked',
    enter: isBlocked('BLPOP w:k k 5'),
    ways: {
      'flip of one of its keys': flipOne,
      'flip of one of its keys, once it has left': steps(disconnect, flipOne),
    },
  },
  {
    name: 'BLPOP w:k k 5 waiting for its keys',
    enter: steps(keyTaken, send('BLPOP w:k k 5')),
    ways: {
      'flip of one of its keys': steps(flipOne, freed),
      disconnect: steps(disconnect, flipOne, freed),
    },
  },
  {
    name: 'WATCH k waiting for its answer',
    enter: send('WATCH k'),
    ways: {
      'server error': refused,
      'server lost': serverLost,
      RESET: steps(send('RESET'), answered),
      disconnect,
    },
  },
  {
    name: 'watching',
    enter: steps(send('WATCH k'), answered),
    ways: {
      UNWATCH: steps(send('UNWATCH'), answered),
      DISCARD: steps(send('MULTI', 'DISCARD'), answered),
      'DISCARD of a transaction that EXEC would refuse': steps(send('MULTI', 'MULTI x', 'DISCARD'), answered),
      EXEC: steps(send('MULTI', 'SET k v', 'EXEC'), answered),
      'EXEC of nothing': steps(send('MULTI', 'EXEC'), answered),
      'EXEC with too many words': steps(send('MULTI', 'EXEC x'), answered),
      'EXEC that refuses': steps(send('MULTI', 'SET', 'EXEC'), answered),
      'EXEC of a command that runs alone': steps(send('MULTI', 'MOVE k 1', 'EXEC'), answered),
      'EXEC that a server refuses': steps(lanesLost, send('MULTI', 'SET k v', 'EXEC'), notOpened(MASTERDOWN)),
      'EXEC of a command that runs alone, refused': steps(
        lanesLost,
        send('MULTI', 'MOVE k 1', 'EXEC'),
        notOpened(MASTERDOWN),
      ),
      'flip, then EXEC': steps(flip, send('MULTI', 'SET k v', 'EXEC'), answered),
      'flip, then EXEC while it is under way': steps(beginFlip, send('MULTI', 'SET k v', 'EXEC'), endFlip),
      RESET: steps(send('RESET'), answered),
      'server lost while EXEC is in flight': steps(send('MULTI', 'SET k v', 'EXEC'), serverLost),
      disconnect,
    },
  },
  {
    name: 'in MULTI',
    enter: send('MULTI', 'SET k v'),
    ways: {
      EXEC: steps(send('EXEC'), answered),
      DISCARD: send('DISCARD'),
      'EXEC with too many words': send('EXEC x'),
      'EXEC that refuses': send('SET', 'EXEC'),
      'EXEC that the server refuses': steps(send('EXEC'), refused),
      'EXEC that a lane is refused for': steps(lanesLost, send('EXEC'), notOpened(MASTERDOWN)),
      'EXEC of a command that a lane is refused for': steps(
        lanesLost,
        send('CLIENT GETNAME'),
        notOpened(MASTERDOWN),
        send('SET k w', 'EXEC'),
        ({ client, proxy }) => {
          assert.match(client.replies.at(-1)!, /^-EXECABORT /);
          assert.equal(
            proxy.sent.some(({ command }) => command.startsWith('SET')),
            false,
          );
        },
      ),
      'EXEC after the client has to log in': async ({ client }) => {
        client.client.login.states.source = 'unauthenticated';
        client.mustLogIn = true;
        await send('EXEC')({ client } as Scene);
        client.mustLogIn = false;
        client.client.login.states.source = 'admitted';
      },
      'flip, then EXEC': steps(beginFlip, send('EXEC'), endFlip),
      'server lost while EXEC is in flight': steps(send('EXEC'), serverLost),
      RESET: send('RESET'),
      disconnect,
    },
  },
  {
    name: 'CLIENT REPLY SKIP',
    enter: steps(send('CLIENT REPLY SKIP'), answered),
    ways: {
      answered: steps(send('GET k'), answered),
      'server error': steps(send('GET k'), refused),
      'a probed command': steps(send('XADD k MAXLEN ~ 10 * f v'), answered),
      'a reply of the proxy': send('EXEC'),
      'a command that blocks, out of time': steps(isBlocked('BLPOP k 5'), answered),
      'a command that blocks, unblocked': steps(isBlocked('BLPOP k 5'), unblock('ERROR', '-UNBLOCKED')),
      'a command that blocks, sent again': steps(isBlocked('BLPOP k 5'), flip),
      'refused by the server': steps(lanesLost, send('BLPOP k 5'), notOpened(MASTERDOWN)),
      'refused for other keys': ({ client }) => void client.send('BLPOP'),
      UNSUBSCRIBE: steps(send('UNSUBSCRIBE c'), say(confirmed('unsubscribe', 0))),
      RESET: send('RESET'),
      'CLIENT REPLY ON': steps(send('CLIENT REPLY ON'), answered),
      disconnect,
    },
  },
  ...['GET k', 'BLPOP k 5', 'MGET k j', 'PUBLISH c m', 'EVAL return 0', 'XREAD BLOCK 5000 STREAMS k 0'].map(
    (command): State => ({
      name: `${command} held by a flip`,
      enter: steps(beginFlip, send(command)),
      ways: { endFlip, disconnect: steps(disconnect, endFlip), RESET: steps(send('RESET'), endFlip, answered) },
    }),
  ),
  {
    name: 'subscribed',
    enter: steps(send('SUBSCRIBE c'), say(confirmed('subscribe', 1))),
    ways: {
      UNSUBSCRIBE: steps(send('UNSUBSCRIBE c'), say(confirmed('unsubscribe', 0))),
      RESET: send('RESET'),
      disconnect,
      'server lost': async ({ client, proxy }) => {
        proxy.servers.source.links.at(-1)!.lose();
        assert.equal(client.destroyed, true);
        client.leave();
      },
    },
  },
  {
    name: 'SSUBSCRIBE c waiting for an earlier command',
    enter: send('GET k', 'SSUBSCRIBE c'),
    ways: {
      'its slot moves': async ({ proxy }) => {
        const answers = ['MOVED 7365 127.0.0.1:7001', null, null];
        Object.assign(proxy.clients, { face: { redirect: () => answers.shift() } });
        await proxy.answerAll(usual());
        Object.assign(proxy.clients, { face: null });
      },
      'server lost': serverLost,
      disconnect,
    },
  },
  {
    name: 'SUBSCRIBE c in flight',
    enter: send('SUBSCRIBE c'),
    ways: { refused: say('-NOPERM no'), disconnect },
  },
  {
    name: 'SUBSCRIBE c waiting for its connection',
    enter: steps(lanesLost, send('SUBSCRIBE c')),
    ways: {
      'refused by the server': notOpened(MASTERDOWN),
      'server lost': neverOpened,
      disconnect: steps(disconnect, notOpened(MASTERDOWN)),
    },
  },
];

/** What a client's next commands, and other clients, could find of it. */
function leftOf({ client, proxy, borrowed }: Scene) {
  const { blocked, transaction, watch, replies, isSubscriber, db, protocol, name, closed } = client.client;
  const { clients, sequencer } = proxy;
  const { source, target } = sequencer.lanes;
  const { byAge, longestWaitMs } = reservationsOf([...source.allLocks(), ...target.allLocks()], Infinity);
  return {
    own: client.destroyed || closed ? null : { held: client.flow.held, replies, isSubscriber, db, protocol, name },
    begun: { blocked, transaction, watch },
    inFlight: [client.lanes.inFlight, client.lanes.followingBytes],
    blockedClients: clients.blocked.size,
    onTheWayToBlock: clients.blockQueue.has(0, ['k', 'j', 'w:k']),
    subscriptionChanges: clients.subscribers.changing,
    reservations: Object.values(byAge).reduce((sum, each) => sum + each, 0),
    waitsForKeys: longestWaitMs > 0,
    borrowed: [...borrowed].filter((lane) => !lane.closed).length,
  };
}

/** What the servers get, and the client, of commands of every kind. */
async function conversation(client: FakeClient, proxy: FakeProxy): Promise<unknown> {
  const replies = client.replies.length;
  const sent = proxy.sent.length;
  for (const command of [
    ...[
      'GET a',
      'XADD a MAXLEN ~ 10 * f v',
      'BLPOP a 5',
      'XREAD BLOCK 5000 STREAMS b 0',
      'PUBLISH c m',
      'CLIENT GETNAME',
    ],
    ...['MULTI', 'SET a 1', 'EXEC', 'WATCH a', 'MULTI', 'SET a 2', 'EXEC', 'EXEC', 'SET k v', 'GET k', 'BLPOP k j 5'],
  ]) {
    client.send(...command.split(' '));
    await proxy.answerAll(usual());
  }
  const saw = proxy.sent
    .slice(sent)
    .map(({ side, command, follow, db, isPrivate }) => ({ side, command, follow, db, isPrivate }));
  return { sent: saw, replies: client.replies.slice(replies) };
}

async function sceneOf(): Promise<Scene> {
  const { client, proxy } = await connect({ w: 'shadow', default: 'shadow' });
  const borrowed = new Set<Lane>();
  for (const side of SIDES) {
    const lanes = proxy.sequencer.lanes[side];
    const borrow = lanes.borrow.bind(lanes);
    const giveBack = lanes.giveBack.bind(lanes);
    lanes.borrow = async (identity) => {
      const lane = await borrow(identity);
      borrowed.add(lane);
      return lane;
    };
    lanes.giveBack = (lane) => {
      borrowed.delete(lane);
      giveBack(lane);
    };
  }
  return { client, proxy, borrowed };
}

for (const { name, enter, ways } of STATES)
  test(`${name}: nothing is left of it, however it ends`, async (t) => {
    // Where the client is read on, what comes behind it waits for nothing: it is no other case.
    let isHeld = false;
    for (const [event, end] of Object.entries(ways))
      for (const pipelines of [false, true])
        if (isHeld || !pipelines)
          await t.test(pipelines ? `${event}, with a command behind it` : event, async () => {
            const scene = await sceneOf();
            const { client, proxy } = scene;
            const fresh = leftOf(scene);
            await enter(scene);
            // What is not held is in flight before it ends.
            isHeld = client.flow.held;
            const held = isHeld && pipelines;
            if (held) client.send('SET', 'behind', '1');
            await end(scene);
            await proxy.answerAll(usual());
            const hasLeft = client.destroyed || client.client.closed;
            const ran = proxy.sent.filter(({ command }) => command === 'SET behind 1').length;
            assert.equal(ran, held && !hasLeft ? 1 : 0, 'what came behind it');
            assert.deepEqual(leftOf(scene), { ...fresh, own: hasLeft ? null : fresh.own });
            const replies = client.replies.length;
            const next = hasLeft ? await proxy.connect() : client;
            const other = await proxy.connect();
            assert.deepEqual(await conversation(next, proxy), await conversation(other, proxy));
            if (hasLeft) assert.equal(client.replies.length, replies, 'a client that has left is answered nothing');
          });
  });
