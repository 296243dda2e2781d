/**
 * How `shadow-compare` reaches the proxies of a plan: the admin address of each, and the token. There are several if
 * each shard has a process of its own: then a shard has its own `admin`, or the plan's `announce` contains `{shard}`.
 */
import { resolve } from 'node:path';
import { announcedAdmin, formatAddress, interpolate, parseAddress, SHARD, UrlError, type Address } from './endpoint.js';
import type { PlanPath, PlanProblem } from './errors.js';
import { readWhole } from './file.js';
import type { Surroundings } from './normalise.js';
import type { AdminFile, PlanFile } from './schema.js';

/** The admin HTTP of a process. */
export interface AdminAddress extends Address {
  /** Null if the plan has no token, or it cannot be read here. */
  readonly token: string | null;
  /** Why the plan's token cannot be read; null if it can, or there is none. */
  readonly tokenProblem: string | null;
}

export interface PlannedAdmins {
  /** The migration's name. */
  readonly name: string;
  /** Names of the shards; null for a cluster, whose shards only its servers name. */
  readonly shards: readonly string[] | null;
  /** Each address once, in the order of the shards. */
  readonly admins: readonly AdminAddress[];
  /** Whether each shard of a cluster has an address of its own: then the servers must name the shards first. */
  readonly perShard: boolean;
}

/** @returns the admin addresses, and the problems of those that cannot be read */
export function adminsIn(
  file: PlanFile,
  surroundings: Surroundings,
): { readonly planned: PlannedAdmins; readonly problems: readonly PlanProblem[] } {
  const problems: PlanProblem[] = [];
  const read = (admin: AdminFile, path: PlanPath, shard: string): AdminAddress[] => {
    try {
      const token = tokenOf(admin, surroundings);
      return addressesOf(admin, shard, surroundings.env).map((address) => ({ ...address, ...token }));
    } catch (error) {
      if (!(error instanceof UrlError)) throw error;
      problems.push({ path: [...path, admin.announce === undefined ? 'listen' : 'announce'], message: error.message });
      return [];
    }
  };
  const { name, shards, cluster } = file;
  const all = (shards ?? [{ name: '' }]).flatMap(({ name: shard, ...rest }, i) =>
    'admin' in rest && rest.admin !== undefined
      ? read(rest.admin, ['shards', i, 'admin'], shard)
      : read(file.admin, ['admin'], shard),
  );
  const perShard =
    cluster !== undefined && (cluster.admin !== undefined || file.admin.announce?.some(namesShard) === true);
  return {
    planned: { name, shards: shards?.map((shard) => shard.name) ?? null, admins: eachOnce(all), perShard },
    problems,
  };
}

const namesShard = (announce: string): boolean => announce.includes(SHARD);

/** Removes addresses that occur twice. */
export const eachOnce = (admins: readonly AdminAddress[]): readonly AdminAddress[] => [
  ...new Map(admins.map((admin) => [formatAddress(admin), admin])).values(),
];

const addressesOf = ({ listen, announce }: AdminFile, shard: string, env: NodeJS.ProcessEnv): readonly Address[] =>
  announce === undefined
    ? [parseAddress(interpolate(listen, env))]
    : announce.map((each) => announcedAdmin(each, shard, env));

function tokenOf(
  { token, tokenFile }: AdminFile,
  { directory, env }: Surroundings,
): Pick<AdminAddress, 'token' | 'tokenProblem'> {
  const lacking = (tokenProblem: string): Pick<AdminAddress, 'token' | 'tokenProblem'> => ({
    token: null,
    tokenProblem,
  });
  if (token !== undefined) {
    try {
      return { token: interpolate(token, env), tokenProblem: null };
    } catch (error) {
      return lacking(`admin.token ${(error as UrlError).message}`);
    }
  }
  if (tokenFile === undefined) return { token: null, tokenProblem: null };
  const path = resolve(directory, tokenFile);
  try {
    return {
      token: readWhole(path)
        .toString('utf8')
        .replace(/\r?\n$/, ''),
      tokenProblem: null,
    };
  } catch (error) {
    return lacking(`admin.tokenFile is ${path}, which cannot be read here (${(error as NodeJS.ErrnoException).code})`);
  }
}
