/**
 * The gate `users`: a promotion must not change who may log in, and with what rights.
 *
 * Needs real servers: ACL LIST of both servers, and logins that one of them refuses.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  compareUsers,
  mayDoEverything,
  usersSeenBy,
  type UserComparison,
  type UserFacts,
} from '../../../src/command/users.js';
import { judgeUsers } from '../../../src/stages/users-gate.js';
import { startTestShard } from '../../support/shard.js';
import { withServers } from '../../support/servers.js';
import { withWire } from '../../support/wire.js';

const OPEN = 'user default on nopass ~* &* +@all';
const [A, B] = ['#aaaa', '#bbbb'];
/** Redis distinguishes subcommands, and has LMPOP; KeyDB has keydb.cron, and ROLE is no command of an administrator. */
const redis = (lines: readonly string[] | null) =>
  factsOf(
    lines,
    'get read|set write|lmpop write|keys read dangerous|role admin dangerous|config dangerous|config.get admin dangerous|config.set admin dangerous',
    '7.0.15',
  );
const keydb = (lines: readonly string[] | null) =>
  factsOf(
    lines,
    'get read|set write|keydb.cron write|keys read dangerous|role dangerous|config admin dangerous',
    'keydb',
  );
const factsOf = (lines: readonly string[] | null, commands: string, version: string): UserFacts => {
  const release = { version, isKeydb: version === 'keydb' };
  const categories = new Map(
    commands
      .split('|')
      .map((each) => [each.split(' ')[0].replace('config.', 'config|'), new Set(each.split(' ').slice(1))]),
  );
  return { lines, commands: new Set([...categories.keys(), 'config|get', 'config|set']), categories, release };
};
const compare = (
  source: readonly string[] | null,
  target: readonly string[] | null,
  known: readonly string[] = [],
): UserComparison => compareUsers(redis(source), keydb(target), new Set(known));

test('users with the same passwords and rules are the same, in the words of either server', () => {
  for (const [source, target] of [
    [[OPEN], [OPEN]],
    [[`user default on ${A} ~* &* +@all`], [`user default on ${A} ~* &* +@all -keydb.cron`]],
    [
      [OPEN, `user a on ${A} ${B} ~b ~a resetchannels &c:* -@all +set +get +lmpop`],
      [OPEN, `user a on ${B} ${A} ~a ~b resetchannels &c:* -@all +get +set`],
    ],
    [
      [OPEN, `user a on sanitize-payload ${A} %RW~a:* resetchannels -@all +@read`],
      [OPEN, `user a on ${A} ~a:* resetchannels -@all +@read`],
    ],
    [
      [OPEN, `user a on ${A} ~x ~* resetchannels &c &* +@all`],
      [OPEN, `user a on ${A} allkeys allchannels allcommands`],
    ],
    // The same rules, as each server words them.
    [
      [OPEN, `user a on ${A} ~* &* +@all -@admin -keys +config|get`],
      [OPEN, `user a on ${A} ~* &* +@all -@admin -role +config|get -keys`],
    ],
    [
      [OPEN, `user a on ${A} ~* &* -@all +@read +@write -keys`],
      [OPEN, `user a on ${A} ~* &* -@all +get +set`],
    ],
    // Nobody can log in as any of these.
    [[OPEN, `user a off ${A} ~* &* +@all`, 'user b on ~* &* +@all'], [OPEN]],
    [
      ['user default off nopass ~* &* +@all', `user a on ${A} ~* &* +@all`],
      ['user default off resetchannels -@all', `user a on ${A} ~* &* +@all`],
    ],
  ]) {
    const { differences, unknown } = compare(source, target);
    assert.deepEqual([differences, unknown], [[], null], source.join('; '));
  }
});

test('each difference is reported, and no password is shown', () => {
  const user = (rules: string): string[] => [OPEN, `user a ${rules}`];
  for (const [source, target, difference] of [
    [
      [`user default on ${A} ~* &* +@all`],
      [OPEN],
      'default needs a password on the source only: any client may log in on the target',
    ],
    [[OPEN], [`user default on ${A} ~* &* +@all`], 'default needs a password on the target only'],
    [
      [OPEN],
      ['user default off nopass ~* &* +@all'],
      'default needs no password on the source, and is refused by the target',
    ],
    [
      ['user default off nopass ~* &* +@all'],
      [OPEN],
      'default needs no password on the target, and may not log in on the source',
    ],
    [user(`on ${A} ~* &* +@all`), [OPEN], 'a is missing on the target'],
    [user(`on ${A} ~* &* +@all`), user(`off ${A} ~* &* +@all`), 'a may not log in on the target'],
    [user(`off ${A} ~* &* +@all`), user(`on ${A} ~* &* +@all`), 'a may log in on the target, and not on the source'],
    [user(`on ${A} ~* &* +@all`), user(`on ${B} ~* &* +@all`), 'a has other passwords on the target'],
    [user(`on ${A} ~* &* +@all`), user(`on ${A} ${B} ~* &* +@all`), 'a has other passwords on the target'],
    [user(`on ${A} %R~a:* &* +@all`), user(`on ${A} ~a:* &* +@all`), 'a has other key patterns on the target'],
    [user(`on ${A} ~* resetchannels +@all`), user(`on ${A} ~* &* +@all`), 'a has other channel patterns on the target'],
    [
      user(`on ${A} ~* &* +@all -@dangerous`),
      user(`on ${A} ~* &* +@all`),
      'a may run keys, role, config|get, config|set on the target only',
    ],
    [
      user(`on ${A} ~* &* -@all +@read -get`),
      user(`on ${A} ~* &* -@all -get +@read`),
      'a may run get on the target only',
    ],
    [
      user(`on ${A} ~* &* +@all`),
      user(`on ${A} ~* &* +@all -@admin +config|get`),
      'a may not run config|set on the target',
    ],
    [
      user(`on ${A} ~* &* +@all -config|set`),
      user(`on ${A} ~* &* +@all -config +config|get -get`),
      'a may not run get on the target',
    ],
    [
      user(`on ${A} ~a resetchannels -@all +get (~b resetchannels -@all +set)`),
      user(`on ${A} ~a resetchannels -@all +get`),
      'a has other selectors on the target',
    ],
    [[OPEN], user('on nopass ~* &* +@all'), 'a needs no password on the target, and does not exist on the source'],
  ] as const) {
    const { differences } = compare(source, target);
    assert.deepEqual(differences, [difference]);
    assert.doesNotMatch(JSON.stringify(compare(source, target)), /#/);
  }
});

test('a server that does not list its users leaves it open; known users and those of the target only are no difference', () => {
  assert.match(compare(null, [OPEN]).unknown!, /^the source did not list its users/);
  assert.match(compare(null, null).unknown!, /^the source and the target did not list their users/);
  const { differences, onlyTarget, same } = compare(
    [OPEN, `user exporter on ${A} -@all`],
    [OPEN, `user admin on ${B} ~* &* +@all`],
    ['exporter'],
  );
  assert.deepEqual([differences, onlyTarget, same], [[], ['admin'], 1]);
});

test('a server that hides passwords shows so in the line of the user who has logged in with one', () => {
  const lines = ['user default off resetchannels -@all', 'user kit on ~* &* +@all', 'user app on ~* &* +@all'];
  const seen = usersSeenBy(lines, { name: 'kit', password: 'kitpw' });
  assert.equal(seen.hidesDigests, true);
  assert.match(seen.lines![1], /^user kit on ~\* &\* \+@all #[0-9a-f]{64}$/);
  for (const [name, password] of [
    ['kit', null],
    ['nobody', 'pw'],
  ] as const)
    assert.deepEqual(usersSeenBy(lines, { name, password }), { lines });
  assert.deepEqual(
    usersSeenBy([`user kit on ${A} ~* &* +@all`], { name: 'kit', password: 'kitpw' }).hidesDigests,
    undefined,
  );

  const target = keydb([
    'user default off resetchannels -@all',
    `user kit on ${A} ~* &* +@all`,
    `user app on ${B} ~* &* +@all`,
  ]);
  const compared = compareUsers({ ...redis(null), ...seen }, target, new Set(['kit']));
  assert.deepEqual([compared.differences, compared.unproven, compared.unknown], [[], ['app'], null]);
  const otherRules = keydb(['user default off', `user app on ${B} ~a:* &* +@all`]);
  const { differences, unproven } = compareUsers({ ...redis(null), ...seen }, otherRules, new Set(['kit']));
  assert.deepEqual([differences, unproven], [['app has other key patterns on the target'], []]);
});

test('what KeyDB does not check against key patterns is named with the users who may run it', () => {
  const WIDER = 'get read|sort write dangerous|debug admin dangerous|keydb.hrename write|eval scripting';
  const users = [
    OPEN,
    `user all on ${A} ~* &* +@all`,
    `user some on ${A} ~a:* ~b &* +@all`,
    `user reader on ${A} ~a:* &* -@all +@read`,
    `user sorter on ${A} ~a:* &* -@all +sort`,
    `user keyless on ${A} &* +@all`,
    `user out off ${A} ~a:* &* +@all`,
    `user exporter on ${A} ~a:* &* +@all`,
  ];
  const known = new Set(['exporter']);
  const wider = (source: string, target: string, to = users): unknown =>
    compareUsers(factsOf(users, WIDER, source), factsOf(to, WIDER, target), known).wider;
  assert.deepEqual(wider('7.0.15', 'keydb'), [
    { right: 'sort', users: ['some', 'sorter'] },
    { right: 'debug', users: ['some', 'keyless'] },
    { right: 'keydb.hrename', users: ['some'] },
  ]);
  const taken = users.map((line) => `${line} -sort -debug -keydb.hrename`);
  assert.deepEqual(wider('7.0.15', 'keydb', taken), []);
  for (const [source, target] of [
    ['6.2.14', 'keydb'],
    ['keydb', 'keydb'],
    ['7.0.15', '7.0.15'],
  ] as const)
    assert.deepEqual(wider(source, target), [], `${source} to ${target}`);

  const compared = compareUsers(factsOf(users, WIDER, '7.0.15'), factsOf(users, WIDER, 'keydb'), known);
  const closed = judgeUsers(compared, [], ['debug']);
  assert.equal(closed.answer, 'no');
  assert.match(
    closed.evidence,
    /SORT reads keys outside the patterns by BY and GET \(some, sorter\); KEYDB\.HRENAME .*\(some\); .*ACL SETUSER some -sort.*gates\.acceptRights/,
  );
  assert.doesNotMatch(closed.evidence, /DEBUG/);
  assert.equal(judgeUsers(compared, [], ['sort', 'debug', 'keydb.hrename']).answer, 'yes');
});

test('a user who may do everything, as a line of ACL LIST', () => {
  for (const [line, may] of [
    ['user app on ~* &* +@all', true],
    ['user app on sanitize-payload ~* &* +@all', true],
    ['user app on ~* +@all', true],
    ['user app on ~* resetchannels +@all', false],
    ['user app on ~a:* &* +@all', false],
    ['user app on ~* &* +@all -flushall', false],
    ['user other on ~* &* +@all', false],
  ] as const)
    assert.equal(mayDoEverything(line, 'app'), may, line);
});

const KIT = 'kit on >kitpw ~* &* +@all';
const usersGate = (gates: readonly { name: string; answer: string; evidence: string }[]): [string, string] => {
  const { answer, evidence } = gates.find(({ name }) => name === 'users')!;
  return [answer, evidence];
};

test('the gate on real servers: closed where users differ, whatever --force says; open where they are alike', async () => {
  const reader = 'reader on >pw ~r:* &* -@all +get +set';
  await withServers(
    async ({ source, target }) => {
      const url = (port: number): string => `redis://kit:kitpw@127.0.0.1:${port}`;
      const shard = await startTestShard({ source: url(source.port), target: url(target.port) });
      try {
        const promote = (more: object): ReturnType<typeof shard.shard.promote> =>
          shard.shard.promote({ workload: 'default', ...more });
        const [answer, evidence] = usersGate((await promote({ dryRun: true })).gates);
        assert.equal(answer, 'no');
        assert.match(
          evidence,
          /^(?=.*reader is missing on the target)(?=.*default needs a password on the source only)/,
        );
        await assert.rejects(promote({ force: true, reason: 'test' }), /closed gates: users$/);
        await assert.rejects(
          promote({ forceUsers: true, reason: 'test' }),
          (problem: Error) => /closed gates: /.test(problem.message) && !/users/.test(problem.message),
        );
        await assert.rejects(promote({ force: true, forceUsers: true }), /give the reason/);
        await assert.rejects(
          shard.shard.rollback({ workload: 'default', drill: true }),
          /not ready for a rollback drill: .*users/,
        );
        await withWire(target.port, async (direct) => {
          assert.equal(await direct.ask('ACL', 'SETUSER', ...reader.split(' ')), '+OK');
          assert.equal(await direct.ask('ACL', 'SETUSER', 'default', 'resetpass', '>secret'), '+OK');
        });
        assert.deepEqual(usersGate((await promote({ dryRun: true })).gates), [
          'yes',
          '2 users have the same passwords and rules on both servers; the logins of clients work on the target',
        ]);
        const { change } = await promote({ force: true, reason: 'test', percent: 100 });
        assert.equal(change!.to.stage, 'live');
      } finally {
        await shard.stop();
      }
    },
    { source: { config: { requirepass: 'secret', user: [KIT, reader] } }, target: { config: { user: [KIT] } } },
  );
});

test('where ACL LIST is denied, the gate is unknown, and closed by a login of a client that the target refuses', async () => {
  const shy = `${KIT} -acl`;
  await withServers(
    async ({ source, target }) => {
      const url = (port: number): string => `redis://kit:kitpw@127.0.0.1:${port}`;
      const shard = await startTestShard({ source: url(source.port), target: url(target.port) });
      try {
        const gate = async (): Promise<[string, string]> =>
          usersGate((await shard.shard.promote({ workload: 'default', dryRun: true })).gates);
        assert.deepEqual(await gate(), [
          'unknown',
          "the target did not list its users: allow ACL LIST to the kit's user",
        ]);
        await withWire(shard.port, async (client) => {
          assert.equal(await client.ask('AUTH', 'alice', 'pw'), '+OK');
        });
        const [answer, evidence] = await gate();
        assert.equal(answer, 'no');
        assert.match(evidence, /^the target refused the login of alice/);
      } finally {
        await shard.stop();
      }
    },
    { source: { config: { user: [KIT, 'alice on >pw ~* &* +@all'] } }, target: { config: { user: [shy] } } },
  );
});

test('servers without any user of their own are alike', async () => {
  await withServers(async (servers) => {
    const shard = await startTestShard(servers);
    try {
      const { gates } = await shard.shard.promote({ workload: 'default', dryRun: true });
      assert.deepEqual(usersGate(gates), [
        'yes',
        '1 user has the same passwords and rules on both servers; the logins of clients work on the target',
      ]);
    } finally {
      await shard.stop();
    }
  });
});
