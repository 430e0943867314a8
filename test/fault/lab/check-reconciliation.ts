import { execFile } from 'node:child_process';

import type { Environment } from '../../../scripts/embedded/find-program.ts';
import { ofTheMachine, QUIET, ROOT } from '../../../scripts/harness/program.ts';
import type { Evidence } from '../checker/evidence.ts';

const TIMEOUT_MS = 120_000;

/** Runs `npm run reconcile -- --check` against the stores of `env`. */
export function checkReconciliation(env: Environment, signal: AbortSignal): Promise<Evidence['reconciliation']> {
  const options = { cwd: ROOT, env: { ...ofTheMachine(), ...env }, timeout: TIMEOUT_MS, signal };
  return new Promise((resolve) => {
    const child = execFile(
      process.execPath,
      [QUIET, 'scripts/reconcile.ts', '--check'],
      options,
      (_error, stdout, stderr) => {
        resolve({ exitCode: child.exitCode ?? 1, output: `${stdout}${stderr}`.trim() });
      },
    );
  });
}
