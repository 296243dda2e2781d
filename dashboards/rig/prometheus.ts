/** Questions to a Prometheus, by its HTTP API. */

export interface Series {
  readonly labels: Readonly<Record<string, string>>;
  /** Seconds since 1970, and the value there; not a number is NaN. */
  readonly points: readonly (readonly [at: number, value: number])[];
}

interface Sampled {
  readonly metric: Record<string, string>;
  readonly value?: [number, string];
  readonly values?: [number, string][];
}

interface Answer<T> {
  readonly status: 'success' | 'error';
  readonly error?: string;
  readonly data: T;
}

export class Prometheus {
  constructor(readonly url: string) {}

  /** @param at seconds since 1970 */
  async instant(query: string, at?: number): Promise<readonly Series[]> {
    return (
      await this.#get<{ result: Sampled[] }>('query', { query, ...(at !== undefined && { time: `${at}` }) })
    ).result.map(seriesOf);
  }

  async range(query: string, from: number, to: number, step: number): Promise<readonly Series[]> {
    return (
      await this.#get<{ result: Sampled[] }>('query_range', { query, start: `${from}`, end: `${to}`, step: `${step}` })
    ).result.map(seriesOf);
  }

  /** The values of a label on the series that the selector matches. */
  labelValues(label: string, selector: string): Promise<readonly string[]> {
    return this.#get<string[]>(`label/${label}/values`, { 'match[]': selector });
  }

  /** @throws {Error} where nobody answers, or with what Prometheus says of the query */
  async #get<T>(path: string, parameters: Readonly<Record<string, string>>): Promise<T> {
    const response = await fetch(`${this.url}/api/v1/${path}?${new URLSearchParams(parameters)}`).catch(
      (error: Error) => {
        throw new Error(
          `no Prometheus answers at ${this.url} (${(error.cause as Error | undefined)?.message ?? error.message})`,
        );
      },
    );
    if (!/json/.test(response.headers.get('content-type') ?? ''))
      throw new Error(
        `no Prometheus answers at ${this.url}, or it is not ready (${response.status} ${response.statusText})`,
      );
    const answer = (await response.json()) as Answer<T>;
    if (answer.status !== 'success') throw new Error(`${parameters.query ?? path}: ${answer.error}`);
    return answer.data;
  }
}

const seriesOf = ({ metric, value, values }: Sampled): Series => ({
  labels: metric,
  points: (values ?? [value!]).map(([at, text]) => [at, Number(text)]),
});
