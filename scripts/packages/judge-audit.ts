/** The result of `npm audit`. `unanswered`: the registry was not reached, or provides no advisories. */
export type AuditVerdict =
  | { kind: 'clean' }
  | { kind: 'vulnerable'; packages: string[] }
  /** Known weaknesses of lower severity: reported, but no reason to fail. */
  | { kind: 'minor'; packages: string[] }
  | { kind: 'unanswered'; reason: string };

/** These fail the check. */
const SEVERE: ReadonlySet<unknown> = new Set(['high', 'critical']);

type Fields = Readonly<Record<string, unknown>>;
const isRecord = (value: unknown): value is Fields => typeof value === 'object' && value !== null;

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Reads the output of `npm audit --json`, whose exit code is the same for a weakness and for no answer. */
export function judgeAudit(output: string): AuditVerdict {
  const report = parse(output);
  if (!isRecord(report)) return { kind: 'unanswered', reason: 'npm audit gave no report' };
  const { vulnerabilities, message } = report;
  if (!isRecord(vulnerabilities))
    return { kind: 'unanswered', reason: typeof message === 'string' ? message : 'npm audit gave no report' };
  const found = Object.entries(vulnerabilities).map(([name, details]) => {
    const severity = isRecord(details) ? details['severity'] : undefined;
    return { text: `${name} (${String(severity)})`, isSevere: SEVERE.has(severity) };
  });
  const severe = found.filter(({ isSevere }) => isSevere);
  if (severe.length > 0) return { kind: 'vulnerable', packages: severe.map(({ text }) => text) };
  return found.length === 0 ? { kind: 'clean' } : { kind: 'minor', packages: found.map(({ text }) => text) };
}
