/**
 * Decides whether two frames have the same strings in any order. Every SMEMBERS is compared so, because its order
 * differs between any two servers. So it works on the bytes, without decoding them.
 */
const [CR, DOLLAR, STAR, TILDE, PERCENT] = [13, 36, 42, 126, 37];
const NONE = -1;

/**
 * Reused between calls, none of which awaits: the start of each distinct element, how many of it are left, and the hash
 * table.
 */
let starts = new Int32Array(64);
let ends = new Int32Array(64);
let hashes = new Int32Array(64);
let counts = new Int32Array(64);
let slots = new Int32Array(256);
/** Larger arrays are not kept. */
const KEEP = 1 << 16;

/** The result of `next`: the element's end and its hash. */
let elementEnd = 0;
let elementHash = 0;
/** A random seed, so that clients cannot choose elements that collide. */
const SEED = (Math.random() * 2 ** 32) | 0;

/**
 * True if both frames are aggregates of strings of the same type, with the same elements (of `size` strings each), each
 * equally often. False decides nothing: a frame that is not flat, or differs, needs a closer comparison.
 */
export function haveSameStrings(a: Buffer, b: Buffer, size: 1 | 2): boolean {
  const type = a[0];
  if (a.length !== b.length || (type !== STAR && type !== TILDE && (type !== PERCENT || size !== 2))) return false;
  const first = a.indexOf(CR) + 2;
  // The same type, and the same number of elements.
  if (a.compare(b, 0, first, 0, first) !== 0) return false;
  const items = Number(a.toString('latin1', 1, first - 2));
  const most = type === PERCENT ? items : items / size;
  reserve(most);
  const mask = tableFor(most) - 1;
  slots.fill(NONE, 0, mask + 1);
  let patience = 64 + 8 * most;

  let distinct = 0;
  for (let at = first; at < a.length; at = elementEnd) {
    if (!next(a, at, size)) return false;
    let slot = elementHash & mask;
    for (; slots[slot] !== NONE && !isAt(slots[slot], a, a, at); slot = (slot + 1) & mask)
      if (--patience < 0) return false;
    const known = slots[slot];
    if (known !== NONE) {
      counts[known]++;
      continue;
    }
    slots[slot] = distinct;
    starts[distinct] = at;
    ends[distinct] = elementEnd;
    hashes[distinct] = elementHash;
    counts[distinct++] = 1;
  }
  for (let at = first; at < b.length; at = elementEnd) {
    if (!next(b, at, size)) return false;
    let slot = elementHash & mask;
    for (; slots[slot] !== NONE && !isAt(slots[slot], a, b, at); slot = (slot + 1) & mask)
      if (--patience < 0) return false;
    if (slots[slot] === NONE || --counts[slots[slot]] < 0) return false;
  }
  return true;
}

const tableFor = (elements: number): number => 2 ** Math.ceil(Math.log2(elements + 1) + 1);

function reserve(elements: number): void {
  if (starts.length < elements || starts.length > KEEP) {
    const room = Math.max(64, Math.ceil(elements));
    [starts, ends, hashes, counts] = [
      new Int32Array(room),
      new Int32Array(room),
      new Int32Array(room),
      new Int32Array(room),
    ];
    slots = new Int32Array(tableFor(room));
  }
}

/** Whether the element that `next` has found in `from` at `at` equals the element `index` of `a`. */
function isAt(index: number, a: Buffer, from: Buffer, at: number): boolean {
  if (hashes[index] !== elementHash || ends[index] - starts[index] !== elementEnd - at) return false;
  for (let i = starts[index], j = at; j < elementEnd; i++, j++) if (a[i] !== from[j]) return false;
  return true;
}

/** Finds the end and the FNV-1a hash of the `size` strings at `at`. @returns false if there is something else */
function next(buffer: Buffer, at: number, size: number): boolean {
  let hash = SEED;
  let end = at;
  for (let i = 0; i < size; i++) {
    if (buffer[end] !== DOLLAR) return false;
    let length = 0;
    let p = end + 1;
    for (; buffer[p] !== CR; p++) {
      const digit = buffer[p] - 48;
      if (!(digit >= 0 && digit <= 9)) return false;
      length = length * 10 + digit;
    }
    const from = end;
    end = p + 2 + length + 2;
    for (let j = from; j < end; j++) hash = Math.imul(hash ^ buffer[j], 0x01000193);
  }
  elementEnd = end;
  elementHash = hash ^ (hash >>> 15);
  return true;
}
