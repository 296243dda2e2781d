/** Which keys a server does not have, asked on a connection of its own. */
import type { Connection } from '../lane/connection.js';
import type { Server } from '../lane/server.js';
import { isError, text, type Reply } from '../resp/decode.js';
import type { Argument } from '../resp/encode.js';
import { ScanError, type ScannedKey } from './scanner.js';

/** So many keys are one question while none is missing. */
const TOGETHER = 64;

export class Presence {
  #connection: Connection | undefined;
  #db = 0;

  constructor(private readonly server: Server) {}

  /**
   * Those of the keys that are not there.
   * @throws {ScanError} where the server refuses
   * @throws {Error} where the connection is lost
   */
  async absent(db: number, keys: readonly ScannedKey[]): Promise<ScannedKey[]> {
    const groups: (readonly ScannedKey[])[] = [];
    for (let i = 0; i < keys.length; i += TOGETHER) groups.push(keys.slice(i, i + TOGETHER));
    const found = await this.#ask(db, groups.map((group) => ['EXISTS', ...group.map(({ key }) => key)]));
    const suspicious = groups.filter((group, i) => Number(text(found[i])) < group.length).flat();
    const each = await this.#ask(db, suspicious.map(({ key }) => ['EXISTS', key]));
    return suspicious.filter((_, i) => text(each[i]) === '0');
  }

  async #ask(db: number, commands: readonly (readonly Argument[])[]): Promise<Reply[]> {
    if (commands.length === 0) return [];
    const { endpoint } = this.server;
    this.#connection ??= await this.server.open({ db: 0, protocol: 2, credentials: endpoint.credentials });
    const moved = db === this.#db ? [] : [['SELECT', db]];
    const replies = await this.#connection.askAll([...moved, ...commands]);
    const refused = replies.find(isError);
    if (refused !== undefined) throw new ScanError(`${endpoint.label} refuses EXISTS: ${text(refused)}; allow it to the kit's user`);
    this.#db = db;
    return replies.slice(moved.length);
  }

  close(): void {
    this.#connection?.destroy();
  }
}
