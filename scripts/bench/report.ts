import type { CaseSummary } from './cases.ts';
import { figure, formatTable } from './format-table.ts';
import type { Mode } from './load-spec.ts';
import type { RedisCost } from './run-case.ts';

/** What a report states besides the figures. */
export interface Setting {
  rounds: number;
  seconds: number;
  mongo: string;
  nodeVersion: string;
  machine: string;
}

export interface Checks {
  /** By error; empty if every request was answered. */
  errors: Record<string, number>;
  answered: number;
  ledgerEntries: number;
  /** Text chunks in one stream, for every system that is compared. */
  chunks: Record<string, number>;
  /** Whether all systems sent the same text, complete and streamed. */
  sameText: boolean;
}

const PROCESSES = ['ingress', 'worker', 'Redis', 'MongoDB'] as const;
const TITLES: Record<Mode, string> = {
  complete: 'Complete answers (POST /chat)',
  stream: 'Streams of 40 chunks (POST /chat/stream)',
};
const COMMANDS_SHOWN = 8;
/** Above this share, the machine was busy with something else, which distorts the figures. */
const OTHERS_SHARE_MAX = 0.1;

export function renderReport(
  setting: Setting,
  summaries: readonly CaseSummary[],
  redisCosts: readonly RedisCost[],
  checks: Checks,
): string {
  const modes = [...new Set(summaries.map(({ mode }) => mode))];
  const sections = modes.map((mode) => {
    const ofMode = summaries.filter((summary) => summary.mode === mode);
    return [TITLES[mode], '', ...speedTable(ofMode)];
  });
  return [
    ['', ...introduction(setting)],
    ...sections,
    ['Peak memory (MB, resident) and share of all cores', '', ...machineTable(summaries)],
    redisLines(redisCosts),
    [...warnings(summaries), ...checkLines(checks)],
  ]
    .map((lines) => lines.join('\n'))
    .join('\n\n');
}

function introduction({ rounds, seconds, mongo, nodeVersion, machine }: Setting): string[] {
  return [
    `Medians of ${rounds} round${rounds === 1 ? '' : 's'}, each run ${seconds} s after a warm-up, one ingress and one worker.`,
    `MongoDB: ${mongo}. Redis: one of its own for each system, AOF everysec. ${nodeVersion}, ${machine}.`,
    'The floor: the least Express + BullMQ + pub/sub program that answers the same requests, with none of the features.',
    'CPU-ms are per answered request, until it is in the ledger; neither the provider nor the load generator is in the total.',
    'Parley logs as by default: one line a request, into a file.',
  ];
}

function speedTable(summaries: readonly CaseSummary[]): string[] {
  const isStream = summaries[0]?.mode === 'stream';
  const processes = PROCESSES.filter((name) => summaries.some(({ cpuMsPerRequest }) => name in cpuMsPerRequest));
  const header = [
    ...['clients', 'system', 'req/s', 'p50 ms', 'p99 ms'],
    ...(isStream ? ['1st chunk p50 ms'] : []),
    ...processes.map((name) => `${name} CPU-ms`),
    'total CPU-ms',
    'errors',
  ];
  const rowOf = (summary: CaseSummary) => [
    String(summary.clients),
    summary.system,
    figure(summary.requestsPerSecond),
    figure(summary.latencyP50Ms),
    figure(summary.latencyP99Ms),
    ...(isStream ? [figure(summary.firstChunkP50Ms)] : []),
    ...processes.map((name) => figure(summary.cpuMsPerRequest[name])),
    figure(summary.pipelineCpuMsPerRequest),
    String(Object.values(summary.errors).reduce((sum, count) => sum + count, 0)),
  ];
  const clients = [...new Set(summaries.map((summary) => summary.clients))];
  const rows = clients.flatMap((count) => {
    const floor = summaries.find((summary) => summary.clients === count && summary.system === 'floor');
    const parley = summaries.find((summary) => summary.clients === count && summary.system === 'parley');
    const pair = [floor, parley].flatMap((summary) => (summary === undefined ? [] : [rowOf(summary)]));
    return floor === undefined || parley === undefined ? pair : [...pair, ratioRow(floor, parley, isStream, processes)];
  });
  return formatTable(header, rows);
}

function ratioRow(
  floor: CaseSummary,
  parley: CaseSummary,
  isStream: boolean,
  processes: readonly (typeof PROCESSES)[number][],
): string[] {
  const ratio = (of: (summary: CaseSummary) => number | undefined) =>
    figure((of(parley) ?? NaN) / (of(floor) ?? NaN)).replace(/^(?=\d)/, 'x');
  return [
    '',
    'parley/floor',
    ratio((summary) => summary.requestsPerSecond),
    ratio((summary) => summary.latencyP50Ms),
    ratio((summary) => summary.latencyP99Ms),
    ...(isStream ? [ratio((summary) => summary.firstChunkP50Ms)] : []),
    ...processes.map((name) => ratio((summary) => summary.cpuMsPerRequest[name])),
    ratio((summary) => summary.pipelineCpuMsPerRequest),
    '',
  ];
}

function machineTable(summaries: readonly CaseSummary[]): string[] {
  const percent = (share: number) => `${(share * 100).toFixed(0)} %`;
  const header = [
    ...['mode', 'system', 'clients'],
    ...PROCESSES.map((name) => `${name} MB`),
    ...['pipeline', 'provider', 'generator', 'others'],
  ];
  const rows = summaries.map(({ mode, system, clients, peakMb, cpuShare }) => [
    mode,
    system,
    String(clients),
    ...PROCESSES.map((name) => (peakMb[name] === undefined ? '-' : peakMb[name].toFixed(0))),
    ...[cpuShare.pipeline, cpuShare.provider, cpuShare.generator, cpuShare.others].map(percent),
  ]);
  return formatTable(header, rows);
}

function redisLines(costs: readonly RedisCost[]): string[] {
  const header = ['mode', 'system', 'bytes left', 'commands', 'the most frequent ones'];
  const rows = costs.map(({ mode, system, bytesPerRequest, commandsPerRequest }) => {
    const commands = Object.entries(commandsPerRequest);
    const all = commands.reduce((sum, [, count]) => sum + count, 0);
    const frequent = commands.slice(0, COMMANDS_SHOWN).map(([name, count]) => `${name} ${figure(count)}`);
    return [mode, system, bytesPerRequest.toFixed(0), figure(all), frequent.join(', ')];
  });
  return [
    'Redis for one request: bytes left right after it (streams are kept 15 minutes, entries of limits a minute), commands',
    '(those inside scripts included)',
    '',
    ...formatTable(header, rows, [0, 1, header.length - 1]),
  ];
}

function warnings(summaries: readonly CaseSummary[]): string[] {
  const worst = Math.max(...summaries.map(({ cpuShare }) => cpuShare.others));
  if (worst <= OTHERS_SHARE_MAX) return [];
  return [
    `Warning: programs that do not belong to the benchmark took up to ${(worst * 100).toFixed(0)} % of all cores.`,
  ];
}

export function isFine({ errors, answered, ledgerEntries, sameText }: Checks): boolean {
  return Object.keys(errors).length === 0 && answered === ledgerEntries && sameText;
}

function checkLines({ errors, answered, ledgerEntries, chunks, sameText }: Checks): string[] {
  const counts = Object.entries(chunks).map(([system, count]) => `${count} chunks of text from ${system}`);
  const kinds = Object.entries(errors).map(([what, count]) => `${count} times "${what}"`);
  const verdict = (passed: boolean) => (passed ? 'PASS' : 'FAIL');
  return [
    `${verdict(sameText)}  the same text comes complete and streamed (a stream: ${counts.join(', ')})`,
    `${verdict(kinds.length === 0)}  every request was answered${kinds.length === 0 ? '' : `: ${kinds.join(', ')}`}`,
    `${verdict(answered === ledgerEntries)}  Parley answered ${answered} requests and its ledger has ${ledgerEntries} entries`,
  ];
}
