/**
 * Facts about KeyDB 6.3.4 that a user should know in advance. They were measured, or read in its source and its issues;
 * docs/decisions/ has the resulting limits of the kit.
 */
export interface Truth {
  readonly what: string;
  readonly means: string;
}

export const TRUTHS: readonly Truth[] = [
  {
    what: 'one global lock',
    means:
      'sockets and parsing run in parallel, commands do not: a 600 ms script blocked reads on eight other connections for 500 ms, with any number of threads. KeyDB helps where connections and parsing are the load, not where single commands are',
  },
  {
    what: 'its further threads rest behind the proxy',
    means:
      'the proxy has one connection for each database, user and protocol, and KeyDB gives a thread 20 clients before the next gets one: expect a gain from server-threads only after the cutover, and measure it before (npm run loadtest, docs/capacity.md)',
  },
  {
    what: 'no conflict-free types',
    means:
      'with active-active, concurrent writes to one key are replayed, and a full resync keeps one side only: counters lose increments',
  },
  {
    what: 'the level of Redis 6.2',
    means: 'functions, LMPOP, EXPIRETIME, ZINTERCARD, sharded pub/sub and the options of Redis 7 are missing',
  },
  {
    what: 'release 6.3.4 is of October 2023; development stopped in spring 2024',
    means: 'bugs are no longer fixed: plan how to leave KeyDB, too; going back to Redis or Valkey is one copy',
  },
  {
    what: 'security fixes of Redis are missing, some against running code (CVE-2026-25243 and CVE-2026-66373 by RESTORE; CVE-2025-49844 and others by scripts; CVE-2025-32023; CVE-2025-21605 without a login)',
    means:
      'with users or networks that you do not trust, choose Valkey 9 or Redis 8 as the target (docs/keydb.md has each hole); otherwise give applications an ACL user with +@all -@admin -@dangerous -@scripting -keydb.nhget -keydb.nhset -keydb.cron, rename or deny what only KeyDB has, limit the output buffer of normal clients, set acl-pubsub-default resetchannels',
  },
];
