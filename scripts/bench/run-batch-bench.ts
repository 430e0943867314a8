import { createBatchClient, endedOf } from '../harness/batch-client.ts';
import type { BatchClient } from '../harness/batch-client.ts';
import { superviseProvider } from '../harness/supervise-provider.ts';
import type { SupervisedTask } from '../harness/run-supervised.ts';
import { median } from './cases.ts';
import { figure, formatTable } from './format-table.ts';
import { startLoadGenerator } from './load.ts';
import type { LoadGenerator } from './load.ts';
import type { LoadResult } from './load-spec.ts';
import type { BenchOptions } from './options.ts';
import { nodeArgsFor } from './run-bench.ts';
import type { ProfileFile } from './run-bench.ts';
import { specFor } from './run-case.ts';
import { startParley } from './systems.ts';
import type { Parley } from './systems.ts';

const LINES = 10_000;
/** The goal: a batch must not raise the p95 of callers that wait by more than this factor. */
const RATIO_MAX = 1.3;
/** Like a small model on a fast day; without any wait, the machine would be compared, not the service. */
const PROVIDER_MODEL = 'sim?first_token_ms=150&chunks=20&chunk_ms=5';
const WARM_SECONDS = 2;

interface Round {
  clients: number;
  alone: LoadResult;
  beside: LoadResult;
  /** Batch lines that ended during the measurement, per second. */
  linesPerSecond: number;
}

interface Lab {
  parley: Parley;
  generator: LoadGenerator;
  batches: BatchClient;
  seconds: number;
}

async function runLoad({ parley, generator }: Lab, clients: number, seconds: number): Promise<LoadResult> {
  const result = await generator.run(specFor(parley, { mode: 'complete', clients }, { seconds }));
  const [error] = Object.keys(result.errors);
  if (error !== undefined) throw new Error(`A request was not answered: ${error}.`);
  return result;
}

async function measure(lab: Lab, clients: number): Promise<Round> {
  const { batches, seconds } = lab;
  await runLoad(lab, clients, WARM_SECONDS);
  const alone = await runLoad(lab, clients, seconds);
  const { id } = await batches.submit(LINES);
  await batches.until(id, (state) => endedOf(state) > 0);
  await runLoad(lab, clients, WARM_SECONDS);
  const before = endedOf(await batches.find(id));
  const beside = await runLoad(lab, clients, seconds);
  const after = endedOf(await batches.find(id));
  await batches.cancel(id);
  const ended = await batches.until(id, ({ status }) => status === 'cancelled');
  if (endedOf(ended) !== LINES) throw new Error('A line of a batch has no result.');
  return { clients, alone, beside, linesPerSecond: (after - before) / seconds };
}

/** How fast a batch is with the service to itself; lines per second. */
async function measureAlone({ batches }: Lab): Promise<number> {
  const startedAt = performance.now();
  const { id } = await batches.submit(LINES / 5);
  const { request_counts: counts } = await batches.until(id, ({ status }) => status === 'completed');
  if (counts.failed > 0) throw new Error(`${counts.failed} lines of a batch failed.`);
  return counts.total / ((performance.now() - startedAt) / 1000);
}

function render(rounds: readonly Round[], alonePerSecond: number): { text: string; isFine: boolean } {
  const byClients = [...Map.groupBy(rounds, ({ clients }) => clients)];
  const ratioOf = (group: readonly Round[], of: (result: LoadResult) => number) =>
    median(group.map(({ alone, beside }) => of(beside) / of(alone)));
  const rows = byClients.map(([clients, group]) => [
    String(clients),
    figure(median(group.map(({ alone }) => alone.requestsPerSecond))),
    figure(median(group.map(({ alone }) => alone.latencyMs.p95))),
    figure(median(group.map(({ beside }) => beside.requestsPerSecond))),
    figure(median(group.map(({ beside }) => beside.latencyMs.p95))),
    `x${figure(ratioOf(group, ({ latencyMs }) => latencyMs.p95))}`,
    `x${figure(ratioOf(group, ({ latencyMs }) => latencyMs.p50))}`,
    figure(median(group.map(({ linesPerSecond }) => linesPerSecond))),
  ]);
  const header = [
    ...['clients', 'req/s alone', 'p95 ms alone', 'req/s beside', 'p95 ms beside', 'p95 ratio', 'p50 ratio'],
    'lines/s beside',
  ];
  const isFine = byClients.every(([, group]) => ratioOf(group, ({ latencyMs }) => latencyMs.p95) <= RATIO_MAX);
  const lines = [
    '',
    `Complete answers beside a batch of ${LINES} lines, one ingress and one worker, provider ${PROVIDER_MODEL};`,
    'ratios are medians of the rounds.',
    '',
    ...formatTable(header, rows),
    '',
    `A batch alone: ${figure(alonePerSecond)} lines a second, from POST to completed.`,
    `${isFine ? 'PASS' : 'FAIL'}  p95 beside the batch is at most ${RATIO_MAX} times p95 without it`,
  ];
  return { text: lines.join('\n'), isFine };
}

/** How much a batch slows down the requests of waiting callers. Returns the exit code. */
export async function runBatchBench(
  { supervisor, dataDir }: SupervisedTask,
  benchOptions: BenchOptions,
  print: (line: string) => void,
  profileFile?: ProfileFile,
): Promise<number> {
  const { clients, rounds: count, seconds } = benchOptions;
  const log = (line: string) => {
    print(`bench | ${line}`);
  };
  const provider = await superviseProvider(supervisor, dataDir);
  const options = { supervisor, dataDir, providerUrl: provider.url, providerModel: PROVIDER_MODEL, log };
  const parley = await startParley(options, nodeArgsFor(benchOptions, profileFile));
  const lab: Lab = {
    parley,
    generator: startLoadGenerator(supervisor),
    batches: createBatchClient({ url: () => parley.url, key: parley.key, signal: supervisor.signal }),
    seconds,
  };
  profileFile?.onWarm();
  const alonePerSecond = await measureAlone(lab);
  log(`a batch alone: ${figure(alonePerSecond)} lines a second`);
  const rounds: Round[] = [];
  for (let round = 1; round <= count; round += 1) {
    for (const each of clients) {
      const measured = await measure(lab, each);
      rounds.push(measured);
      const { alone, beside, linesPerSecond } = measured;
      log(
        `round ${round}, ${each} clients: p95 ${figure(alone.latencyMs.p95)} ms alone, ` +
          `${figure(beside.latencyMs.p95)} ms beside ${figure(linesPerSecond)} lines a second`,
      );
    }
  }
  const { text, isFine } = render(rounds, alonePerSecond);
  print(text);
  return isFine ? 0 : 1;
}
