/** An error without a stack, as those of the system: they come from no line of code. */
export function systemError(message: string): Error {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  const error = new Error(message);
  Error.stackTraceLimit = stackTraceLimit;
  return error;
}
