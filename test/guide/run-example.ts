import { spawn } from 'node:child_process';
import { join } from 'node:path';

export const EXAMPLES = join(import.meta.dirname, '..', '..', 'docs', 'guide', 'examples');
const PROGRAMS = { javascript: process.execPath, python: 'python3', curl: 'sh' } as const;

/** `javascript/chat.mjs`: folder and file below docs/guide/examples. */
export type ExampleName = `${keyof typeof PROGRAMS}/${string}`;

export interface RunningExample {
  /** What it has printed so far. */
  printed(): string;
  stop(): void;
  /** All that it printed. Rejects with its error output where it failed. */
  end: Promise<string>;
}

/** Starts an example as a reader of the guide would. */
export function startExample(
  name: ExampleName,
  env: Record<string, string>,
  { args = [], cwd }: { args?: string[]; cwd?: string } = {},
): RunningExample {
  const folder = name.slice(0, name.indexOf('/')) as keyof typeof PROGRAMS;
  const { PATH = '', HOME = '' } = process.env;
  const child = spawn(PROGRAMS[folder], [join(EXAMPLES, name), ...args], { cwd, env: { PATH, HOME, ...env } });
  let printed = '';
  let complaints = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (printed += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (complaints += text));
  return {
    printed: () => printed,
    stop: () => child.kill(),
    end: new Promise((resolve, reject) => {
      child.on('error', reject);
      child.on('close', (code, signal) => {
        if (code === 0 || signal !== null) resolve(printed);
        else reject(new Error(`${name} ended with ${code}: ${complaints}${printed}`));
      });
    }),
  };
}

export function runExample(...call: Parameters<typeof startExample>): Promise<string> {
  return startExample(...call).end;
}
