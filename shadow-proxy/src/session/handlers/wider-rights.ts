/**
 * Refuses commands that KeyDB would run for a user with key patterns although Redis 7 denies them: KeyDB does not check
 * all their keys.
 */
import { KeyList, keysOf, UNKNOWN_KEYS } from '../../command/keys.js';
import { allowsMore, refusedOption, type RightsCheck } from '../../command/rights.js';
import type { CommandSpec } from '../../command/table.js';
import { argumentsOf } from '../../resp/decode.js';
import type { Side } from '../../route/stage.js';
import type { CommandContext } from '../context.js';

/** Takes the command at hand if it is refused, or has to wait until the target has said what the user may do. */
export function takeWiderRight(context: CommandContext, spec: CommandSpec, check: RightsCheck): boolean {
  const { client } = context;
  // EXEC checks the queued commands: the stage may change until then.
  if (client.transaction !== null || context.mustLogIn || !mayDiffer(context)) return false;
  const { router, servers } = context.sequencer;
  if (router.oneAuthority && router.default.position.keylessRule.authority === 'source') return false;
  if (servers.target.privileges.mayUseAllKeys(client.credentials)) return false;
  const authority = authorityOf(context, spec);
  // While a stage changes, the handler lets the command wait.
  if (authority === null) return false;
  const refused = refusedRight(context, check, context.command, authority);
  if (refused === null) return false;
  if (typeof refused === 'string') context.refuse(refused);
  else context.flow.retryWhen(refused);
  return true;
}

/** The authority of the command's first key; null while the workload is changing its stage. */
function authorityOf({ clients, parser }: CommandContext, spec: CommandSpec): Side | null {
  const { router } = clients.sequencer;
  const { frame, argStart, argEnd, argc } = parser;
  const keys = new KeyList();
  const known = keysOf(spec, frame, argStart, argEnd, argc, keys);
  const count = known === UNKNOWN_KEYS ? keys.known : known;
  if (count <= 0) return router.default.position.held ? null : router.default.position.keylessRule.authority;
  const [start, end] = [argStart[keys.index[0]], argEnd[keys.index[0]]];
  const workload = router.match(frame, start, end);
  return workload.position.held ? null : workload.position.rule(frame, start, end).authority;
}

const mayDiffer = ({ clients: { sequencer } }: CommandContext): boolean =>
  allowsMore(sequencer.servers.source.traits, sequencer.servers.target.traits);

/**
 * Why the client may not run the command in `frame` at `authority`; null if it may. A promise while the target is asked
 * what the user may do.
 */
export function refusedRight(
  context: CommandContext,
  check: RightsCheck,
  frame: Buffer,
  authority: Side,
): string | Promise<unknown> | null {
  if (authority !== 'target' || !mayDiffer(context)) return null;
  const { credentials } = context.client;
  const { privileges } = context.sequencer.servers.target;
  if (privileges.mayUseAllKeys(credentials)) return null;
  const refusal = refusalOf(context, check, frame);
  return refusal === null ? null : (privileges.learn(credentials) ?? refusal);
}

const REFUSED = 'is refused to a user with key patterns, which KeyDB does not check';

/** The error for a user with key patterns; null if both servers check the same. */
function refusalOf({ clients }: CommandContext, check: RightsCheck, frame: Buffer): string | null {
  switch (check) {
    case 'sort': {
      const option = refusedOption(frame);
      return option === null ? null : `ERR ${option} option of SORT denied due to insufficient ACL permissions.`;
    }
    case 'debug':
      return `ERR shadow-proxy: DEBUG ${REFUSED} for it: Redis 7 refuses it as well`;
    case 'script':
      return clients.sequencer.scripts.find(argumentsOf(frame))?.callsWider === true
        ? `ERR shadow-proxy: a script with SORT, DEBUG or KEYDB.HRENAME ${REFUSED} for these commands: read the keys by their names`
        : null;
  }
}
