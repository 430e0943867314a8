import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

import { expect, it } from '@jest/globals';
import { parse } from 'yaml';

import { ROOT } from '../../../scripts/harness/program.ts';
import { hasTool, runTool } from './tools.ts';

const WORKFLOWS = '.github/workflows';
const read = (...path: string[]) => readFileSync(join(ROOT, ...path), 'utf8');

(hasTool('actionlint') ? it : it.skip)('the workflows pass actionlint', async () => {
  expect(await runTool('actionlint', '-shellcheck=', '-pyflakes=')).toBe('');
});

it.each(readdirSync(join(ROOT, WORKFLOWS)))('%s says what it may do, how long, and keeps no credentials', (file) => {
  const { permissions, jobs } = parse(read(WORKFLOWS, file)) as { permissions?: object; jobs: Record<string, object> };

  expect(permissions).toBeDefined();
  for (const job of Object.values(jobs)) expect(job).toHaveProperty('timeout-minutes');
  expect(read(WORKFLOWS, file)).toContain('persist-credentials: false');
});

it('CI runs what everybody runs', () => {
  expect(read(WORKFLOWS, 'ci.yml')).toContain('run: .ci/run\n');
});

it('chart and package have one version', () => {
  const { version } = JSON.parse(read('package.json')) as { version: string };

  expect(parse(read('deploy/helm/parley/Chart.yaml'))).toMatchObject({ version, appVersion: version });
  expect(read('SECURITY.md')).toContain(`Supported versions: ${version.replace(/\.\d+$/, '.x')} and`);
});
