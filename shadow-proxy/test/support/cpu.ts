/** The time that this process works: what others take of the machine is not its. */

/** Begins to count; the returned function says how many ms of CPU this process has used since. */
export function startCpuClock(): () => number {
  const since = process.cpuUsage();
  return () => {
    const { user, system } = process.cpuUsage(since);
    return (user + system) / 1000;
  };
}
