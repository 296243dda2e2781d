/** docs/stages.md: stages and stage changes, from the tables that the proxy uses (`npm run docs:stages`). */
import { STAGES, stageRule, type Stage } from '../route/stage.js';
import { rollbackStage, TRANSITIONS, type Transition } from '../route/transitions.js';

const ABOUT = `# Stages

Each workload moves by itself, one stage at a time. Made by \`npm run docs:stages\` from the tables in \`shadow-proxy/src/route/stage.ts\` and
\`shadow-proxy/src/route/transitions.ts\`, which the proxy follows: a stage change that is not here is refused.

| stage | clients get | writes go to | reads go to | \`rollback\` leads to | meaning |
| --- | --- | --- | --- | --- | --- |`;

const CHANGES = `## Stage changes

A change holds the new commands of its workload, at most \`limits.flipMs\`. Meanwhile the servers answer and confirm what is in flight. If clients get another
server's replies afterwards, suspects are repaired first. If that takes too long, the change is refused and nothing has changed.

\`promote\` goes forward if all gates are open, \`rollback\` goes back without gates. What each gate asks: [gates](concepts.md#gates).
A plan may have the proxy do both by itself within \`live\`: [guard and rollout](operations.md).

| from | to | gates | what changes |
| --- | --- | --- | --- |`;

const PER_REGION = `Workloads with \`counterLayout: per-region\` have two stages, \`off\` and \`complete\`.
`;

export const renderStages = (): string =>
  [
    ...[ABOUT, ...STAGES.map(stageRow), '', CHANGES],
    ...TRANSITIONS.filter(({ perRegion }) => !perRegion).map(changeRow),
    ...['', PER_REGION, '| from | to | gates | what changes |', '| --- | --- | --- | --- |'],
    ...TRANSITIONS.filter(({ perRegion }) => perRegion).map(changeRow),
    '',
  ].join('\n');

function stageRow(stage: Stage): string {
  const { authority, mirrorsWrites, mirrorsReads, sentence } = stageRule(stage);
  const to = (both: boolean): string => (both ? 'both' : authority);
  const way = rollbackStage(stage);
  return `| \`${stage}\` | ${authority} | ${to(mirrorsWrites)} | ${to(mirrorsReads)} | ${way === null ? '–' : `\`${way}\``} | ${sentence} |`;
}

const changeRow = ({ from, to, gates, sentence }: Transition): string =>
  `| \`${from}\` | \`${to}\` | ${gates.length === 0 ? '–' : gates.map((gate) => `\`${gate}\``).join(', ')} | ${sentence} |`;
