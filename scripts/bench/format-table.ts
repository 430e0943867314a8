/** Lines of a Markdown table: the first column is left-aligned, numbers are right-aligned. */
export function formatTable(header: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const widths = header.map((_, column) => Math.max(3, ...[header, ...rows].map((line) => line[column]?.length ?? 0)));
  const render = (line: readonly string[]) =>
    `| ${widths.map((width, at) => (at === 0 ? (line[at] ?? '').padEnd(width) : (line[at] ?? '').padStart(width))).join(' | ')} |`;
  const rule = widths.map((width, at) => (at === 0 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`));
  return [render(header), render(rule), ...rows.map(render)];
}

/** Three significant digits, no exponent. */
export function figure(value: number | undefined): string {
  if (value === undefined || !Number.isFinite(value)) return '-';
  if (value >= 100) return value.toFixed(0);
  if (value >= 10) return value.toFixed(1);
  return value.toFixed(2);
}

/** For an even number of values, the mean of the two middle ones. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((left, right) => left - right);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? NaN) + upper) / 2;
}
