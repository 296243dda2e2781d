/**
 * Keys that the target has before the proxy begins, in several databases. Nothing may delete or overwrite those that no
 * client writes. What a client's write makes of the others is what it makes of the source's.
 */
import { ADDED_TO, added } from '../clients/kinds/foreign.js';
import { Finding, OF_DIFFERING_KEYS, type Scene } from './scene.js';

const DATABASES = 3;
export class ForeignKeys {
  constructor(private readonly scene: Scene) {
    const { model } = scene.target;
    const client = model.connect(
      () => undefined,
      () => undefined,
      { host: '10.0.1.9', port: 40_000 },
    );
    for (let db = 0; db < DATABASES; db++) {
      client.receive(Buffer.from(`SELECT ${db}\r\n`));
      const keys = Array.from({ length: scene.profile.keys }, (_, i) => ['SET', `o${i}`, 'foreign']);
      const written = Array.from({ length: ADDED_TO }, (_, i) => added(i, 'foreign'));
      for (const args of [...keys, ...written]) client.receive(Buffer.from(`${args.join(' ')}\r\n`));
    }
    client.end();
    for (const kind of OF_DIFFERING_KEYS) scene.trueMismatches.add(kind);
  }

  /** @throws {Finding} where one is lost */
  check(): void {
    const { target, profile } = this.scene;
    for (let db = 0; db < DATABASES; db++)
      for (let i = 0; i < profile.keys; i++)
        if (target.entry(`${db} o${i}`)?.value !== 'foreign')
          throw new Finding(`o${i}, which the proxy has not written, is lost on the target (database ${db})`, [
            `o${i}`,
          ]);
  }
}

export const isForeignKey = (name: string): boolean => /^o\d/.test(name);
