/** Keys of another shard on the target that both share: nothing that clients of this shard do changes them. */
import { KINDS } from '../clients/kinds/keys.js';
import { Finding, type Scene } from './scene.js';

const DATABASES = 3;
const VALUE = 'of the other shard';

export class OtherShard {
  readonly #names: readonly string[];

  constructor(
    private readonly scene: Scene,
    private readonly isOfOtherShard: (key: string) => boolean,
  ) {
    const numbers = Array.from({ length: scene.profile.keys }, (_, i) => i);
    // Clients of this shard use the same names.
    this.#names = KINDS.flatMap((kind) => numbers.map((i) => `${kind}${i}`)).filter(isOfOtherShard);
    for (const database of scene.target.model.databases.slice(0, DATABASES))
      for (const name of this.#names) database.add(name, 'string', VALUE);
  }

  /** @throws {Finding} where one was written, or is lost */
  check(): void {
    const { target } = this.scene;
    let kept = 0;
    for (const [db, keys] of target.model.keyspace())
      for (const [key, { value }] of keys)
        if (value === VALUE) kept++;
        else if (this.isOfOtherShard(key))
          throw new Finding(`${key}, a key of the other shard, was written on the target (database ${db})`, [key]);
    const all = DATABASES * this.#names.length;
    if (kept !== all) throw new Finding(`of ${all} keys of the other shard, the target has ${kept}`);
  }
}
