/** Commands on whole databases, between them, and transactions that select others: for runs without followed keys. */
import { DATABASES, type Command, type Draw } from '../draw.js';
import { blocking } from './lists.js';

export function swaps(draw: Draw): Command | readonly Command[] {
  const { random } = draw;
  const db = (): string => String(random.below(DATABASES));
  const key = draw.key('s');
  switch (random.below(10)) {
    case 0:
      return draw.of(['SWAPDB', db(), db()]);
    case 1:
      return draw.of([random.chance(0.2) ? 'FLUSHALL' : 'FLUSHDB']);
    case 2:
      return draw.of(['MOVE', key, db()], key);
    case 3:
      return draw.of(['COPY', key, key, 'DB', db(), 'REPLACE'], key);
    case 4:
      return draw.of(['DBSIZE']);
    case 5:
      return draw.of(['PUBLISH', 'ch0', draw.value()]);
    default:
      return selecting(draw);
  }
}

/** A transaction in several databases: it wakes who blocks there, and may publish. */
function selecting(draw: Draw): readonly Command[] {
  const { random } = draw;
  const inside: Command[] = [];
  for (let i = 1 + random.below(4); i > 0; i--) {
    const [list, value] = [draw.key('b'), draw.value()];
    const string = draw.key('s');
    inside.push(
      draw.pick(
        draw.of(['SELECT', String(random.below(DATABASES))]),
        draw.of(['LPUSH', list, value], list),
        draw.of(['SET', string, value], string),
        draw.of(['PUBLISH', 'ch0', draw.value()]),
        draw.of(['SWAPDB', '1', String(random.below(DATABASES))]),
        draw.of(['FLUSHDB']),
        draw.of(['MOVE', string, String(random.below(DATABASES))], string),
        blocking(draw),
      ),
    );
  }
  // The client is in the last of them: it goes back.
  inside.push(draw.of(['SELECT', String(draw.database)]));
  return [
    draw.of(['MULTI']),
    ...inside.map((each) => ({ ...each, inTransaction: true })),
    { args: ['EXEC'], keys: [], queued: inside.map(({ args }) => args) },
  ];
}
