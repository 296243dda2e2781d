/** What a server's error reply says about the command. */

/**
 * Whether the command's data or arguments cause the error. Other errors come from the state of the server or the user.
 */
export function isAboutData(buffer: Buffer, start: number): boolean {
  const code = buffer.toString('latin1', start + 1, Math.min(start + 11, buffer.length)).split(' ', 1)[0];
  return code === 'ERR' || code === 'WRONGTYPE' || code === 'NOGROUP' || code === 'BUSYGROUP' || code === 'INVALIDOBJ';
}

/** Whether the server says that it does not know the script of an EVALSHA. */
export const isNoScript = (buffer: Buffer, start: number): boolean =>
  buffer.toString('latin1', start + 1, start + 10) === 'NOSCRIPT ';

/**
 * Whether a script that ended with this error may have written. Only errors that servers give before they run a script
 * exclude it.
 */
export function mayHaveWritten(buffer: Buffer, start: number, end: number): boolean {
  return !/^-(NOSCRIPT No matching|NOAUTH Auth|NOPERM .* run the '(eval|fcall)|LOADING |BUSY |ERR Error compiling|ERR (Number|Bad number) of keys|ERR Function not found|ERR Can not execute a script with write flag|ERR wrong number of arguments for '(eval|fcall)|ERR unknown command .(eval|fcall)|ERR value is not an integer or out of range\r\n$)/i.test(
    buffer.toString('latin1', start, Math.min(end, start + 96)),
  );
}
