import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';

import { axisTime, compact, localTime } from './format.ts';

export interface Series {
  label: string;
  /** One value for each moment; null: nothing was measured. */
  values: readonly (number | null)[];
}

/** Groups beyond these are one. */
const SERIES_MAX = 5;

/** Buckets of usage as series, the largest first. */
export function toSeries<Result>(
  buckets: readonly { start_time: number; results: readonly Result[] }[],
  nameOf: (result: Result) => string,
  valueOf: (result: Result) => number,
): { moments: number[]; series: Series[] } {
  const totals = new Map<string, number>();
  for (const { results } of buckets)
    for (const result of results) totals.set(nameOf(result), (totals.get(nameOf(result)) ?? 0) + valueOf(result));
  const names = [...totals].sort(([, a], [, b]) => b - a).map(([name]) => name);
  const shown = names.slice(0, SERIES_MAX);
  const labels = names.length > SERIES_MAX ? [...shown, 'others'] : shown;
  const sum = (results: readonly Result[], label: string) =>
    results
      .filter((result) => (label === 'others' ? !shown.includes(nameOf(result)) : nameOf(result) === label))
      .reduce((total, result) => total + valueOf(result), 0);
  return {
    moments: buckets.map(({ start_time: start }) => start),
    series: (labels.length === 0 ? ['All'] : labels).map((label) => ({
      label,
      values: buckets.map(({ results }) => sum(results, label)),
    })),
  };
}

/** Steps of the axis of values, all whole: a tick of 2.5 requests would be shown as 3. */
const STEPS = Array.from({ length: 12 }, (_, power) => [1, 2, 5].map((step) => step * 10 ** power)).flat();

/** Colours of series in order; a canvas needs them resolved, because they depend on the theme. */
const COLOURS = ['--accent', '--money', '--success', '--waiting', '--failed', '--line-strong'];

function resolve(name: string, near: HTMLElement): string {
  near.style.color = `var(${name})`;
  const { color } = getComputedStyle(near);
  near.style.color = '';
  return color;
}

/** Bars stand on each other: the first series is the sum of all, drawn behind the rest. */
function stack(series: readonly Series[]): (number | null)[][] {
  return series.map((_, at) =>
    (series[0]?.values ?? []).map((__, column) =>
      series.slice(at).reduce((sum, { values }) => sum + (values[column] ?? 0), 0),
    ),
  );
}

/** Series over time, as bars on each other or as lines. `moments` are Unix seconds. */
export function Chart({
  label,
  moments,
  series,
  kind = 'bars',
  format = compact,
}: {
  /** Says what the chart shows to those who do not see it. */
  label: string;
  moments: readonly number[];
  series: readonly Series[];
  kind?: 'bars' | 'lines';
  format?: (value: number) => string;
}) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    let plot: uPlot | undefined;
    const draw = () => {
      plot?.destroy();
      const width = element.clientWidth;
      const [muted, line] = [resolve('--muted', element), resolve('--line', element)];
      const axis = { stroke: muted, grid: { stroke: line, width: 1 }, ticks: { show: false }, font: '12px system-ui' };
      const step = kind === 'bars' ? (moments[1] ?? 0) - (moments[0] ?? 0) : 0;
      const paths = kind === 'bars' ? uPlot.paths.bars?.({ size: [0.7, 48], radius: 0.1 }) : uPlot.paths.spline?.();
      plot = new uPlot(
        {
          width,
          height: 216,
          cursor: { points: { show: kind === 'lines' }, y: false },
          // Half a bucket on both sides, so that no bar is cut.
          scales: {
            x: { range: (_self, low, high) => [low - step / 2, high + step / 2] },
            y: { range: (_self, _low, high) => [0, high > 0 ? high * 1.08 : 1] },
          },
          axes: [
            { ...axis, values: (_self, ticks, _axis, _space, step) => ticks.map((tick) => axisTime(tick, step)) },
            { ...axis, size: 56, incrs: STEPS, values: (_self, ticks) => ticks.map(format) },
          ],
          series: [
            { label: 'Time', value: (_self, at: number | null) => (at === null ? '–' : localTime(at)) },
            ...series.map(({ label: name, values }, at) => {
              const colour = resolve(COLOURS[at % COLOURS.length] ?? '--accent', element);
              return {
                label: name,
                stroke: colour,
                ...(kind === 'bars' ? { fill: colour, width: 0 } : { width: 2 }),
                ...(paths === undefined ? {} : { paths }),
                points: { show: false },
                // Stacked values are sums; people want the part.
                value: (_self: uPlot, _value: number, __: number, column: number | null) =>
                  column === null ? '–' : format(values[column] ?? 0),
              };
            }),
          ],
        },
        [[...moments], ...(kind === 'bars' ? stack(series) : series.map(({ values }) => [...values]))],
        element,
      );
    };
    draw();
    const observer = new ResizeObserver(() => {
      plot?.setSize({ width: element.clientWidth, height: 216 });
    });
    observer.observe(element);
    const scheme = matchMedia('(prefers-color-scheme: dark)');
    scheme.addEventListener('change', draw);
    addEventListener('themechange', draw);
    return () => {
      observer.disconnect();
      scheme.removeEventListener('change', draw);
      removeEventListener('themechange', draw);
      plot?.destroy();
    };
  }, [moments, series, kind, format]);
  // Series without a moment are still being fetched.
  return (
    <figure class="chart" role="img" aria-label={label} aria-busy={series.length > 0 && moments.length === 0}>
      <div ref={box} />
    </figure>
  );
}
