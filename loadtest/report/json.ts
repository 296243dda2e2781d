/** The summary for programs. Times in milliseconds, rates in commands per second, CPU in cores. */
import type { Results } from '../figures/results.js';
import { answerOf, MEASURES, type Summary } from '../figures/summary.js';
import { verdicts } from './story.js';

export function asJson(results: Results, summary: Summary): object {
  const { startedAt, profile, hosts, driver, rounds, seconds, rate, sides, counters } = results;
  return {
    ...{ startedAt, profile: profile.name, hosts, driver, rounds, seconds, rate, sides, counters },
    warnings: summary.warnings,
    contention: summary.contention,
    answers: verdicts(results, summary).map(({ question, word, sentence }) => ({
      question,
      answer: `${word}: ${sentence}`,
    })),
    figures: summary.rows.map(({ side, point, throughput, latency, work, generator, dropped }) => ({
      ...{ side: side.id, ...point, throughput, latency, generator },
      work: Object.fromEntries(work.map(({ name, cores }) => [name, cores])),
      droppedRounds: dropped.map(({ round }) => round + 1),
    })),
    comparisons: summary.comparisons.map(({ side, point, of }) => ({
      ...{ side: side.id, beside: 'source', ...point },
      ...Object.fromEntries(
        MEASURES.map((measure) => [
          measure,
          of[measure] && { ...of[measure], itIs: answerOf(of[measure], measure, summary.contention) },
        ]),
      ),
    })),
  };
}
