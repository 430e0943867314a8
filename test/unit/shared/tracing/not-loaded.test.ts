import { execFileSync } from 'node:child_process';
import { join } from 'node:path';

import { describe, expect, it } from '@jest/globals';

const ROOT = join(import.meta.dirname, '..', '..', '..', '..');

/**
 * Loads both processes, opens tracing with `config`, and prints what was loaded of OpenTelemetry beside its API, which
 * prom-client has for itself.
 */
const PROGRAM = `
import { registerHooks } from 'node:module';
const loaded = [];
registerHooks({ load(url, context, next) {
  if (/@opentelemetry\\/(?!api\\/)/.test(url)) loaded.push(url);
  return next(url, context);
} });
await import('./api/compose.ts');
await import('./workers/compose.ts');
const { openTracing } = await import('./shared/tracing/open-tracing.ts');
const tracing = await openTracing(JSON.parse(process.argv[1]), 'api', { defer() {} }, {});
console.log(JSON.stringify({ isOn: tracing !== undefined, loaded: loaded.length }));
`;

function load(config: object): { isOn: boolean; loaded: number } {
  const flags = ['--disable-warning=ExperimentalWarning', '--input-type=module', '-e', PROGRAM];
  const printed = execFileSync(process.execPath, [...flags, JSON.stringify(config)], { cwd: ROOT, encoding: 'utf8' });
  return JSON.parse(printed) as { isOn: boolean; loaded: number };
}

describe('OTEL_EXPORTER_OTLP_ENDPOINT', () => {
  it("is not set: a process loads nothing of OpenTelemetry's SDK", () => {
    expect(load({ tracing: {} })).toEqual({ isOn: false, loaded: 0 });
  });

  it('is set: a process loads it', () => {
    const tracing = { endpoint: 'http://127.0.0.1:4318', sampler: 'always_on', samplerArg: 1 };
    const { isOn, loaded } = load({ tracing });
    expect(isOn).toBe(true);
    expect(loaded).toBeGreaterThan(10);
  });
});
