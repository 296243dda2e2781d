/** The battery's verdict, as a table and as JSON. */
import Table from 'cli-table3';
import { judge, mib, mostMs, ruleOf, type Finding, type Tolerance } from './verdict.js';

export interface HostileReport {
  readonly server: 'shadow-proxy' | 'redis';
  readonly secondsEach: number;
  readonly tolerance: Tolerance;
  readonly findings: readonly Finding[];
  /** Why an attack failed the requirement, by attack; empty if none did. */
  readonly failures: Readonly<Record<string, readonly string[]>>;
}

export function failuresOf(findings: readonly Finding[], tolerance: Tolerance): HostileReport['failures'] {
  const judged = findings.map((finding) => [finding.attack, judge(finding, tolerance)] as const);
  return Object.fromEntries(judged.filter(([, failures]) => failures.length > 0));
}

const ms = (value: number): string => value.toFixed(1);

/** The finding in one line, while the battery runs. */
export const asLine = ({ attack, calm, seen, peak }: Finding): string =>
  `${attack.padEnd(18)} p99 ${ms(calm.work.p99)} → ${ms(seen.work.p99)} ms, worst ${ms(seen.work.worst)}; on the wall clock p99 ` +
  `${ms(calm.wall.p99)} → ${ms(seen.wall.p99)}, worst ${ms(seen.wall.worst)}; ${seen.replies} replies, ${seen.lost} lost, ${mib(peak)}`;

/** For a terminal. */
export function asText({ server, findings, failures, tolerance, secondsEach }: HostileReport): string {
  const table = new Table({
    head: [
      'attack',
      'p99 before',
      'during',
      'factor',
      'allowed',
      'worst',
      'wall p99 before',
      'during',
      'worst',
      'lost',
      'RSS',
      '',
    ],
    style: { head: [], border: [], compact: true },
  });
  for (const finding of findings) {
    const { attack, calm, seen, peak } = finding;
    const factor = (seen.work.p99 / calm.work.p99).toFixed(1);
    const work = [ms(calm.work.p99), ms(seen.work.p99), factor, ms(mostMs(finding, tolerance)), ms(seen.work.worst)];
    const wall = [ms(calm.wall.p99), ms(seen.wall.p99), ms(seen.wall.worst)];
    table.push([attack, ...work, ...wall, `${seen.lost}`, mib(peak), attack in failures ? 'does NOT hold' : 'holds']);
  }
  const failed = Object.entries(failures).map(([attack, why]) => `${attack} does NOT hold: ${why.join('; ')}`);
  const conclusion = failed.length > 0 ? failed : ['It holds.'];
  const times = `Others of ${server}: ms from a command to its reply; each attack took ${secondsEach.toFixed(0)} s.`;
  const allowed = findings.flatMap(({ attack, allowed: more }) =>
    more === undefined ? [] : [`${attack} is allowed ${more.ms} ms: ${more.because}`],
  );
  return [table.toString(), times, ruleOf(tolerance), ...allowed, ...conclusion].join('\n');
}
