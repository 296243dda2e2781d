/**
 * The property of privileges: random users with random ACLs on both servers, random commands, scripts and transactions,
 * and ACL changes at run time. The mirror never holds what the authority refused, and no client gets a reply that its
 * user could not have got from the authority itself.
 *
 *   command ─┬─▶ proxy ─▶ authority ─▶ mirror       both hold the same in the end
 *            └─▶ twin, a server like the authority   its reply is the proxy's
 */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { startRedis, type LocalServer } from '../../../../src/local/servers.js';
import type { Argument } from '../../../../src/resp/encode.js';
import { differences } from '../../../support/keyspace.js';
import { withRig } from '../../../support/rig.js';
import { startTestTarget } from '../../../support/servers.js';
import { Wire } from '../../../support/wire.js';
import { Random } from '../random.js';

export interface PropertyOptions {
  readonly stage: 'shadow' | 'live';
  readonly seed: number;
  /** It ends after so many commands, or so many ms. */
  readonly commands: number;
  readonly ms: number;
}

export interface Outcome {
  commands: number;
  /** Commands, or transactions, that the authority refused because the user lacked the right. */
  refused: number;
  changes: number;
}

const USERS = ['u0', 'u1', 'u2', 'u3'];
const PASSWORD = 'secret';
/**
 * An attempt at a blocking pop follows a change of rights within a second. None in `live`: a KeyDB hangs at pipelined
 * ones.
 */
const FOLLOWED_MS = 1_500;
const CHANGE_MS = 3_000;
const BATCH = 60;

const PATTERNS = ['~*', '~a:*', '~b:*', '~a:* ~b:*', '~a:1 ~a:2', ''];
const COMMANDS = [
  '+@all',
  '+@all -set',
  '+@all -@dangerous',
  '+@all -@write +set +incr',
  '+@read +@connection +@scripting +@transaction',
  '+@all -eval',
  '+@all -del -hset -rpush',
  '+@all -evalsha -script',
  '+@all -@list',
  '+@all -blpop -lpop',
  '+@all -lpop',
  '+@all -blpop',
  '+@all -multi',
  '+@write +@connection +multi +exec +eval +evalsha',
  '+get +set +eval',
  '+@all -sort -client',
];

const SCRIPTS = [
  "redis.pcall('SET', KEYS[1], ARGV[1]) return 1",
  "redis.pcall('HSET', 'h' .. KEYS[1], 'f', ARGV[1]) redis.pcall('SET', KEYS[1], ARGV[1]) return 1",
  "local r = redis.pcall('RPUSH', KEYS[2], ARGV[1]) return type(r) == 'table' and 0 or r",
  "return redis.call('INCR', KEYS[1])",
  "redis.call('SET', KEYS[1], ARGV[1]) return redis.call('GET', KEYS[2])",
  "redis.call('RPUSH', KEYS[1], ARGV[1]) redis.call('SET', KEYS[2], 'x') return redis.call('DEL', KEYS[2])",
  "local ok = pcall(redis.call, 'SET', KEYS[1], ARGV[1]) return ok and 1 or 0",
  "local ok = pcall(function() redis.call('DEL', KEYS[2]) end) return ok and 1 or 0",
  "redis.pcall('SET', ARGV[2], ARGV[1]) return 1",
  'redis.pcall(ARGV[3], KEYS[1], ARGV[1]) return 1',
  "local c = redis.call if ARGV[1] == '1' then c('SET', KEYS[1], 'y') end return c('EXISTS', KEYS[1], KEYS[2])",
  "for _, k in ipairs(KEYS) do redis.pcall('DEL', k) end return #KEYS",
];
const sha = (script: string): string => createHash('sha1').update(script).digest('hex');

/** How a reply of the proxy is held against the twin's. */
type Check = 'same' | 'refusal' | 'none';

interface Sent {
  readonly command: readonly Argument[];
  readonly check: Check;
}

class Generator {
  constructor(
    readonly random: Random,
    readonly live: boolean,
  ) {}

  key(): string {
    return `${this.random.pick(['a', 'b', 'c'])}:${this.random.between(0, 3)}`;
  }

  /**
   * A command or a transaction.
   * @param blocks whether it may be a blocking pop
   * @param transacts whether the user may MULTI: else a server runs the commands one by one, and the proxy none of them
   */
  next(blocks: boolean, transacts: boolean): Sent[] {
    const { random } = this;
    if (!random.chance(0.08) || !transacts) return [this.one(blocks)];
    // Replies about clients would be about those of the proxy: such commands are left out.
    const inside = [
      { command: ['GET', this.key()], check: 'same' as const },
      ...random.times(random.between(0, 3), () => this.one(false)),
    ]
      .filter(({ check }) => check === 'same')
      .map(({ command }): Sent => ({ command, check: 'none' }));
    return [{ command: ['MULTI'], check: 'none' }, ...inside, { command: ['EXEC'], check: 'same' }];
  }

  one(blocks: boolean): Sent {
    const { random } = this;
    const key = this.key();
    const other = this.key();
    const value = random.between(0, 9);
    const same = (...command: Argument[]): Sent => ({ command, check: 'same' });
    const dice = random.between(0, blocks ? 25 : 22);
    switch (dice) {
      case 0:
      case 1:
        return same('SET', key, value);
      case 2:
        return same('GET', key);
      case 3:
        return same('INCR', key);
      case 4:
        return same('DEL', key, other);
      case 5:
        return same('RPUSH', `l${key}`, value);
      case 6:
        return same('LPOP', key);
      case 7:
        return same('HSET', `h${key}`, 'f', value);
      case 8:
        return same('RENAME', key, other);
      case 9:
        // At live the proxy refuses GET to users with patterns, as Redis 7 does and KeyDB, the twin, does not.
        return same('SORT', key, 'BY', 'nosort', ...(this.live ? [] : ['GET', `${random.pick(['a', 'b', 'c'])}:*`]));
      case 10:
        return same('SORT', key, 'STORE', other);
      case 11:
        return same('MSET', key, value, other, value);
      case 12:
        return same('MGET', key, other);
      case 13:
        return {
          command: random.pick([
            ['CLIENT', 'LIST'],
            ['CLIENT', 'INFO'],
            ['CLIENT', 'ID'],
            ['CLIENT', 'KILL', 'ID', '999999'],
          ]),
          check: 'refusal',
        };
      case 14:
        return same('SINTERSTORE', key, other, this.key());
      case 15:
        return same('SADD', key, value);
      case 16:
        return same('RPUSH', key, value, value + 1);
      default:
        if (dice >= 23) return same(random.pick(['BLPOP', 'BRPOP']), key, '0.01');
        return this.script();
    }
  }

  script(): Sent {
    const { random } = this;
    const script = random.pick(SCRIPTS);
    const call = random.chance(0.7) ? ['EVAL', script] : ['EVALSHA', sha(script)];
    const given = [random.between(0, 9), this.key(), random.pick(['SET', 'RPUSH', 'DEL', 'HSET'])];
    return { command: [...call, 2, this.key(), this.key(), ...given], check: 'same' };
  }

  rules(): string[] {
    const { random } = this;
    return [
      'resetkeys',
      'nocommands',
      'allchannels',
      ...random.pick(PATTERNS).split(' ').filter(Boolean),
      ...random.pick(COMMANDS).split(' '),
    ];
  }
}

const mayMulti = (rules: readonly string[]): boolean =>
  !rules.includes('-multi') && ['+@all', '+@transaction', '+multi'].some((rule) => rules.includes(rule));

/** @throws {AssertionError} for the first reply, or the first key, that is not as it has to be */
export async function checkPrivileges({ stage, seed, commands, ms }: PropertyOptions): Promise<Outcome> {
  const live = stage === 'live';
  const random = new Random(seed);
  const generator = new Generator(random, live);
  const outcome: Outcome = { commands: 0, refused: 0, changes: 0 };
  const twin: LocalServer = await (live ? startTestTarget() : startRedis());
  try {
    await withRig({ default: { stage } }, async (rig) => {
      const servers = [rig.source, rig.target, twin];
      const roots = servers.map((of) => rig.client({ of }));
      const withoutMulti = new Set<string>();
      const change = async (name: string, ...rules: readonly string[]): Promise<void> => {
        for (const root of roots) await root.acl('SETUSER', name, ...rules);
        if (mayMulti(rules)) withoutMulti.delete(name);
        else withoutMulti.add(name);
        outcome.changes++;
      };
      for (const user of USERS) await change(user, 'reset', 'on', `>${PASSWORD}`, ...generator.rules());
      const clients = await Promise.all(
        ['', ...USERS].map(async (user) => {
          const both = [await rig.wire(), await Wire.open({ port: twin.port })];
          if (user !== '') for (const wire of both) assert.equal(await wire.ask('AUTH', user, PASSWORD), '+OK');
          return { user, both };
        }),
      );
      const until = performance.now() + ms;
      let changedAt = performance.now();
      while (outcome.commands < commands && performance.now() < until) {
        const now = performance.now();
        if (now - changedAt > CHANGE_MS) {
          await change(random.pick(USERS), ...generator.rules());
          changedAt = performance.now();
        }
        const { user, both } = random.pick(clients);
        const sent: Sent[] = [];
        while (sent.length < BATCH)
          sent.push(
            ...generator.next(!live && now - changedAt > FOLLOWED_MS && random.chance(0.1), !withoutMulti.has(user)),
          );
        const asked = both.map((wire) => wire.pipeline(sent.map(({ command }) => command)));
        const [got, wanted] = await Promise.all(asked).catch((problem: Error) => {
          throw new Error(
            `seed ${seed}, ${stage}, user ${user}: ${problem.message}; ${both.map((wire) => `${wire.unread.length} replies before ${sent[wire.unread.length]?.command.join(' ')}`).join(', of the twin ')}`,
          );
        });
        outcome.commands += sent.length;
        sent.forEach(({ command, check }, i) => {
          const isRefused = (reply: string): boolean => /^-(NOPERM|NOAUTH|EXECABORT)/.test(reply);
          if (isRefused(wanted[i])) outcome.refused++;
          const shown = `seed ${seed}, ${stage}, user ${user}: ${command.join(' ')}`;
          if (check === 'refusal') assert.equal(isRefused(got[i]), isRefused(wanted[i]), `${shown}: ${got[i]}`);
          // A transaction that was refused gets its error at EXEC, in other words.
          if (check === 'same' && command[0] === 'EXEC' && wanted[i].startsWith('-')) assert.match(got[i], /^-/, shown);
          else if (check === 'same') assert.equal(got[i], wanted[i], shown);
        });
        if (random.chance(0.01)) await compare();
      }
      await compare();

      async function compare(): Promise<void> {
        await rig.shard.settled();
        assert.deepEqual(await differences(rig.source, rig.target), [], `seed ${seed}, ${stage}`);
        assert.deepEqual(rig.shard.snapshot().workloads[0].suspect, null, `seed ${seed}, ${stage}`);
      }
    });
  } finally {
    await twin.stop();
  }
  return outcome;
}
