/** What a server is, which commands it has, and what follows from its release; known once the server was asked. */
import { compareVersions, type Software } from '../command/release.js';
import type { NewerServer } from '../command/known.js';
import type { Capability } from './capabilities.js';
import { isSince } from './identity.js';
import { ServerCommands } from './server-commands.js';

export class ServerTraits {
  /** The version by INFO at the last check; empty before the first. */
  version = '';
  /** Whether the process at the endpoint said that it is a KeyDB. */
  isKeydb = false;
  /** The software at the last check; undefined before the first. */
  software: Software | undefined;
  /** What this release does not know of a newer server; null if it knows all. */
  newer: NewerServer | null = null;
  /** The commands of the server. */
  readonly supported = new ServerCommands();
  /** Capabilities that the server refuses, and that the kit can do without. */
  missing: readonly Capability[] = [];

  /** Lower-case names from the server's `COMMAND`. Another set object each time that it was read. */
  get commands(): ReadonlySet<string> {
    return this.supported.names;
  }

  /**
   * Whether a number that a script passes to a command becomes its shortest text, as since Redis 7.2; otherwise it has
   * 17 digits.
   */
  get writesShortNumbers(): boolean {
    return isSince(this.version, [7, 2]);
  }

  /**
   * Whether the server is a KeyDB 6.3, whose commands are those of Redis 6.2, or a Redis before 7.0. False before it
   * was asked.
   */
  get isBefore70(): boolean {
    return this.isKeydb || (this.version !== '' && !isSince(this.version, [7, 0]));
  }

  /** The form of the server's hashes whose fields have TTLs; null if it has none, as KeyDB. */
  get fieldTtlForm(): 'redis' | 'valkey' | null {
    const { name, version } = this.software ?? { name: 'keydb', version: '' };
    if (name === 'valkey') return compareVersions(version, '9.0') >= 0 ? 'valkey' : null;
    return name === 'redis' && compareVersions(version, '7.4') >= 0 ? 'redis' : null;
  }

  /** Whether the length behind an element of a listpack uses all its bits; other servers consider that damage. */
  get fullBacklengths(): boolean {
    return this.software?.name === 'valkey' && compareVersions(this.software.version, '9.1') >= 0;
  }

  /** Whether XREADGROUP, XCLAIM and XAUTOCLAIM create the consumer that they name, whatever they find. */
  get createsConsumers(): boolean {
    return isSince(this.version, [7, 2]);
  }

  /** Whether streams count their entries, and their groups what they read. */
  get countsEntries(): boolean {
    return compareVersions(this.version, '7.0') >= 0;
  }
}

/** The traits as everything but the server sees them. */
export type Traits = Readonly<ServerTraits>;
