/**
 * Every panel against the real thing: servers, exporters, proxy and Prometheus of `rig/`.
 *
 * Needs real processes: Prometheus, which evaluates each query on what a rig exports.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { AdminClient } from '../../shadow-proxy/src/cli/admin-client.js';
import { gather } from '../preview/render.js';
import type { Look, View } from '../preview/view.js';
import { filledIn, panelsOf, queriesOf, variablesOf, type Variables } from '../rig/ask.js';
import { knownNames, namesOf } from '../rig/exporters.js';
import { play, seed } from '../rig/scenario.js';
import { missing, SCRAPE_SECONDS, scraped, startStack, type Stack } from '../rig/stack.js';
import { DASHBOARDS } from '../src/all.js';
import { metricsIn } from './promql.js';

const PACE = { step: 1, scrape: SCRAPE_SECONDS };

const lacks = await missing();
const skip = lacks.length > 0 && `THE DASHBOARDS WERE NOT ASKED: ${lacks.join('; ')}`;
if (skip) process.stderr.write(`${skip}\n`);

/** Of the panels' questions those that are answered with nothing, or with no number. */
async function unanswered({ prometheus }: Stack): Promise<string[]> {
  const empty: string[] = [];
  for (const dashboard of DASHBOARDS) {
    const variables = await variablesOf(dashboard, prometheus, { workload: 'sessions' });
    for (const panel of panelsOf(dashboard)) {
      for (const { expr, legend } of queriesOf(panel)) {
        const found = await prometheus.instant(filledIn(expr, variables, PACE));
        if (!found.some(({ points }) => Number.isFinite(points[0][1])))
          empty.push(`${dashboard.title}: ${panel.title}: ${legend}`);
      }
    }
  }
  return empty;
}

/** What is shown in words or figures with a colour: now in a tile or a table, or at any moment in a band. */
function looksOf(view: View): readonly Look[] {
  switch (view.kind) {
    case 'stat':
      return view.values;
    case 'table':
      return view.rows.flat();
    case 'state-timeline':
      return view.bands.flatMap(({ spans }) => spans);
    case 'timeseries':
      return [];
  }
}

describe('the dashboards against a real Prometheus', { skip }, () => {
  let stack: Stack;
  const from = Math.floor(Date.now() / 1000);
  before(async () => {
    stack = await startStack(seed);
    await scraped(stack);
  });
  after(() => stack?.rig.close());

  test('no panel is empty on day one: nothing has moved, and nobody has asked for anything', async () => {
    assert.deepEqual(await unanswered(stack), []);
  });

  test('nor is anything red, and no alert fires or is about to', async () => {
    const { prometheus } = stack;
    const now = Math.floor(Date.now() / 1000);
    const span = { from: now - 10, to: now, ...PACE };
    const red: string[] = [];
    // Those of the hosts tell of this machine.
    for (const dashboard of DASHBOARDS.filter(({ title }) => title !== 'Hosts')) {
      const { views } = await gather(dashboard, prometheus, span, { workload: 'sessions' });
      for (const panel of panelsOf(dashboard))
        if (looksOf(views.get(panel.id!)!).some(({ color }) => color === 'red'))
          red.push(`${dashboard.title}: ${panel.title}`);
    }
    assert.deepEqual(red, []);
    assert.deepEqual(
      (await prometheus.instant('ALERTS')).map(({ labels }) => labels),
      [],
    );
    const [{ target }] = (await new AdminClient({ admin: stack.proxy.admin }).status()).shards;
    assert.equal(target.up, null, 'no workload uses KeyDB yet');
  });

  test('the exporters give what the list says that they give', async () => {
    const [now, listed] = [await namesOf(stack), knownNames()];
    const named = new Set(
      DASHBOARDS.flatMap((dashboard) =>
        panelsOf(dashboard).flatMap((panel) =>
          queriesOf(panel).flatMap(({ expr }) => metricsIn(expr).map(({ metric }) => metric)),
        ),
      ),
    );
    for (const kind of ['redis', 'keydb', 'node'] as const)
      assert.deepEqual(
        listed[kind].filter((name) => named.has(name) && !now[kind].includes(name)),
        [],
        kind,
      );
  });

  test('every panel’s query returns data once a migration has run', async () => {
    await play(stack);
    assert.deepEqual(await unanswered(stack), []);
  });

  test('Prometheus shows what happened: the stages as annotations, the mismatch, the cut link', async () => {
    const { prometheus } = stack;
    const to = Math.floor(Date.now() / 1000);
    const cutover = DASHBOARDS.find(({ title }) => title === 'Workload cutover')!;
    const labels = async (name: string, variables: Variables): Promise<string[]> => {
      const { expr } = cutover.annotations!.list!.find((each) => each.name === name)!;
      const found = await prometheus.range(filledIn(expr!, variables, PACE), from, to, 1);
      return found.map((series) => `${series.labels.workload} ${series.labels.stage ?? ''}`.trim()).toSorted();
    };
    const sessions = await variablesOf(cutover, prometheus, { workload: 'sessions' });
    assert.deepEqual(await labels('Stage', sessions), ['sessions dualwrite', 'sessions live', 'sessions shadow']);
    assert.deepEqual(await labels('Percent', sessions), ['sessions']);
    assert.deepEqual(await labels('Mismatch', { ...sessions, workload: 'auth-cache' }), ['auth-cache']);
    const cut = await prometheus.range('redis_master_link_up == 0', from, to, 1);
    assert.equal(cut.length, 2);
  });
});
