/**
 * Lists, from the head, beside the key. An element's index holds only while nothing but the tail grows: any other write
 * has the copy begin again. When all is there, it takes the key's place.
 */
import { text } from '../../resp/decode.js';
import { fitting } from './elements.js';
import { ENDS } from './meanwhile.js';
import type { Command, Parts } from './parts.js';
import type { KeySize } from './size.js';

/** Leave every element where it is. */
export const LIST_HARMLESS: ReadonlySet<string> = new Set(['RPUSH', 'RPUSHX', ...ENDS]);

export async function copyList(parts: Parts, size: KeySize): Promise<void> {
  const { key, temporary, meanwhile, limits } = parts;
  meanwhile.onWritten((name) => {
    if (!LIST_HARMLESS.has(name)) meanwhile.disturb(`${name} has moved its elements`);
  });
  let count = fitting(limits.chunkBytes, size.bytes / size.length, limits.chunkElements);
  for (let index = 0, done = false; !done;) {
    await parts.at(
      [
        ['LRANGE', key, index, index + count - 1],
        ['LLEN', key],
      ],
      ([range, length], life) => {
        const values = range.items!.map(({ data }) => data!);
        const effects: Command[] = values.length === 0 ? [] : [['RPUSH', temporary, ...values]];
        index += values.length;
        parts.elements += values.length;
        const bytes = values.reduce((sum, value) => sum + value.length, 0);
        if (values.length > 0) count = fitting(limits.chunkBytes, bytes / values.length, limits.chunkElements);
        if (index < Number(text(length))) return effects;
        done = true;
        // From here on the mirror's key is the authority's.
        meanwhile.onWritten(null);
        return [...effects, ['UNLINK', key], ['RENAME', temporary, key], parts.timeToLive(life)];
      },
    );
  }
}
