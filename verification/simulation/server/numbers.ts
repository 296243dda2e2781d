/** Numbers as servers read and write them: 64-bit integers, doubles as `%.17g`, the 80-bit floats of INCRBYFLOAT. */
import { NOT_FLOAT, NOT_INTEGER, type Protocol, bulk, Refusal } from './reply.js';

const INTEGER = /^(0|-?[1-9][0-9]{0,18})$/;
export const [MIN_INT64, MAX_INT64] = [-(2n ** 63n), 2n ** 63n - 1n];

/** The integer in the text, exact; null where a server refuses it. */
export function int64Of(text: string): bigint | null {
  if (!INTEGER.test(text)) return null;
  const value = BigInt(text);
  return value < MIN_INT64 || value > MAX_INT64 ? null : value;
}

/** The integer in the text, rounded to a double where it has more than 53 bits; NaN where a server refuses it. */
export function integerOf(text: string): number {
  if (text.length < 16) return INTEGER.test(text) ? Number(text) : NaN;
  const value = int64Of(text);
  return value === null ? NaN : Number(value);
}

export function needInteger(text: string, refusal: Refusal = NOT_INTEGER): number {
  const value = integerOf(text);
  if (Number.isNaN(value)) throw refusal;
  return value;
}

/** An integer that is not negative. */
export function needPositive(
  text: string,
  refusal: Refusal = new Refusal('ERR value is out of range, must be positive'),
): number {
  const value = needInteger(text, refusal);
  if (value < 0) throw refusal;
  return value;
}

/** An integer of 1 or more, with one refusal for all others. */
export function needCount(text: string, refusal: Refusal): number {
  const value = needInteger(text, refusal);
  if (value < 1) throw refusal;
  return value;
}

/** A time to wait, in milliseconds. @throws {Refusal} */
export function waitOf(text: string, rounds: 'up' | 'down'): number {
  const seconds = needDouble(text, new Refusal('ERR timeout is not a float or out of range'));
  const ms = rounds === 'up' ? Math.ceil(seconds * 1000) : Math.trunc(seconds * 1000);
  if (ms < 0) throw new Refusal('ERR timeout is negative');
  return ms;
}

const FLOAT = /^[+-]?(?:[0-9]+\.?[0-9]*(?:e[+-]?[0-9]+)?|\.[0-9]+(?:e[+-]?[0-9]+)?|inf|infinity)$/i;

/** As `strtod` reads the whole text, without hexadecimal forms; NaN where a server refuses it. */
export function doubleOf(text: string): number {
  if (!FLOAT.test(text)) return NaN;
  const value = Number(text);
  if (!Number.isNaN(value)) return value;
  return text.startsWith('-') ? -Infinity : Infinity;
}

export function needDouble(text: string, refusal: Refusal = NOT_FLOAT): number {
  const value = doubleOf(text);
  if (Number.isNaN(value)) throw refusal;
  return value;
}

/** `%.17g`. */
export function formatDouble(value: number): string {
  if (value === Infinity) return 'inf';
  if (value === -Infinity) return '-inf';
  if (Number.isInteger(value) && Math.abs(value) < 1e17) return Object.is(value, -0) ? '-0' : String(value);
  const [mantissa, exponentText] = value.toExponential(16).split('e');
  const exponent = Number(exponentText);
  const trim = (digits: string): string => (digits.includes('.') ? digits.replace(/\.?0+$/, '') : digits);
  if (exponent < -4 || exponent >= 17) {
    const size = String(Math.abs(exponent)).padStart(2, '0');
    return `${trim(mantissa)}e${exponent < 0 ? '-' : '+'}${size}`;
  }
  return trim(value.toFixed(Math.max(0, 16 - exponent)));
}

export const double = (value: number, protocol: Protocol): string =>
  protocol === 2 ? bulk(formatDouble(value)) : `,${formatDouble(value)}\r\n`;

/** A float of 80 bits as x86 has it: `mantissa` of at most 64 bits times 2 to the power of `exponent`. */
interface LongDouble {
  readonly mantissa: bigint;
  readonly exponent: number;
}

const MANTISSA_BITS = 64;
const bitsOf = (value: bigint): number => (value === 0n ? 0 : value.toString(2).length);
const abs = (value: bigint): bigint => (value < 0n ? -value : value);

/** The nearest float to `numerator / denominator`, ties to even. */
function round(numerator: bigint, denominator: bigint): LongDouble {
  if (numerator === 0n) return { mantissa: 0n, exponent: 0 };
  const size = abs(numerator);
  let exponent = bitsOf(size) - bitsOf(denominator) - MANTISSA_BITS;
  const scaled = (): [bigint, bigint] =>
    exponent >= 0 ? [size, denominator << BigInt(exponent)] : [size << BigInt(-exponent), denominator];
  let [over, under] = scaled();
  if (over / under >= 1n << BigInt(MANTISSA_BITS)) {
    exponent++;
    [over, under] = scaled();
  }
  const rest = (over % under) * 2n;
  let mantissa = over / under;
  if (rest > under || (rest === under && mantissa % 2n === 1n)) mantissa++;
  return { mantissa: numerator < 0n ? -mantissa : mantissa, exponent };
}

/** @throws {Refusal} where the text is no finite number */
function longDoubleOf(text: string, refusal: Refusal): LongDouble {
  const found = /^([+-]?)([0-9]*)\.?([0-9]*)(?:e([+-]?[0-9]+))?$/i.exec(text);
  if (found === null || !FLOAT.test(text)) throw refusal;
  const [, sign, whole, fraction, power = '0'] = found;
  const digits = BigInt(`${whole}${fraction}` || '0') * (sign === '-' ? -1n : 1n);
  const scale = Number(power) - fraction.length;
  if (Math.abs(scale) > 4000) throw refusal;
  return scale >= 0 ? round(digits * 10n ** BigInt(scale), 1n) : round(digits, 10n ** BigInt(-scale));
}

const DECIMALS = 17;

/** `%.17Lf` without the zeros at its end. */
function formatLongDouble({ mantissa, exponent }: LongDouble): string {
  const scaled = abs(mantissa) * 10n ** BigInt(DECIMALS);
  let units: bigint;
  if (exponent >= 0) {
    units = scaled << BigInt(exponent);
  } else {
    const under = 1n << BigInt(-exponent);
    units = scaled / under;
    const rest = (scaled % under) * 2n;
    if (rest > under || (rest === under && units % 2n === 1n)) units++;
  }
  const digits = units.toString().padStart(DECIMALS + 1, '0');
  const fraction = digits.slice(-DECIMALS).replace(/0+$/, '');
  const text = digits.slice(0, -DECIMALS) + (fraction === '' ? '' : `.${fraction}`);
  return mantissa < 0n && text !== '0' ? `-${text}` : text;
}

/**
 * What INCRBYFLOAT and HINCRBYFLOAT make of two texts.
 * @param refused where one of them is no finite number
 */
export function addFloats(left: string, right: string, refused: Refusal, refusedRight = refused): string {
  const by = longDoubleOf(right, refusedRight);
  const from = longDoubleOf(left, refused);
  const exponent = Math.min(from.exponent, by.exponent);
  const sum = (from.mantissa << BigInt(from.exponent - exponent)) + (by.mantissa << BigInt(by.exponent - exponent));
  return formatLongDouble(exponent >= 0 ? round(sum << BigInt(exponent), 1n) : round(sum, 1n << BigInt(-exponent)));
}
