/**
 * Why a payload was refused:
 * TRUNCATED, CORRUPT, CHECKSUM – the bytes are damaged; VERSION – written by a server this code does not know;
 * TYPE – a type of value it does not know; MODULE – a value that only its module can read;
 * TARGET – the value is sound, but the target version has no form for it.
 */
export const TRANSCODE_ERRORS = ['TRUNCATED', 'CORRUPT', 'CHECKSUM', 'VERSION', 'TYPE', 'MODULE', 'TARGET'] as const;
export type TranscodeErrorCode = (typeof TRANSCODE_ERRORS)[number];

/** A payload that cannot be translated. It does not know its key: the one who asked for the payload names it. */
export class TranscodeError extends Error {
  override readonly name = 'TranscodeError';

  constructor(
    readonly code: TranscodeErrorCode,
    message: string,
    /** The byte of the payload at which it showed; for compressed parts the byte at which the part begins. */
    readonly offset: number,
    /** The kind of value and its encoding, such as `hash (listpack)`, as soon as it is known. */
    readonly type?: string,
  ) {
    // The code is what troubleshooting.md lists.
    super(`${type ? `${type}: ` : ''}${message}, at byte ${offset} of the DUMP payload (${code})`);
  }
}
