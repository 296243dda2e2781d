/** Structured logs: JSON lines, without secrets. */
import { destination, pino, type Logger } from 'pino';
import { isoTime } from '../io/clock.js';
import { redactUrl } from '../plan/endpoint.js';
import { printableLines } from '../text/printable.js';

export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

const SECRETS = ['password', 'token', 'sentinelPassword', 'key', 'authorization'];

/** `fd` is 1 for a daemon, whose output is its log, and 2 for a program whose output is a report. */
export function createLogger(level: LogLevel, fd: 1 | 2 = 1): Logger {
  return pino(
    {
      level,
      base: { pid: process.pid },
      timestamp: () => `,"time":"${isoTime()}"`,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: SECRETS.flatMap((name) => [name, `*.${name}`, `*.*.${name}`]), censor: '***' },
      hooks: { streamWrite: (line) => printableLines(redactUrl(line)) },
    },
    destination({ fd, sync: true }),
  );
}
