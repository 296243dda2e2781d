/** The users that log in at the stand-in for ElastiCache, and at the KeyDB that it is migrated to. */

export interface Login {
  readonly username: string;
  readonly password: string;
  /** Its access string, as ElastiCache calls the rules of a user. */
  readonly access: string;
}

/** AUTH has one token, which is the password of `default`. */
export const TOKEN: Login = { username: 'default', password: 'a-token-of-16-characters', access: 'on ~* &* +@all' };

/** Of the proxy: its access string is the one of docs/elasticache.md. */
export const MIGRATION: Login = {
  username: 'migration',
  password: 'migration-password-1',
  access: 'on ~* &* +@all -@dangerous +acl|list +client +flushall +flushdb +info +keys +restore +role +sort +swapdb',
};

export const APP: Login = { username: 'app', password: 'application-password', access: 'on ~* &* +@all' };

/** Of the proxy, at KeyDB. */
export const KIT: Login = { username: 'kit', password: 'kitpw', access: 'on ~* &* +@all' };

/** A line of a server's configuration. */
export const fullLine = ({ username, password, access }: Login): string => `${username} >${password} ${access}`;

/** For `ElastiCacheOptions.users`. */
export const rbac = (): string[] => [MIGRATION, APP].map(fullLine);

/** What stands before the host of a URL. */
export const loginOf = ({ username, password }: Login): string => `${username}:${password}@`;
