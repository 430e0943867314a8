import type { LogFields, Logger } from '../../shared/logging/logger.ts';

interface LogLine {
  level: 'error' | 'warn' | 'info' | 'debug';
  message: string;
  fields: LogFields;
}

/** Keeps log lines, so that a test can say what must or must not be logged. */
export interface RecordingLog extends Logger {
  lines: LogLine[];
  errors(): string[];
}

export function createRecordingLog(): RecordingLog {
  const lines: LogLine[] = [];
  const record =
    (level: LogLine['level']) =>
    (message: string, fields: LogFields = {}) => {
      lines.push({ level, message, fields });
    };
  return {
    lines,
    error: record('error'),
    warn: record('warn'),
    info: record('info'),
    debug: record('debug'),
    watchStore: () => () => undefined,
    errors: () =>
      lines
        .filter((line) => line.level === 'error')
        .map(({ message, fields: { error, bug = error } }) =>
          bug instanceof Error ? `${message} ${bug.message}` : message,
        ),
  };
}
