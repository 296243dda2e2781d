/** Converts a finished trace to spans of OpenTelemetry. */
import { ROOT_CONTEXT, SpanKind, SpanStatusCode, trace as api, type Attributes, type Tracer } from '@opentelemetry/api';
import { unixMsAtZero } from '../io/clock.js';
import type { Trace } from './traces.js';

export function writeSpans(tracer: Tracer, shard: string, trace: Trace): void {
  const { startedAt, answeredAt, mirrorAt, endedAt, outcome } = trace;
  const root = tracer.startSpan(
    trace.command.toUpperCase(),
    { kind: SpanKind.SERVER, startTime: at(startedAt), attributes: attributesOf(shard, trace) },
    ROOT_CONTEXT,
  );
  const within = api.setSpan(ROOT_CONTEXT, root);
  const child = (name: string, kind: SpanKind, from: number, to: number, attributes: Attributes): void =>
    tracer.startSpan(name, { kind, startTime: at(from), attributes }, within).end(at(to));
  child('authority', SpanKind.CLIENT, startedAt, answeredAt ?? endedAt, {
    'shadow_proxy.server': trace.authority,
    'server.address': trace.server,
  });
  if (answeredAt !== null) root.addEvent('reply to the client', undefined, at(answeredAt));
  if (answeredAt !== null && outcome !== null)
    child('mirror', SpanKind.CLIENT, answeredAt, mirrorAt ?? endedAt, {
      'shadow_proxy.server': trace.authority === 'source' ? 'target' : 'source',
    });
  if (mirrorAt !== null) child('verdict', SpanKind.INTERNAL, mirrorAt, endedAt, verdictOf(trace));
  if (trace.isError || answeredAt === null || outcome === 'mismatch') root.setStatus({ code: SpanStatusCode.ERROR });
  root.end(at(endedAt));
}

/** Times are converted here: with the monotonic clock, each span would be aligned to the wall clock separately. */
const at = (ms: number): number => unixMsAtZero() + ms;

const attributesOf = (shard: string, trace: Trace): Attributes => ({
  'db.system.name': 'redis',
  'db.operation.name': trace.command.toUpperCase(),
  'shadow_proxy.shard': shard,
  'shadow_proxy.workload': trace.workload,
  'shadow_proxy.stage': trace.stage,
  ...verdictOf(trace),
  ...(trace.key !== null && { 'shadow_proxy.key': trace.key }),
});

const verdictOf = ({ outcome, detail }: Trace): Attributes => ({
  ...(outcome !== null && { 'shadow_proxy.verdict': outcome }),
  ...(detail !== null && { 'shadow_proxy.verdict.detail': detail }),
});
