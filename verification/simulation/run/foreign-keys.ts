/** Keys that the target has before the proxy begins, in several databases: nothing may delete or overwrite them. */
import { Finding, type Scene } from './scene.js';

const DATABASES = 3;
/** The mismatches that commands on such keys show. */
export const OF_FOREIGN_KEYS = ['missing-on-authority', 'missing-on-mirror', 'length', 'value', 'type', 'error'];

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
      for (let i = 0; i < scene.profile.keys; i++) client.receive(Buffer.from(`SET o${i} foreign\r\n`));
    }
    client.end();
    for (const kind of OF_FOREIGN_KEYS) scene.trueMismatches.add(kind);
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
