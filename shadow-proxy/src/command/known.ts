/**
 * Which servers this release knows: those that it was run with, and the RDB versions whose payloads it reads. A server
 * beyond them is named before anything is copied from it. Pure.
 */
import { compareVersions, type Software } from './release.js';

/** The newest release of each software that the matrix was run with; patch releases of it are known, too. */
export const NEWEST_KNOWN: Readonly<Record<Software['name'], string>> = { redis: '8.6', valkey: '9.1', keydb: '6.3' };

/** RDB versions whose payloads `copy/rdb` reads; a test compares them with its own. */
export const READABLE_RDB: readonly number[] = [6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 80, 81];

const TITLES: Readonly<Record<Software['name'], string>> = { redis: 'Redis', valkey: 'Valkey', keydb: 'KeyDB' };

/** A server that is newer than this release knows. */
export interface NewerServer {
  /** Its software with the release, such as `Redis 8.12`: what an operator accepts. */
  readonly name: string;
  /** RDB version of its payloads; null if it does not tell. */
  readonly rdbVersion: number | null;
  /** What is not known of it, for people; begins with its name. */
  readonly evidence: string;
}

/** Whether a server is newer than this release knows; one that does not tell its version is not. */
export const isNewer = ({ name, version }: Software): boolean =>
  version !== '' && compareVersions(version, NEWEST_KNOWN[name]) > 0;

/**
 * The RDB version that a server writes, by the footer of any payload of it: 2 bytes before the 8 bytes of the checksum.
 * @param payload the reply to `FUNCTION DUMP`, which needs no key; null if it was refused
 */
export const rdbVersionOf = (payload: Buffer | null): number | null =>
  payload === null || payload.length < 10 ? null : payload.readUInt16LE(payload.length - 10);

/**
 * What is to be said of a server that is newer than this release knows; null if it is not.
 * @param rdbVersion of its payloads; null if it does not tell
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
