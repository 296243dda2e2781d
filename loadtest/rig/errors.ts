/** Why a load test could not do its work; `exitCode` follows the kit's rule (2 usage, 3 inconclusive). */
export class LoadtestError extends Error {
  constructor(
    readonly code: 'MISSING_PROGRAM' | 'NOT_READY' | 'DIED' | 'STATUS' | 'USAGE' | 'MEASUREMENT',
    message: string,
  ) {
    super(message);
  }

  get exitCode(): 2 | 3 {
    return this.code === 'USAGE' ? 2 : 3;
  }
}
