/** In the browser: pauses the job that runs, lets it go on, and limits it. The report has none of it. */
import { Component, createContext } from 'preact';
import type { JSX } from 'preact';
import type { JobSnapshot } from '../telemetry/snapshot.js';

/** What the page asks of a job that runs, as the admin API takes it. */
export interface WantedChange {
  readonly state?: 'pause' | 'resume';
  /** Null ends the limit. */
  readonly limits?: { readonly keysPerSecond?: number | null; readonly maxP99Ms?: number | null };
}

/** Resolves with why it was refused; null where it was done. */
export type ChangeJob = (shard: string, change: WantedChange) => Promise<string | null>;

/** Null where nothing can be changed, as in the report. */
export const JobChanger = createContext<ChangeJob | null>(null);

interface Props {
  readonly shard: string;
  readonly job: JobSnapshot;
  readonly change: ChangeJob;
}

interface State {
  readonly refused: string | null;
}

/** What is typed stays while the page is drawn again. */
export class JobControls extends Component<Props, State> {
  override state: State = { refused: null };

  override render({ job: { paused, limits } }: Props, { refused }: State): JSX.Element {
    return (
      <form class="controls" onSubmit={(event) => this.#limit(event)}>
        <button type="button" onClick={() => this.#ask({ state: paused === null ? 'pause' : 'resume' })}>
          {paused === null ? 'Pause' : 'Let it go on'}
        </button>
        <label>
          at most <input name="keysPerSecond" inputMode="decimal" placeholder={shown(limits.keysPerSecond)} /> keys/s
        </label>
        <label>
          at most <input name="maxP99Ms" inputMode="decimal" placeholder={shown(limits.maxP99Ms)} /> ms of the
          authority's p99
        </label>
        <button type="submit">Change the limits</button>
        {refused !== null && (
          <span class="no" role="alert">
            Not changed: {refused}
          </span>
        )}
      </form>
    );
  }

  #limit(event: SubmitEvent): void {
    event.preventDefault();
    const form = event.target as HTMLFormElement;
    const given = [...new FormData(form)].map(([name, text]) => [name, String(text).trim()] as const);
    const limits: Record<string, number | null> = {};
    for (const [name, text] of given) {
      if (text === '') continue;
      const limit = text === 'none' ? null : Number(text);
      if (limit !== null && !(limit > 0)) return this.setState({ refused: `"${text}" is no number above 0, nor none` });
      limits[name] = limit;
    }
    if (Object.keys(limits).length === 0) return this.setState({ refused: 'give a number, or none for no limit' });
    this.#ask({ limits }, () => form.reset());
  }

  #ask(change: WantedChange, done: () => void = () => undefined): void {
    const { shard, change: ask } = this.props;
    void ask(shard, change).then((refused) => {
      this.setState({ refused });
      if (refused === null) done();
    });
  }
}

const shown = (limit: number | null | undefined): string => (typeof limit === 'number' ? String(limit) : 'any');
