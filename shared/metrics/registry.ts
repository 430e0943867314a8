import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';

import { Counter, Gauge, Registry, collectDefaultMetrics } from 'prom-client';

import { BUILD } from '../config/load-config.ts';
import { bearerTokenOf, isSameSecret } from '../domain/api-key.ts';

/** From 5 ms to 10 minutes, the longest request. */
export const SECONDS_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600];

/** The page of `/metrics`; safe to call at any time. */
export interface MetricsPage {
  contentType: string;
  render(): Promise<string>;
}

/**
 * Time between two looks at the event loop's delay, which may show this much too high. Each look wakes the process: at
 * prom-client's 10 ms, looks took a quarter of an idle ingress's time.
 */
export const EVENT_LOOP_LOOK_MS = 50;

let nodeSeries: Registry | undefined;

/** The timer of Node's series never ends, so all services of a process share one. */
function ofNode(): Registry {
  if (nodeSeries === undefined) {
    nodeSeries = new Registry();
    collectDefaultMetrics({ register: nodeSeries, eventLoopMonitoringPrecision: EVENT_LOOP_LOOK_MS });
  }
  return nodeSeries;
}

/** With Node's own series; each series names its process. */
export function createRegistry(processName: string): Registry {
  const registry = Registry.merge([ofNode()]);
  registry.setDefaultLabels({ process: processName });
  new Gauge({
    name: 'parley_build_info',
    help: 'Always 1: version, commit and kind of this process.',
    labelNames: ['version', 'commit', 'kind'],
    registers: [registry],
  }).set({ ...BUILD, kind: processName }, 1);
  return registry;
}

export function countBreakerChanges(registers: Registry[]): Counter {
  return new Counter({
    name: 'parley_breaker_changes_total',
    help: 'Changes of circuit breakers that this process made; the sum over all processes counts each once.',
    labelNames: ['provider', 'from', 'to'],
    registers,
  });
}

/** A series that begins with its first event shows no increase, so an alert on the increase would miss it. */
export function fromZero<Label extends string>(
  counter: Counter<Label>,
  label: Label,
  values: readonly string[],
): Counter<Label> {
  for (const value of values) counter.inc({ [label]: value } as Record<Label, string>, 0);
  return counter;
}

export function metricsPage(registry: Registry): MetricsPage {
  return { contentType: registry.contentType, render: () => registry.metrics() };
}

export interface MetricsAccess {
  /** `METRICS_PUBLIC`. */
  isPublic: boolean;
  /** `METRICS_TOKEN`. */
  token?: string;
}

/** A proxy on this machine passes on what comes from others, and says so in one of these. */
const FORWARDED = ['forwarded', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto', 'x-real-ip', 'via'];

/** True for a program on this machine that asks for itself. */
function isFromHere({ socket, headers }: IncomingMessage): boolean {
  if (FORWARDED.some((name) => headers[name] !== undefined)) return false;
  const address = (socket.remoteAddress ?? '').replace(/^::ffff:/, '');
  return address === '::1' || (isIP(address) === 4 && address.startsWith('127.'));
}

/** Lets somebody read metrics and deep health without an administration token. */
export function mayReadMetrics(req: IncomingMessage, { isPublic, token }: MetricsAccess): boolean {
  if (isPublic || isFromHere(req)) return true;
  const given = bearerTokenOf(req.headers.authorization);
  return given !== undefined && token !== undefined && isSameSecret(given, token);
}

type SeriesRow = readonly [labels: Record<string, string>, value: number];

/** Reads the rows whenever its page is asked for; a series whose row is gone ends. */
export function gaugeRows(
  registers: Registry[],
  [name, help, ...labelNames]: [name: string, help: string, ...labelNames: string[]],
  rows: () => readonly SeriesRow[] | Promise<readonly SeriesRow[]>,
): void {
  new Gauge({
    name,
    help,
    labelNames,
    registers,
    async collect() {
      const read = await rows();
      this.reset();
      for (const [labels, value] of read) this.set(labels, value);
    },
  });
}

export interface CheckGauges {
  /** Checks of a process's stores and of itself, by name: `ok`, or what is wrong. */
  checks: () => Promise<Readonly<Record<string, string>>>;
}

/**
 * Tells operators which store is away: errors and queues that show nothing look the same for each. The page then takes
 * as long as the slowest check.
 */
export function gaugeChecks(registers: Registry[], { checks }: CheckGauges): void {
  const help = 'Checks by name (redis, mongo; work: a worker is given what waits): 1 passes, 0 fails.';
  gaugeRows(registers, ['parley_check_passes', help, 'check'], async () =>
    Object.entries(await checks()).map(([check, state]) => [{ check }, Number(state === 'ok')]),
  );
}
