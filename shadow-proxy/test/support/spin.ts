/** A script that keeps its server at work for so many seconds by the server's own clock, and then answers `spun`. */
export const spinFor = (seconds: number): string =>
  "local function now() local t = redis.call('TIME') return t[1] + t[2] / 1e6 end " +
  `local e = now() + ${seconds} repeat until now() > e return 'spun'`;
