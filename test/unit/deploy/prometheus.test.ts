import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

import { expect, it } from '@jest/globals';
import { parser } from '@prometheus-io/lezer-promql';
import { parse } from 'yaml';

import { PAYMENT_MISMATCHES } from '../../../shared/domain/payment-mismatch.ts';
import { createIngressMetrics } from '../../../shared/metrics/ingress-series.ts';
import { createWorkerMetrics } from '../../../shared/metrics/worker-series.ts';
import { ROOT } from '../../../scripts/harness/program.ts';

const read = (...path: string[]) => readFileSync(join(ROOT, ...path), 'utf8');

interface Expression {
  where: string;
  promql: string;
}

interface Rules {
  groups: { rules: { alert: string; expr: string; annotations: { summary: string } }[] }[];
}

const alerts = (parse(read('deploy/prometheus/rules.yaml')) as Rules).groups.flatMap(({ rules }) => rules);

interface Dashboard {
  title: string;
  panels: { title: string; targets?: { expr: string }[] }[];
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
    createWorkerMetrics({ unreadableProviders: () => 0, checks }).page,
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

it('the runbook has a section for every alert', () => {
  const runbook = read('docs/guide/runbook.md');

  expect(alerts.map(({ alert }) => alert).filter((alert) => !runbook.includes(`### ${alert}\n`))).toEqual([]);
});

it('an expression that is no PromQL is found', () => {
  expect(() => metricsOf({ where: 'here', promql: 'sum(rate(parley_requests_total[5m])' })).toThrow(
    'here is no PromQL',
  );
});
