/**
 * The format of figures for people, the same in every table, page and report. Pure, because browsers run it, too.
 *
 * Room: text: the format of numbers, counts, lists and commands for people; foreign text as it may be printed.
 * Called by: every room after it.
 * Calls: no room.
 */

/** `1,234`. */
export const number = (value: number): string => Math.round(value).toLocaleString('en-US');

/** `1 key`, `2 keys`. */
export const count = (n: number, one: string, many = `${one}s`): string => `${number(n)} ${n === 1 ? one : many}`;

/** `3 SET, 1 GET`, the most frequent first. */
export const list = (counts: Readonly<Record<string, number>>): string =>
  Object.entries(counts)
    .filter(([, n]) => n > 0)
    .sort(([, a], [, b]) => b - a)
    .map(([name, n]) => `${number(n)} ${name}`)
    .join(', ');

/** `45 %`; `4.5 %` below 10; `<0.1 %` if it would be 0.0 although it is not. @param share 0 to 1 */
export const percent = (share: number): string =>
  share > 0 && share < 0.0005 ? '<0.1 %' : `${(100 * share).toFixed(share > 0 && share < 0.0995 ? 1 : 0)} %`;

/** `12.3 KiB`, `45 MiB`. */
export const bytes = (count: number): string =>
  count < 2 ** 20 ? `${(count / 1024).toFixed(1)} KiB` : `${number(Math.round(count / 2 ** 20))} MiB`;

/** `41 s`, `3 min 20 s`, `5 h 2 min`. */
export function duration(seconds: number): string {
  const whole = Math.ceil(seconds);
  return whole < 60
    ? `${whole} s`
    : whole < 3600
      ? `${Math.floor(whole / 60)} min ${whole % 60} s`
      : `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}

/** Follows the name of a server; empty if the server answers. */
export const unlessUp = (up: boolean | null): string => (up === null ? ', not used' : up ? '' : ', DOWN');

/** Microseconds as `0.25 ms`. */
export const milliseconds = (us: number): string => `${(us / 1000).toFixed(2)} ms`;
