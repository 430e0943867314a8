import { execFile } from 'node:child_process';
import { join } from 'node:path';

import { expect, it } from '@jest/globals';

import { ROOT } from '../../../scripts/harness/program.ts';

interface Ended {
  code: number;
  stdout: string;
  stderr: string;
}

const LAUNCH = join(ROOT, 'scripts', 'launch.mjs');

function run(file: string, ...args: string[]): Promise<Ended> {
  return new Promise((resolve) => {
    execFile(process.execPath, [file, ...args], { cwd: ROOT, timeout: 60_000 }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code ?? -1), stdout, stderr });
    });
  });
}

/** Each with an argument that it does not know. */
const TASKS: [task: string, wrong: string][] = [
  ['start', '--nonsense'],
  ['start:api', '--nonsense'],
  ['provider:simulated', '--nonsense'],
  ['build', '--nonsense'],
  ['test:fault', 'nonsense'],
  ['test:upgrade', 'U9'],
  ['check', '--nonsense'],
  ['reconcile', '--nonsense'],
  ['drive', '--nonsense'],
  ['citations', 'nonsense'],
  ['sbom', '--nonsense'],
  ['audit', 'nonsense'],
];
const STACK = /^\s+at |node:internal/m;

// A benchmark builds what it measures before it reads the rest.
it.each([...TASKS.map(([task]) => task), 'bench', 'test:restore'])(
  'npm run %s -- --help prints its usage and does nothing',
  async (task) => {
    const { code, stdout, stderr } = await run(LAUNCH, task, '--help');
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(/^npm (run|start)/);
  },
);

it.each(TASKS)('npm run %s says what is wrong with %s, and how it is called', async (task, wrong) => {
  const { code, stdout, stderr } = await run(LAUNCH, task, wrong);
  expect(code).toBeGreaterThan(0);
  expect(stderr).toContain(wrong);
  expect(`${stdout}${stderr}`).not.toMatch(STACK);
  // The settings of npm start are checked together with its arguments.
  if (task !== 'start') expect([code, stderr]).toEqual([2, expect.stringMatching(/\n\nnpm run /)]);
});
