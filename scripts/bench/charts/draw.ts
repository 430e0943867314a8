import * as echarts from 'echarts';
import type { EChartsOption } from 'echarts';

/** A contender has the same colour in every chart. */
const COLOURS: Record<string, string> = {
  parley: '#2f6fde',
  'parley, 2 workers': '#1b4aa0',
  portkey: '#e07b39',
  litellm: '#8a63d2',
  'pass-through': '#9aa3ad',
  floor: '#5b6570',
};
const OTHER_COLOURS = ['#3c9d6b', '#c2527f', '#b0912f'];
const TEXT = '#24292f';
const FAINT = '#57606a';
const WIDTH = 880;
/** Text widths are estimated for this font, because there is no screen to measure on. */
const FONT = 'Arial, Helvetica, sans-serif';

function colourOf(name: string, index: number): string {
  return COLOURS[name] ?? OTHER_COLOURS[index % OTHER_COLOURS.length] ?? TEXT;
}

interface Chart {
  title: string;
  subtitle: string;
  height: number;
  option: EChartsOption;
}

/** Markup that only a page with a pointer needs; its names keep counting from chart to chart. */
const FOR_POINTERS = /\s*<style\s*>[\s\S]*?<\/style>| class="[^"]*"| ecmeta_\w+="[^"]*"/g;
/** All other ids are numbered per chart. */
const CHART_IN_IDS = /zr\d+-/g;

/** The same data give the same bytes. */
function render({ title, subtitle, height, option }: Chart): string {
  const chart = echarts.init(null, null, { renderer: 'svg', ssr: true, width: WIDTH, height });
  chart.setOption({
    animation: false,
    backgroundColor: '#ffffff',
    textStyle: { fontFamily: FONT, color: TEXT },
    title: {
      text: title,
      subtext: subtitle,
      left: 16,
      top: 12,
      textStyle: { fontSize: 16, color: TEXT },
      subtextStyle: { fontSize: 12, color: FAINT },
    },
    ...option,
  });
  const svg = chart.renderToSVGString();
  chart.dispose();
  return `${svg.replaceAll(FOR_POINTERS, '').replaceAll(CHART_IN_IDS, 'zr-')}\n`;
}

export interface Bars {
  title: string;
  subtitle: string;
  categories: readonly string[];
  /** One value per category; null if it was not measured. */
  series: readonly { name: string; values: readonly (number | null)[] }[];
  /** A logarithmic scale, for values that are far apart. */
  isLogarithmic?: boolean;
}

/** Where bars begin on a logarithmic scale, which has no zero. */
function powerBelow(series: Bars['series']): number {
  const values = series.flatMap((one) => one.values.flatMap((value) => (value !== null && value > 0 ? value : [])));
  return 10 ** Math.floor(Math.log10(Math.min(...values)));
}

const BAR_HEIGHT = 17;
const HEADER_HEIGHT = 100;
const FOOTER_HEIGHT = 30;

/** Horizontal bars: one group per category, one bar per series. */
export function drawBars({ title, subtitle, categories, series, isLogarithmic = false }: Bars): string {
  const height = HEADER_HEIGHT + FOOTER_HEIGHT + categories.length * (series.length + 1) * BAR_HEIGHT;
  return render({
    title,
    subtitle,
    height,
    option: {
      legend: { top: 62, left: 16, itemWidth: 14, itemHeight: 10, itemGap: 24, data: series.map(({ name }) => name) },
      grid: { left: 250, right: 70, top: HEADER_HEIGHT, bottom: FOOTER_HEIGHT },
      xAxis: {
        ...(isLogarithmic ? { type: 'log', startValue: powerBelow(series) } : { type: 'value' }),
        splitLine: { lineStyle: { color: '#e7eaee' } },
      },
      yAxis: {
        type: 'category',
        inverse: true,
        data: [...categories],
        axisTick: { show: false },
        axisLabel: { width: 195, overflow: 'break', color: TEXT },
      },
      series: series.map(({ name, values }, index) => ({
        type: 'bar',
        name,
        data: [...values],
        barGap: '10%',
        barCategoryGap: '30%',
        itemStyle: { color: colourOf(name, index) },
        silent: true,
        label: { show: true, position: 'right', color: FAINT, fontSize: 11 },
      })),
    },
  });
}

export interface Grid {
  title: string;
  subtitle: string;
  columns: readonly string[];
  rows: readonly { name: string; cells: readonly string[] }[];
  /** The colour of each word that a cell may contain. */
  colours: Record<string, string>;
}

const ROW_HEIGHT = 38;
const GRID_HEADER = 100;

/** A table of words, coloured by meaning. */
export function drawGrid({ title, subtitle, columns, rows, colours }: Grid): string {
  const words = Object.keys(colours);
  const cells = rows.flatMap(({ cells: words_ }, y) => words_.map((word, x) => [x, y, word] as const));
  return render({
    title,
    subtitle,
    height: GRID_HEADER + rows.length * ROW_HEIGHT + 16,
    option: {
      grid: { left: 330, right: 16, top: GRID_HEADER, bottom: 16 },
      xAxis: {
        type: 'category',
        position: 'top',
        data: [...columns],
        axisTick: { show: false },
        axisLine: { show: false },
      },
      yAxis: {
        type: 'category',
        inverse: true,
        data: rows.map(({ name }) => name),
        axisTick: { show: false },
        axisLine: { show: false },
        axisLabel: { width: 265, overflow: 'break', color: TEXT },
      },
      series: [
        {
          type: 'heatmap',
          silent: true,
          data: cells.map(([x, y, word]) => ({
            value: [x, y, words.indexOf(word)],
            itemStyle: { color: colours[word] ?? '#ffffff', borderColor: '#ffffff', borderWidth: 2 },
            label: { show: true, formatter: word, color: TEXT, fontSize: 12 },
          })),
        },
      ],
      visualMap: { show: false, min: 0, max: words.length, inRange: { color: ['#ffffff'] } },
    },
  });
}
