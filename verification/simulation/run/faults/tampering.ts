/** What can happen to the state folder while no process runs: nothing of its journal may be believed afterwards. */
import { HEADER, NAMES } from '../../../../shadow-proxy/src/storage/journal-format.js';
import type { Disk } from '../../world/disk.js';
import type { Scene } from '../scene.js';

const FOLDER = '/state/s0';
const JOURNAL = NAMES.map((name) => `${FOLDER}/${name}`);
/** So many bytes of a file have most of its records. */
const FULL_BYTES = 2_000;

export class Tampering {
  /** The folder's files as an earlier process left them. */
  #earlier = new Map<string, Buffer>();

  constructor(
    private readonly scene: Scene,
    private readonly disk: Disk,
  ) {}

  /** @returns what has happened */
  strike(): string {
    const { random } = this.scene;
    const earlier = this.#earlier;
    const files = this.disk.list(FOLDER).map((name) => `${FOLDER}/${name}`);
    this.#earlier = new Map(files.map((each) => [each, this.disk.readFile(each)]));
    const path = random.pick(JOURNAL);
    const kind = random.below(earlier.size === 0 ? 3 : 5);
    switch (kind) {
      case 0:
        this.disk.damage(path, (bytes) => bytes.subarray(0, random.below(bytes.length)));
        return `${path} was cut`;
      case 1:
        this.disk.damage(path, (bytes) => {
          const most = random.chance(0.5) ? bytes.length : Math.min(bytes.length, HEADER + FULL_BYTES);
          bytes[HEADER + random.below(most - HEADER)] ^= 1 << random.below(8);
          return bytes;
        });
        return `a bit of ${path} was flipped`;
      case 2:
        this.disk.damage(path, () => null);
        return `${path} is missing`;
      case 3:
        for (const each of JOURNAL) this.disk.damage(each, () => earlier.get(each)!);
        return 'an older copy of the journal was put back';
      default:
        for (const each of files) if (!JOURNAL.includes(each)) this.disk.damage(each, () => earlier.get(each) ?? null);
        return 'an older copy of all but the journal was put back';
    }
  }
}
