/** Rows of geo commands. */
import { copied, effect, word, type CommandEffect, type EffectOf } from '../effect.js';
import { georadiusKeys } from '../hidden-keys.js';
import type { Rows } from '../row.js';

/** Which points near the edge belong to an area, and which points COUNT takes, depends on the server. */
const georadius: EffectOf = (args) =>
  args.slice(5).some((arg) => word(arg) === 'STORE' || word(arg) === 'STOREDIST') ? 'copy' : 'verbatim';

const stores = (least: number): CommandEffect =>
  effect(
    georadius,
    'with `STORE` or `STOREDIST`: the destination is copied, because servers differ near the edge of the area and in what `COUNT` takes; otherwise as sent',
    { least },
  );

export const GEO: Rows = {
  georadius: {
    readKeys: georadiusKeys(6),
    effect: stores(8),
  },
  georadiusbymember: {
    readKeys: georadiusKeys(5),
    effect: stores(7),
  },
  geosearchstore: { effect: effect(copied, 'the destination is copied') },
};
