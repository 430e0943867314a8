import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';

/** How many last lines of a program are kept for the message that tells why it failed. */
const KEPT_LINES = 12;

/** Reads what a child process prints, line by line, and keeps the last of it. */
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

/** `what`, and below it the program's last lines, indented. */
export function withLastLines(what: string, lines: readonly string[]): string {
  if (lines.length === 0) return `${what} It printed nothing.`;
  return `${what} Its last lines:\n${lines.map((line) => `    ${line}`).join('\n')}`;
}
