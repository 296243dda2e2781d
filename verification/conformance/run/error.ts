/** Why a suite could not be run; `exitCode` follows the kit's rule (2 usage, 3 could not tell). */
export class ConformanceError extends Error {
  constructor(
    readonly code: 'USAGE' | 'MISSING_PROGRAM' | 'NOT_READY',
    message: string,
  ) {
    super(message);
  }

  get exitCode(): 2 | 3 {
    return this.code === 'USAGE' ? 2 : 3;
  }
}
