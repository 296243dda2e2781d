/** Suggests a known name that is similar to an unknown one. */

/** ` (did you mean sessions?)`; empty if no name is near. */
export function didYouMean(typed: string, names: readonly string[]): string {
  const found = nearest(typed, names);
  return found === null ? '' : ` (did you mean ${found}?)`;
}

/** From this number of letters on, the beginning of a name is recognised in spite of a mistake. */
const BEGINNING = 4;

/** The name that differs from the text by a few mistakes, or that begins so; null if none is similar. */
export function nearest(typed: string, names: readonly string[]): string | null {
  const word = plain(typed);
  const all = names.map((name) => ({ name, ...slips(word, plain(name)) }));
  const near = all.filter(
    ({ name, whole }) => whole <= Math.max(1, Math.floor(name.length / 3)) && whole < name.length,
  );
  if (near.length > 0) return near.reduce((best, each) => (each.whole < best.whole ? each : best)).name;
  const least = Math.min(...all.map(({ beginning }) => beginning));
  const begins = all.filter(({ beginning }) => beginning === least).map(({ name }) => name);
  if (word.length < BEGINNING || least > 1 || (least === 1 && begins.length > 1)) return null;
  return begins.reduce((shortest, name) => (name.length < shortest.length ? name : shortest));
}

const plain = (text: string): string => text.toLowerCase().replaceAll(/[-_. ]/g, '');

/** Insertions, deletions, replacements and swaps between a text and a name, or the beginning of the name. */
function slips(text: string, name: string): { readonly whole: number; readonly beginning: number } {
  const rows: number[][] = [Array.from({ length: name.length + 1 }, (_, at) => at)];
  for (let i = 1; i <= text.length; i++) {
    rows.push([i]);
    for (let j = 1; j <= name.length; j++) {
      const other = text[i - 1] === name[j - 1] ? 0 : 1;
      const exchanged = i > 1 && j > 1 && text[i - 1] === name[j - 2] && text[i - 2] === name[j - 1];
      rows[i].push(
        Math.min(
          rows[i - 1][j] + 1,
          rows[i][j - 1] + 1,
          rows[i - 1][j - 1] + other,
          exchanged ? rows[i - 2][j - 2] + 1 : Infinity,
        ),
      );
    }
  }
  return { whole: rows[text.length][name.length], beginning: Math.min(...rows[text.length]) };
}
