import { formatTable } from '../../scripts/bench/format-table.ts';
import { hasPassed } from './run-experiment.ts';
import type { Outcome } from './run-experiment.ts';
import type { ClientRequest, Evidence } from './checker/evidence.ts';
import { isRefused, isTerminal } from './checker/requests-by-id.ts';

const INVARIANTS = ['I1', 'I2', 'I3', 'I4', 'I5', 'I6', 'I7', 'I8', 'I9'] as const;

const HEADER = [
  ...['experiment', 'own checks', 'requests', 'terminals', 'completed', 'failed', 'cancelled', 'refused', 'left'],
  ...['ledger', 'calls', ...INVARIANTS, 'seconds'],
];

interface Counts {
  requests: number;
  terminals: number;
  completed: number;
  failed: number;
  cancelled: number;
  refused: number;
  left: number;
  ledger: number;
  calls: number;
}

const endOf = ({ readings }: ClientRequest) => readings.find(isTerminal);

function countEvidence({ requests, ledger, provider }: Evidence): Counts {
  const accepted = requests.filter((request) => !isRefused(request));
  const reasons = accepted.map((request) => endOf(request)?.finishReason);
  return {
    requests: requests.length,
    terminals: accepted.filter((request) => endOf(request) !== undefined).length,
    completed: reasons.filter((reason) => reason === 'stop' || reason === 'length').length,
    failed: reasons.filter((reason) => reason === 'error').length,
    cancelled: ledger.filter(({ finishReason }) => finishReason === 'cancelled').length,
    refused: requests.length - accepted.length,
    left: requests.filter(({ readings }) => readings.at(-1)?.end === 'left').length,
    ledger: ledger.filter(({ type }) => type === 'usage').length,
    calls: [...provider.values()].reduce((sum, { calls }) => sum + calls, 0),
  };
}

function rowOf(outcome: Outcome): string[] {
  const { name, verdicts, evidence, seconds } = outcome;
  const own = verdicts.filter((verdict) => !INVARIANTS.some((invariant) => invariant === verdict.name));
  const ownPassed = own.filter(({ faults }) => faults.length === 0).length;
  const marks = INVARIANTS.map((invariant) => {
    const verdict = verdicts.find((candidate) => candidate.name === invariant);
    if (verdict === undefined) return '-';
    return verdict.faults.length === 0 ? 'ok' : 'FAIL';
  });
  const counts =
    evidence === undefined ? Array.from({ length: 9 }, () => '-') : Object.values(countEvidence(evidence)).map(String);
  return [name, `${ownPassed} of ${own.length}`, ...counts, ...marks, seconds.toFixed(0)];
}

/** One line an experiment and round, then what every one has measured. */
export function renderReport(outcomes: readonly Outcome[]): string {
  const table = formatTable(HEADER, outcomes.map(rowOf));
  const figures = outcomes.flatMap(({ name, figures }) => {
    const parts = Object.entries(figures).map(([what, figure]) => `${what} ${figure}`);
    return parts.length === 0 ? [] : [`${name}: ${parts.join(', ')}`];
  });
  const failed = outcomes.filter((outcome) => !hasPassed(outcome)).length;
  const end = failed === 0 ? `All ${outcomes.length} passed.` : `${failed} of ${outcomes.length} failed.`;
  return ['', ...table, '', ...figures, '', end].join('\n');
}
