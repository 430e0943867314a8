import { mkdtempSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect, it } from '@jest/globals';
import { parser } from '@prometheus-io/lezer-promql';
import { parse } from 'yaml';

import { PAYMENT_MISMATCHES } from '../../../shared/domain/payments.ts';
import { createIngressMetrics } from '../../../shared/metrics/ingress-series.ts';
import { createWorkerMetrics } from '../../../shared/metrics/worker-series.ts';
import { ROOT } from '../../../scripts/harness/program.ts';
import { hasTool, runTool } from './tools.ts';

const read = (...path: string[]) => readFileSync(join(ROOT, ...path), 'utf8');

interface Expression {
  where: string;
  promql: string;
}

interface Rules {
  groups: { rules: { alert: string; expr: string; annotations: { summary: string; runbook_url: string } }[] }[];
}

const alerts = (parse(read('deploy/prometheus/rules.yaml')) as Rules).groups.flatMap(({ rules }) => rules);

interface Dashboard {
  title: string;
  panels: { type: string; title: string; links?: { url: string }[]; targets?: { expr: string }[] }[];
  templating: { list: { name: string }[] };
}

const dashboards = readdirSync(join(ROOT, 'deploy/grafana'))
  .filter((name) => name.endsWith('.json'))
  .map((name) => JSON.parse(read('deploy/grafana', name)) as Dashboard);

/** The queries of KEDA's triggers stand in the manifests. */
const scaling = [...read('deploy/kubernetes/keda/scaling.yaml').matchAll(/query: (?:>-\n((?: {10}.*\n)+)|(.*)\n)/g)];

const EXPRESSIONS: Expression[] = [
  ...alerts.map(({ alert, expr }) => ({ where: alert, promql: expr })),
  ...dashboards.flatMap(({ title, panels }) =>
    panels.flatMap((panel) =>
      (panel.targets ?? []).map(({ expr }) => ({
        where: `${title}: ${panel.title}`,
        promql: expr.replaceAll('$__rate_interval', '1m'),
      })),
    ),
  ),
  ...scaling.map(([, long, short], index) => ({ where: `scaling ${index}`, promql: long ?? short ?? '' })),
];

/** The names of the metrics that an expression reads. Throws where it is no PromQL. */
function metricsOf({ where, promql }: Expression): string[] {
  const names: string[] = [];
  parser.parse(promql).iterate({
    enter({ name, type, from, to, node }) {
      if (type.isError) throw new Error(`${where} is no PromQL at character ${from}: ${promql}`);
      if (name === 'Identifier' && node.parent?.name === 'VectorSelector') names.push(promql.slice(from, to));
    },
  });
  return names;
}

/** What processes publish before anything has happened. */
async function renderPages(): Promise<string> {
  const checks = () => Promise.resolve({ redis: 'ok' });
  const pages = [
    createIngressMetrics({
      openReaders: () => 0,
      redisMemoryRatio: () => 0,
      checks,
      queues: () => Promise.resolve([]),
      workerConcurrency: 1,
    }).page,
    createWorkerMetrics({ unreadableProviders: () => 0, capacities: () => [], checks }).page,
  ];
  return (await Promise.all(pages.map((page) => page.render()))).join('\n');
}

async function publishedMetrics(): Promise<Set<string>> {
  // `up` is Prometheus's own.
  const names = new Set(['up']);
  for (const [, name = '', type] of (await renderPages()).matchAll(/^# TYPE (\S+) (\S+)$/gm)) {
    names.add(name);
    if (type === 'histogram') for (const part of ['bucket', 'sum', 'count']) names.add(`${name}_${part}`);
  }
  return names;
}

it('alerts, dashboards and scaling read metrics that a process publishes', async () => {
  const published = await publishedMetrics();

  expect(EXPRESSIONS.length).toBeGreaterThan(50);
  const unknown = EXPRESSIONS.flatMap((expression) =>
    metricsOf(expression)
      .filter((name) => !published.has(name))
      .map((name) => `${expression.where}: ${name}`),
  );
  expect(unknown).toEqual([]);
});

it('every metric of ours is shown by a dashboard or watched by an alert', async () => {
  const shown = new Set(EXPRESSIONS.flatMap(metricsOf).map((name) => name.replace(/_bucket$/, '')));
  const ours = [...(await publishedMetrics())].filter((name) => /^parley_(?!.*_(?:bucket|sum|count)$)/.test(name));

  expect(ours.filter((name) => !shown.has(name))).toEqual([]);
});

it('a counter whose increase is an alert is published before its first event, which would show no increase', async () => {
  const text = await renderPages();
  const counters = alerts.flatMap(({ expr }) => [...expr.matchAll(/increase\((\w+)\[/g)].map(([, name = '']) => name));

  expect(counters).toContain('parley_payment_mismatches_total');
  expect(counters.filter((name) => !new RegExp(`^${name}\\{.*\\} 0$`, 'm').test(text))).toEqual([]);
  for (const reason of PAYMENT_MISMATCHES)
    expect(text).toContain(`parley_payment_mismatches_total{reason="${reason}",`);
});

const anchors = new Set(
  [...read('docs/guide/runbook.md').matchAll(/^### (\w+)$/gm)].map(
    ([, alert = '']) => `runbook.md#${alert.toLowerCase()}`,
  ),
);

it('every alert leads to its section of the runbook', () => {
  const wrong = alerts.filter(
    ({ alert, annotations: { runbook_url: url } }) =>
      !url.endsWith(`/runbook.md#${alert.toLowerCase()}`) || !anchors.has(url.slice(url.indexOf('runbook.md'))),
  );

  expect(wrong).toEqual([]);
});

it.each(dashboards)(
  '$title chooses a namespace and instances, begins with single figures and leads to the runbook',
  (each) => {
    const links = each.panels.flatMap(({ links: own = [] }) => own.map(({ url }) => url));

    expect(each.templating.list.map(({ name }) => name)).toEqual(['datasource', 'namespace', 'instance', 'runbook']);
    expect(each.panels[0]?.type).toBe('stat');
    expect(links.length).toBeGreaterThan(10);
    expect(links.filter((url) => !anchors.has(url.replace('${runbook}', 'runbook.md')))).toEqual([]);
    for (const { expr } of each.panels.flatMap(({ targets = [] }) => targets))
      expect(expr).toContain('namespace=~"$namespace"');
  },
);

(hasTool('promtool') ? it : it.skip)('alerts fire when rules.test.yaml says so', async () => {
  expect(await runTool('promtool', 'test', 'rules', 'deploy/prometheus/rules.test.yaml')).toContain('SUCCESS');
});

(hasTool('promtool') ? it : it.skip).each([
  [
    'a place for everything that runs or waits',
    { wanted: 15, active: 1000, waiting: 5000, ceiling: 9000, inFlight: 1000 },
    15,
  ],
  [
    'nobody for what waits for a full provider',
    { wanted: 15, active: 1000, waiting: 5000, ceiling: 1000, inFlight: 1000 },
    2.5,
  ],
  [
    'nobody less for what waits in a paused queue',
    { wanted: 4, active: 1000, waiting: 0, paused: 9000, ceiling: 1000, inFlight: 1000 },
    4,
  ],
  ['as many as the ingress says while no provider was called', { wanted: 2, active: 0, waiting: 700 }, 2],
])('KEDA is told to have %s', async (_name, figures: Partial<Record<string, number>>, workers) => {
  const series = (name: string, labels: string, figure: string) =>
    figures[figure] === undefined
      ? []
      : ['a', 'b'].map((instance) => ({
          series: `parley_${name}{namespace="parley",instance="${instance}"${labels}}`,
          values: `${figures[figure]}x2`,
        }));
  const tests = {
    interval: '1m',
    input_series: [
      ...series('workers_wanted', '', 'wanted'),
      ...series('queue_active', ',queue="interactive",shard="0"', 'active'),
      ...series('queue_waiting', ',queue="interactive",shard="0"', 'waiting'),
      ...series('queue_waiting', ',queue="batch",shard="0"', 'paused'),
      { series: 'parley_queue_paused{namespace="parley",queue="batch",shard="0"}', values: '1x2' },
      ...series('provider_ceiling', ',provider="p",model="m",source="found"', 'ceiling'),
      ...series('provider_in_flight', ',provider="p",model="m"', 'inFlight'),
    ],
    promql_expr_test: [
      { expr: EXPRESSIONS.at(-2)?.promql, eval_time: '1m', exp_samples: [{ labels: '{}', value: workers }] },
    ],
  };
  const file = join(mkdtempSync(join(tmpdir(), 'parley-scaling-')), 'test.yaml');
  writeFileSync(file, JSON.stringify({ tests: [tests] }));

  expect(await runTool('promtool', 'test', 'rules', file)).toContain('SUCCESS');
});

it('an expression that is no PromQL is found', () => {
  expect(() => metricsOf({ where: 'here', promql: 'sum(rate(parley_requests_total[5m])' })).toThrow(
    'here is no PromQL',
  );
});
