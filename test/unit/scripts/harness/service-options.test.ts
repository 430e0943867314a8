import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { describe, expect, it } from '@jest/globals';

import { ROOT, SERVICE_ENV, SERVICE_OPTIONS } from '../../../../scripts/harness/program.ts';

const read = (file: string) => readFileSync(join(ROOT, file), 'utf8');

describe('options of Node.js for ingress and worker', () => {
  it('are the same in the image, by npm run start:api and where memory is measured', () => {
    const [, launched = ''] = /^const SERVICE_OPTIONS = \[(.*)\];$/m.exec(read('scripts/launch.mjs')) ?? [];
    const [, inImage] = /^ENV NODE_OPTIONS=(.*)$/m.exec(read('Dockerfile')) ?? [];

    expect(launched).toBe(SERVICE_OPTIONS.map((option) => `'${option}'`).join(', '));
    expect(inImage).toBe(SERVICE_OPTIONS.join(' '));
    for (const [name, value = ''] of Object.entries(SERVICE_ENV)) {
      expect(read('Dockerfile')).toContain(`\nENV ${name}=${value}\n`);
      expect(/^const SERVICE_ENV = \{(.*)\};$/m.exec(read('scripts/launch.mjs'))?.[1]).toContain(`${name}: '${value}'`);
    }
  });

  it.each(['docker-compose.yml', 'deploy/kubernetes/base/ingress.yaml', 'deploy/kubernetes/base/worker.yaml'])(
    'are left to the image by %s',
    (file) => {
      expect(read(file)).not.toContain('NODE_OPTIONS');
    },
  );

  it('are known to V8 where a process sets them itself: it passes over others without a word', () => {
    const set = [...read('shared/lifecycle/run-process.ts').matchAll(/setFlagsFromString\('--(?:no-)?([a-z-]+)/g)];
    const known = execFileSync(process.execPath, ['--v8-options'], { encoding: 'utf8' });

    expect(set.length).toBeGreaterThan(0);
    for (const [, name = ''] of set) expect(known).toContain(`  --${name} (`);
  });
});
