/**
 * Sends traces and metrics to a receiver of OTLP. The packages are loaded only if the plan asks for it.
 *
 *   sequencer ─▶ Traces ─▶ spans ─▶ batches ─▶ OTLP/HTTP
 *   Metrics.samples, each minute ──────────────▶ OTLP/HTTP
 *
 * Room: otel: traces and metrics for OpenTelemetry.
 * Called by: shard.
 * Calls: io, route, plan, compare, telemetry, pipeline.
 */
import { hostname } from 'node:os';
import { OTLPMetricExporter } from '@opentelemetry/exporter-metrics-otlp-http';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { resourceFromAttributes, type Resource } from '@opentelemetry/resources';
import { MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics';
import { AlwaysOnSampler, BasicTracerProvider, BatchSpanProcessor } from '@opentelemetry/sdk-trace-base';
import type { Logger } from 'pino';
import { clearTimer, every, sleep } from '../io/timers.js';
import type { OpenTelemetryPlan, Plan } from '../plan/plan.js';
import { formatAddress } from '../plan/endpoint.js';
import type { Observer } from '../pipeline/observer.js';
import { Metrics, type Scrape } from '../telemetry/metrics.js';
import { Producer } from './metrics.js';
import { writeSpans } from './spans.js';
import { Traces } from './traces.js';

export interface Otel {
  /** Traces the commands of a shard; null if none are traced. */
  observer(shard: string): Observer | null;
  /** Sends waiting data, for at most two seconds. */
  close(): Promise<void>;
}

export interface OtelOptions {
  readonly otlp: OpenTelemetryPlan;
  readonly plan: () => Plan;
  readonly scrape: () => Scrape;
  readonly logger: Logger;
}

const TIMEOUT_MS = 10_000;
const CLOSE_MS = 2_000;
/** How often to end old traces, in ms: a command without an effect never reaches the mirror. */
const SWEEP_MS = 10_000;
const SPANS = { maxQueueSize: 8_192, maxExportBatchSize: 1_024, scheduledDelayMillis: 2_000 };

export function startOtel({ otlp, plan, scrape, logger }: OtelOptions): Otel {
  const { name, admin } = plan();
  const resource = resourceFromAttributes({
    'service.name': 'shadow-proxy',
    'service.namespace': name,
    'service.instance.id': `${hostname()}/${formatAddress(admin)}`,
  });
  const meters = otlp.metricsMs === 0 ? null : meterProvider(otlp, resource, scrape, logger);
  const tracers = otlp.traceShare === 0 ? null : tracerProvider(otlp, resource, logger);
  const tracer = tracers?.getTracer('redis-to-keydb');
  const all: Traces[] = [];
  const sweeping = every(SWEEP_MS, () => all.forEach((traces) => traces.sweep(SWEEP_MS))).unref();
  return {
    observer(shard) {
      if (tracer === undefined) return null;
      const traces = new Traces({
        share: otlp.traceShare,
        showKeys: () => !plan().ledger.redact,
        finished: (trace) => writeSpans(tracer, shard, trace),
      });
      all.push(traces);
      return traces;
    },
    async close() {
      clearTimer(sweeping);
      for (const traces of all) traces.sweep(0);
      const closed = Promise.allSettled([meters?.shutdown(), tracers?.shutdown()]);
      await Promise.race([closed, sleep(CLOSE_MS, undefined, { ref: false })]);
    },
  };
}

function meterProvider(
  { url, headers, metricsMs }: OpenTelemetryPlan,
  resource: Resource,
  scrape: () => Scrape,
  logger: Logger,
): MeterProvider {
  const exporter = reporting(
    new OTLPMetricExporter({ url: `${url}/v1/metrics`, headers, timeoutMillis: TIMEOUT_MS }),
    'metrics',
    logger,
  );
  const reader = new PeriodicExportingMetricReader({
    exporter,
    exportIntervalMillis: metricsMs,
    exportTimeoutMillis: Math.min(metricsMs, TIMEOUT_MS),
    metricProducers: [new Producer(new Metrics(scrape), resource)],
  });
  return new MeterProvider({ resource, readers: [reader] });
}

function tracerProvider({ url, headers }: OpenTelemetryPlan, resource: Resource, logger: Logger): BasicTracerProvider {
  const exporter = reporting(
    new OTLPTraceExporter({ url: `${url}/v1/traces`, headers, timeoutMillis: TIMEOUT_MS }),
    'traces',
    logger,
  );
  return new BasicTracerProvider({
    resource,
    sampler: new AlwaysOnSampler(),
    spanProcessors: [new BatchSpanProcessor(exporter, SPANS)],
  });
}

interface Exporter<T> {
  export(batch: T, done: (result: { readonly code: number; readonly error?: Error }) => void): void;
}

/** Wraps an exporter: logs when it begins to fail, and when it works again. */
function reporting<T, E extends Exporter<T>>(exporter: E, what: string, logger: Logger): E {
  const send = exporter.export.bind(exporter);
  let failing = false;
  exporter.export = (batch, done) =>
    send(batch, (result) => {
      const failed = result.code !== 0;
      if (failed && !failing)
        logger.warn(
          { problem: result.error?.message },
          `the ${what} are not exported: they are dropped until the receiver answers`,
        );
      else if (!failed && failing) logger.info(`the ${what} are exported again`);
      failing = failed;
      done(result);
    });
  return exporter;
}
