import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';

/** How many of a program's last lines are kept to explain why it failed. */
const KEPT_LINES = 12;

/** Reads what a child process prints, line by line, and keeps the last lines. */
export function collectLines(streams: readonly Readable[], onLine: (line: string) => void = () => undefined) {
  const last: string[] = [];
  for (const stream of streams) {
    createInterface({ input: stream, crlfDelay: Infinity }).on('line', (line) => {
      if (line.trim() === '') return;
      last.push(line);
      if (last.length > KEPT_LINES) last.shift();
      onLine(line);
    });
  }
  return last;
}

/** `what`, followed by the program's last lines, indented. */
export function withLastLines(what: string, lines: readonly string[]): string {
  if (lines.length === 0) return `${what} It printed nothing.`;
  return `${what} Its last lines:\n${lines.map((line) => `    ${line}`).join('\n')}`;
}
