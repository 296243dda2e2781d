/** What the proxy still keeps when no command is on its way: everything that a command takes must be given back. */
import { SIDES } from '../../../shadow-proxy/src/route/stage.js';
import type { Parts } from '../../../shadow-proxy/src/shard/parts.js';
import { partsOf, type KeyName } from '../world/key-name.js';

/** What is left, in sentences. @param keys that clients have used */
export function leftOver({ sequencer, clients }: Parts, keys: Iterable<KeyName>): string[] {
  const left: string[] = [];
  const check = (is: boolean, what: string): void => void (is && left.push(what));
  for (const key of keys) {
    const { db, name } = partsOf(key);
    for (const side of SIDES)
      check(!sequencer.lanes[side].locks(db).admits(null, [name], true), `key ${name} of database ${db} is held`);
  }
  for (const side of SIDES) {
    for (const locks of sequencer.lanes[side].allLocks()) {
      check(locks.blocked().size > 0, `clients that block at the ${side}`);
      check(locks.withheld !== 0, `effects of woken clients that are withheld: ${locks.withheld}`);
    }
    check(sequencer.mirrors[side].gates > 0, `closed gates of the mirror at the ${side}`);
  }
  check(sequencer.blocked, 'the bar of a command that runs alone');
  check(sequencer.swaps.underWay, 'a swap of databases');
  check(clients.blocked.size > 0, `commands that block: ${clients.blocked.size}`);
  return left;
}
