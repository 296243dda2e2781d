/** A move of subscribers to the other server, and what their clients do meanwhile. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Side } from '../../../src/route/stage.js';
import { Router } from '../../../src/route/router.js';
import type { Link } from '../../../src/session/subscription-link.js';
import { Subscribers, type Subscriber } from '../../../src/session/subscribers.js';

const IDENTITY = { db: 0, protocol: 3 as const, credentials: undefined };

const linkTo = (side: Side, identity: object): Link =>
  ({
    side,
    identity,
    muted: false,
    closed: false,
    ask: () => Promise.resolve(null),
    close: () => undefined,
  }) as unknown as Link;

test('A client that changes its protocol or user during the move has that at its new server, too', async () => {
  const workload = new Router([], { stage: 'shadow', percent: 100, writer: null }).default;
  const client = { identity: IDENTITY as object };
  const changed: (Link | null)[] = [];
  const none = (): Record<Side, Set<string>> => ({ source: new Set(), target: new Set() });
  const subscriber = {
    context: { client, destroy: () => assert.fail('the client is closed') },
    names: { channel: { ...none(), source: new Set(['news']) }, pattern: none(), shard: none() },
    links: { source: linkTo('source', IDENTITY), target: null },
    closed: false,
    workloadOf: () => workload,
    open: (side: Side) => Promise.resolve(linkTo(side, client.identity)),
    settled: () => Promise.resolve(),
    tidy: () => undefined,
    reidentified() {
      changed.push(this.links.target);
    },
  };
  const subscribers = new Subscribers();
  subscribers.all.add(subscriber as unknown as Subscriber);
  await subscribers.prepare(workload, 'target', false);
  client.identity = { ...IDENTITY, protocol: 2 };
  await subscribers.commit();
  assert.deepEqual(changed, [subscriber.links.target]);
  assert.notEqual(subscriber.links.target, null);
});
