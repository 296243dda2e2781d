/** A line for each phase of the preparation, with its time, and never 5 s of silence. */

const BEAT_MS = 4_000;
const TICK_MS = 200;

const seconds = (ms) => `${(ms / 1000).toFixed(1)} s`;

/**
 * Runs a phase. A terminal has one line, whose time runs; elsewhere there is a line at the start, one every 4 s, and one
 * at the end.
 * @param doing such as "Installing packages"
 * @param work returns what was done, such as "Installed 96 packages"
 */
export async function phase(doing, work, { out = process.stderr, beatMs = BEAT_MS } = {}) {
  const startedAt = performance.now();
  const elapsed = () => seconds(performance.now() - startedAt);
  const live = out.isTTY === true;
  const clear = '\r\x1b[2K';
  const show = () => out.write(live ? `${clear}${doing} … ${elapsed()}` : `${doing} … ${elapsed()}\n`);
  out.write(live ? `${doing} …` : `${doing} …\n`);
  const timer = setInterval(show, live ? TICK_MS : beatMs);
  try {
    const done = await work();
    if (live) out.write(clear);
    out.write(`${done} (${elapsed()}).\n`);
  } catch (error) {
    if (live) out.write(clear);
    throw error;
  } finally {
    clearInterval(timer);
  }
}
