/** Values as Grafana would write them, in the units that these dashboards use. Pure, for browsers have it, too. */

const SI = ['', ' K', ' Mil', ' Bil'];
const BINARY = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];

/** @param decimals default: as many as tell about three digits */
export function withUnit(value: number, unit: string, decimals?: number): string {
  if (!Number.isFinite(value)) return 'no value';
  switch (unit) {
    case 'none':
      return digits(value, decimals);
    case 'percent':
      return `${digits(value, decimals)} %`;
    case 'percentunit':
      return `${digits(value * 100, decimals)} %`;
    case 's':
      return seconds(value, decimals);
    case 'bytes':
      return scaled(value, 1024, BINARY, decimals);
    case 'Bps':
      return `${scaled(value, 1024, BINARY, decimals)}/s`;
    case 'ops':
      return `${scaled(value, 1000, SI, decimals)} ops/s`;
    case 'short':
      return scaled(value, 1000, SI, decimals);
    default:
      throw new Error(`the preview does not know the unit ${unit}: add it to preview/units.ts`);
  }
}

function seconds(value: number, decimals?: number): string {
  const size = Math.abs(value);
  if (size === 0) return '0 s';
  if (size < 1e-3) return `${digits(value * 1e6, decimals)} µs`;
  if (size < 1) return `${digits(value * 1e3, decimals)} ms`;
  if (size < 60) return `${digits(value, decimals)} s`;
  if (size < 3600) return `${digits(value / 60, decimals ?? 1)} min`;
  if (size < 86_400) return `${digits(value / 3600, decimals ?? 1)} h`;
  return `${digits(value / 86_400, decimals ?? 1)} d`;
}

function scaled(value: number, by: number, names: readonly string[], decimals?: number): string {
  let at = 0;
  let rest = value;
  for (; Math.abs(rest) >= by && at < names.length - 1; at++) rest /= by;
  const text = digits(rest, at === 0 && Number.isInteger(value) ? 0 : decimals);
  const name = names[at];
  return name === '' || name.startsWith(' ') ? `${text}${name}` : `${text} ${name}`;
}

const digits = (
  value: number,
  decimals = Math.abs(value) >= 100 || Number.isInteger(value) ? 0 : Math.abs(value) >= 10 ? 1 : 2,
): string => value.toFixed(decimals);
