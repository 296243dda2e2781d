/** The metrics of `/metrics` for OpenTelemetry: the same table, names, labels and numbers. */
import { ValueType } from '@opentelemetry/api';
import {
  AggregationTemporality,
  DataPointType,
  type CollectionResult,
  type DataPoint,
  type Histogram,
  type MetricData,
  type MetricProducer,
} from '@opentelemetry/sdk-metrics';
import type { MetricObjectWithValues, MetricValue } from 'prom-client';
import { unixMs, unixMsAtZero } from '../io/clock.js';
import type { Metrics } from '../telemetry/metrics.js';

type MetricSamples = MetricObjectWithValues<MetricValue<string>>;
type HrTime = readonly [seconds: number, nanoseconds: number];

export class Producer implements MetricProducer {
  constructor(
    private readonly metrics: Pick<Metrics, 'samples'>,
    private readonly resource: CollectionResult['resourceMetrics']['resource'],
  ) {}

  async collect(): Promise<CollectionResult> {
    const samples = await this.metrics.samples();
    const [from, to] = [hrTime(unixMsAtZero()), hrTime(unixMs())];
    const metrics = samples.map((known) => metricOf(known, from, to));
    const scope = { name: 'redis-to-keydb' };
    return { resourceMetrics: { resource: this.resource, scopeMetrics: [{ scope, metrics }] }, errors: [] };
  }
}

const hrTime = (ms: number): HrTime => [Math.floor(ms / 1000), Math.round((ms % 1000) * 1e6)];

function metricOf(known: MetricSamples, from: HrTime, to: HrTime): MetricData {
  const { name, help } = known;
  const type = String(known.type);
  const common = {
    descriptor: { name, description: help, unit: '', valueType: ValueType.DOUBLE },
    aggregationTemporality: AggregationTemporality.CUMULATIVE,
  };
  const times = { startTime: [...from] as [number, number], endTime: [...to] as [number, number] };
  if (type === 'histogram')
    return {
      ...common,
      dataPointType: DataPointType.HISTOGRAM,
      dataPoints: histograms(known).map((each) => ({ ...times, ...each })),
    };
  const dataPoints = known.values.map(({ labels, value }) => ({ ...times, attributes: texts(labels), value }));
  return type === 'counter'
    ? { ...common, dataPointType: DataPointType.SUM, isMonotonic: true, dataPoints }
    : { ...common, dataPointType: DataPointType.GAUGE, dataPoints };
}

/** Prometheus counts each bucket together with those below it, OpenTelemetry each bucket alone. */
function histograms({ name, values }: MetricSamples): Pick<DataPoint<Histogram>, 'attributes' | 'value'>[] {
  const bySeries = new Map<string, MetricValue<string>[]>();
  for (const each of values) {
    const { le: _, ...own } = each.labels;
    const series = JSON.stringify(own);
    bySeries.set(series, [...(bySeries.get(series) ?? []), each]);
  }
  return [...bySeries].map(([own, series]) => {
    const of = (suffix: string): MetricValue<string>[] =>
      series.filter((each) => (each as { readonly metricName?: string }).metricName === `${name}_${suffix}`);
    const buckets = of('bucket');
    const finite = buckets.filter(({ labels }) => labels.le !== '+Inf');
    return {
      attributes: JSON.parse(own) as Record<string, string>,
      value: {
        count: of('count')[0].value,
        sum: of('sum')[0].value,
        buckets: {
          boundaries: finite.map(({ labels }) => Number(labels.le)),
          counts: buckets.map(({ value }, at) => value - (buckets[at - 1]?.value ?? 0)),
        },
      },
    };
  });
}

const texts = (labels: Partial<Record<string, string | number>>): Record<string, string> =>
  Object.fromEntries(Object.entries(labels).map(([name, value]) => [name, String(value)]));
