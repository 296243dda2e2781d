/** A plan whose source is fenced, and the kit's user at that source. */
import { KIT, KIT_RULES } from '../clients/kinds/sessions.js';
import { setUser } from '../server/acl.js';
import type { KeptWorld } from './world.js';

export const FENCED_PLAN = {
  fence: 'acl',
  shards: [
    {
      ...{ name: 's0', listen: 'redis://10.0.0.1:7000', target: 'redis://10.0.0.3:6379' },
      source: `redis://${KIT.name}:${KIT.password}@10.0.0.2:6379`,
    },
  ],
};

/** Makes the kit's user, with its rights. A server that starts again has lost it. */
export const makeKit = ({ source }: KeptWorld): void => setUser(source.model, KIT.name, KIT_RULES);
