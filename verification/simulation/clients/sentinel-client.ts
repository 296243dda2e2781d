/** Clients that ask the proxy's Sentinel: they watch the master, guess passwords, or do not read. */
import { SentinelAnswers } from '../check/sentinel-answers.js';
import { WORLD } from '../world/events.js';
import type { End, Network } from '../world/network.js';
import type { Random } from '../world/random.js';
import { MASTER, SENTINEL_PASSWORD, SENTINEL_PORT } from '../world/proxy.js';
import { ReplyReader, type Reply } from './replies.js';

/** After so many wrong passwords a minute each answer is 1 s late; the one before may have come late, too. */
const FREE_GUESSES = 10;
const LATE_MS = 900;
const GUESSES = FREE_GUESSES + 3;
/** A client that does not read asks for so much. */
const UNREAD = { bytes: 16_000, commands: 300 };

/** What such a client has seen, for the floors of a run. */
export type Seen = 'a takeover' | 'a late answer' | 'a closed client';

export interface SentinelClientEvents {
  /** The hosts of processes, one of which it asks. */
  readonly hosts: readonly string[];
  /** The host of the proxy that has served for long enough; null where none has. */
  serving(): string | null;
  seen(what: Seen): void;
  wrong(problem: string): void;
}

type Taken = (reply: Reply) => void;

export class SentinelClient {
  /** What takes the reply to each command, the oldest first. */
  readonly #waiting: Taken[] = [];
  #end: End | null = null;
  #connections = 0;

  constructor(
    private readonly network: Network,
    /** Of each connection it is another address: wrong passwords count by address. */
    private readonly subnet: string,
    private readonly random: Random,
    private readonly events: SentinelClientEvents,
  ) {}

  start(): void {
    const { network, random, subnet } = this;
    const host = random.pick(this.events.hosts);
    const from = `${subnet}.${++this.#connections >> 8}.${this.#connections & 255}`;
    const reader = new ReplyReader();
    const answers = new SentinelAnswers();
    this.#waiting.length = 0;
    const end = network.connect(WORLD, from, { host, port: SENTINEL_PORT }, () => this.#begin(end, host, answers));
    this.#end = end;
    const ended = (): void => {
      end.close();
      if (this.#end !== end) return;
      this.#end = null;
      network.events.after(random.between(1, 300), WORLD, () => this.start());
    };
    end.received = (bytes) => {
      reader.feed(bytes);
      for (let reply = reader.next(); reply !== undefined; reply = reader.next()) {
        if (reader.isPush) this.#event(reply as readonly Reply[], answers);
        else this.#waiting.shift()?.(reply);
      }
    };
    end.ended = end.closed = ended;
  }

  #begin(end: End, host: string, answers: SentinelAnswers): void {
    const { random } = this;
    const kind = random.share();
    if (kind < 0.2) return this.#guess(end);
    if (kind < 0.35) return this.#ignore(end);
    if (random.chance(0.3))
      this.#send(
        end,
        random.pick(['SENTINEL MYID', 'PING', `SENTINEL MASTER ${MASTER}`, 'SUBSCRIBE +sdown']),
        (reply) => this.#refused(reply, 'NOAUTH', 'before its login'),
      );
    if (random.chance(0.3))
      this.#send(end, `AUTH ${random.pick(['wrong', `${SENTINEL_PASSWORD}s`, SENTINEL_PASSWORD.slice(1)])}`, (reply) =>
        this.#refused(reply, 'WRONGPASS', 'with a wrong password'),
      );
    this.#send(end, `AUTH ${SENTINEL_PASSWORD}`);
    this.#send(end, 'HELLO 3');
    // Its reply is a push, as events are.
    end.send(Buffer.from('PSUBSCRIBE *\r\n'));
    this.#watch(end, host, answers, 1 + random.below(40));
  }

  /** Asks so many times, and leaves then. */
  #watch(end: End, host: string, answers: SentinelAnswers, times: number): void {
    const { network, random, events } = this;
    if (end.isClosed) return;
    if (times === 0) return void end.finish();
    this.#send(end, `SENTINEL GET-MASTER-ADDR-BY-NAME ${MASTER}`, (reply) => this.#judge(answers.named(reply)));
    this.#send(end, `SENTINEL MASTER ${MASTER}`, (reply) => this.#judge(answers.described(reply)));
    this.#send(end, `SENTINEL SENTINELS ${MASTER}`, (reply) => this.#judge(SentinelAnswers.others(reply, host)));
    const asked = events.serving();
    if (asked !== null)
      this.#send(end, `SENTINEL GET-MASTER-ADDR-BY-NAME ${MASTER}`, (reply) => {
        if (events.serving() === asked && Array.isArray(reply) && reply[0] !== `$${asked}`)
          this.#judge(`the master is ${reply[0]}, and ${asked} serves`);
      });
    network.events.after(random.between(20, 800), WORLD, () => this.#watch(end, host, answers, times - 1));
  }

  /** Sends wrong passwords only. */
  #guess(end: End): void {
    let [answers, last] = [0, 0];
    for (let i = 0; i < GUESSES; i++)
      this.#send(end, `AUTH wrong${i}`, (reply) => {
        this.#refused(reply, 'WRONGPASS', 'with a wrong password');
        const { now } = this.network.events;
        if (++answers > FREE_GUESSES) {
          if (now - last < LATE_MS) this.#judge(`wrong password ${answers} was refused after ${now - last} ms`);
          else this.events.seen('a late answer');
        }
        last = now;
        if (answers === GUESSES) end.finish();
      });
  }

  /** Asks for megabytes, and reads nothing: what the process keeps for a connection is bounded. */
  #ignore(end: End): void {
    this.#send(end, `AUTH ${SENTINEL_PASSWORD}`);
    for (let i = 0; i < UNREAD.commands; i++) this.#send(end, `PING ${'x'.repeat(UNREAD.bytes)}`);
    end.pause();
    const { events } = this.network;
    events.after(5_000, WORLD, () => {
      if (end.other.isClosed) this.events.seen('a closed client');
      end.resume();
      end.finish();
    });
  }

  #event([kind, , channel, message]: readonly Reply[], answers: SentinelAnswers): void {
    if (kind !== '$pmessage') return;
    const before = answers.switches;
    this.#judge(answers.event(String(channel).slice(1), String(message).slice(1)));
    if (answers.switches > before) this.events.seen('a takeover');
  }

  #refused(reply: Reply, code: string, when: string): void {
    if (typeof reply !== 'string' || !reply.startsWith(`-${code}`))
      this.#judge(`a client got ${JSON.stringify(reply)} ${when}`);
  }

  #judge(problem: string | null): void {
    if (problem !== null) this.events.wrong(problem);
  }

  #send(end: End, command: string, taken: Taken = () => undefined): void {
    this.#waiting.push(taken);
    end.send(Buffer.from(`${command}\r\n`));
  }
}
