import { InvalidArgumentError } from 'commander';

export type Row = Readonly<Record<string, unknown>>;

/** Names of fields that hold Unix seconds. */
const isTime = (name: string) => /_(at|time)$/.test(name);

/** A value for people: times in their own zone, lists joined, a dash for null. */
function cellOf(name: string, value: unknown): string {
  if (value === null || value === undefined) return '-';
  if (typeof value === 'number' && isTime(name)) return new Date(value * 1_000).toLocaleString('sv');
  if (Array.isArray(value)) return value.map((each) => cellOf('', each)).join(', ');
  // Control characters of a tenant's text must not reach the terminal.
  return typeof value === 'string' ? value.replaceAll(/\p{Cc}/gu, ' ') : JSON.stringify(value);
}

/** Rows as a table with the columns of the first one, numbers to the right. */
export function tableOf(rows: readonly Row[], columns = Object.keys(rows[0] ?? {})): string {
  if (rows.length === 0) return 'None.';
  const cells = [columns, ...rows.map((row) => columns.map((name) => cellOf(name, row[name])))];
  const widths = columns.map((_, column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)));
  const isNumber = columns.map((name) => !isTime(name) && rows.every((row) => typeof row[name] === 'number'));
  return cells
    .map((row) =>
      row
        .map((cell, column) =>
          isNumber[column] ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0),
        )
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

/** One thing, a field a line. */
export function recordOf(row: Row): string {
  const width = Math.max(...Object.keys(row).map((name) => name.length));
  return Object.entries(row)
    .map(([name, value]) => `${name.padEnd(width)}  ${cellOf(name, value)}`)
    .join('\n');
}

export const wholeNumber = (text: string) => {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('It must be a whole number.');
  return Number(text);
};

/** The API checks the fields. */
export const jsonObject = (text: string): object => {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value;
  } catch {
    // It is refused below.
  }
  throw new InvalidArgumentError('It must be a JSON object.');
};
