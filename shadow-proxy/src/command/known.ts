/**
 * Which servers this release knows: the tested releases, and the RDB versions whose payloads it reads. A newer server
 * is reported before anything is copied from it. Pure.
 */
import { compareVersions, type Software } from './release.js';

/** The newest release of each software that was tested; its patch releases count as known, too. */
export const NEWEST_KNOWN: Readonly<Record<Software['name'], string>> = { redis: '8.6', valkey: '9.1', keydb: '6.3' };

/** RDB versions whose payloads `copy/rdb` reads; a test compares them with its own. */
export const READABLE_RDB: readonly number[] = [6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 80, 81];

const TITLES: Readonly<Record<Software['name'], string>> = { redis: 'Redis', valkey: 'Valkey', keydb: 'KeyDB' };

/** A server that is newer than this release knows. */
export interface NewerServer {
  /** Its software and release, such as `Redis 8.12`: the name that an operator accepts. */
  readonly name: string;
  /** RDB version of its payloads; null if unknown. */
  readonly rdbVersion: number | null;
  /** What is unknown about it, for people; begins with its name. */
  readonly evidence: string;
}

/** Whether a server is newer than this release knows; false if its version is unknown. */
export const isNewer = ({ name, version }: Software): boolean =>
  version !== '' && compareVersions(version, NEWEST_KNOWN[name]) > 0;

/**
 * The RDB version that a server writes, from the footer of any of its payloads: 2 bytes before the 8 bytes of the
 * checksum.
 * @param payload the reply to `FUNCTION DUMP`, which needs no key; null if it was refused
 */
export const rdbVersionOf = (payload: Buffer | null): number | null =>
  payload === null || payload.length < 10 ? null : payload.readUInt16LE(payload.length - 10);

/**
 * The facts about a server that is newer than this release knows; null if it is not.
 * @param rdbVersion RDB version of its payloads; null if unknown
 */
export function newerServer(software: Software, rdbVersion: number | null): NewerServer | null {
  if (!isNewer(software)) return null;
  const title = TITLES[software.name];
  const name = `${title} ${software.version.split('.').slice(0, 2).join('.')}`;
  const dump =
    rdbVersion === null
      ? 'it does not tell the RDB version of its DUMP (FUNCTION DUMP is refused)'
      : READABLE_RDB.includes(rdbVersion)
        ? `its DUMP is RDB ${rdbVersion}, which this release reads`
        : `its DUMP is RDB ${rdbVersion}, which this release cannot read: only plain strings can be copied from it`;
  return {
    name,
    rdbVersion,
    evidence: `${name}: not known to this release, whose newest is ${title} ${NEWEST_KNOWN[software.name]}; ${dump}`,
  };
}
