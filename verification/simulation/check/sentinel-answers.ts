/** What one connection to a Sentinel of the proxy was answered: no answer may contradict an earlier one or an event. */
import type { Reply } from '../clients/replies.js';

export class SentinelAnswers {
  /** `host port` of the master; null while none is known. */
  #master: string | null = null;
  /** Whether the master is down, as an answer or an event says; null while neither has said so. */
  #isDown: boolean | null = null;
  /** How many events of a takeover it was sent. */
  switches = 0;

  /** What is wrong with an event; null where nothing is. Its client is subscribed to all events. */
  event(channel: string, message: string): string | null {
    const words = message.split(' ');
    switch (channel) {
      case '+switch-master':
        return this.#switched(words.slice(1, 3).join(' '), words.slice(3, 5).join(' '));
      case '+sdown':
      case '-sdown':
        return words[0] === 'master' ? this.#went(channel === '+sdown', message) : null;
      default:
        return null;
    }
  }

  #switched(from: string, to: string): string | null {
    const known = this.#master;
    this.#master = to;
    this.#isDown = false;
    this.switches++;
    return known === null || known === from ? null : `+switch-master from ${from}, and the master was ${known}`;
  }

  #went(isDown: boolean, message: string): string | null {
    const before = this.#isDown;
    this.#isDown = isDown;
    return before === isDown ? `${isDown ? '+' : '-'}sdown ${message}, and the master was so before` : null;
  }

  /** What is wrong with the answer to `SENTINEL GET-MASTER-ADDR-BY-NAME`. */
  named(reply: Reply): string | null {
    const named = Array.isArray(reply) ? (reply as readonly string[]).map((word) => word.slice(1)).join(' ') : null;
    const known = this.#master;
    if (named === null) return known === null ? null : `the master ${known} is forgotten`;
    this.#master = named;
    return known === null || known === named ? null : `the master is ${named}, and was ${known}, without an event`;
  }

  /** What is wrong with the answer to `SENTINEL MASTER`. */
  described(reply: Reply): string | null {
    if (!Array.isArray(reply)) return null;
    const flags = fieldOf(reply as readonly Reply[], 'flags') ?? '';
    const [isDown, before] = [flags.includes('s_down'), this.#isDown];
    this.#isDown = isDown;
    return before === null || before === isDown ? null : `the master's flags are ${flags}, without an event`;
  }

  /** What is wrong with the answer to `SENTINEL SENTINELS`. @param own the host of the one that answers */
  static others(reply: Reply, own: string): string | null {
    const isOwn = (other: Reply): boolean => Array.isArray(other) && fieldOf(other as readonly Reply[], 'ip') === own;
    return Array.isArray(reply) && reply.some(isOwn) ? `the Sentinel at ${own} lists itself` : null;
  }
}

function fieldOf(fields: readonly Reply[], name: string): string | null {
  const at = fields.findIndex((field, i) => i % 2 === 0 && field === `$${name}`);
  const value = at === -1 ? null : fields[at + 1];
  return typeof value === 'string' ? value.slice(1) : null;
}
