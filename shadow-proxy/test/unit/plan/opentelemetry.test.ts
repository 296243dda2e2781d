/** The plan's receiver of OpenTelemetry. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { scratch, smallPlan, toPlan, problemsOf, printProblems } from '../../support/plans.js';

test('a receiver of OTLP has headers from a file, and is off where the plan has none', (t) => {
  const directory = scratch(t, { headers: 'api-key: secret:1 \n\nx-tenant:a\n', wrong: 'secret\n' });
  const plan = {
    ...smallPlan(),
    opentelemetry: { url: 'http://127.0.0.1:4318/', headersFile: 'headers', traceShare: 0.01 },
  };
  assert.deepEqual(toPlan(plan, {}, directory).opentelemetry, {
    url: 'http://127.0.0.1:4318',
    headers: { 'api-key': 'secret:1', 'x-tenant': 'a' },
    traceShare: 0.01,
    metricsMs: 60_000,
  });
  assert.equal(toPlan(smallPlan()).opentelemetry, null);
  const problems = printProblems(
    problemsOf(
      (each) => (each.opentelemetry = { url: 'otel:4318', headersFile: 'wrong', traceShare: 2 }),
      {},
      directory,
    ),
  );
  assert.match(problems, /^opentelemetry\.traceShare: is 2: a number up to 1 is allowed$/);
  const more = printProblems(
    problemsOf((each) => (each.opentelemetry = { url: '//otel', headersFile: 'wrong' }), {}, directory),
  );
  assert.match(more, /headersFile: has a line that is not a header: write `name: value`/);
  assert.match(more, /opentelemetry\.url: has no http or https URL/);
  assert.doesNotMatch(more, /secret/);
});
