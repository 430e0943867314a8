import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { ROOT } from '../../../scripts/harness/program.ts';

const run = promisify(execFile);
const pathOf = (tool: string) => join(ROOT, '.data/tools', tool);

/** Whether `.ci/tools` has been run on this machine, and got the tool. */
export const hasTool = (tool: string): boolean => existsSync(pathOf(tool));

/** Rejects with what the tool says, if it fails. */
export async function runTool(tool: string, ...args: string[]): Promise<string> {
  return (await run(pathOf(tool), args, { cwd: ROOT, maxBuffer: 2 ** 24 })).stdout;
}
