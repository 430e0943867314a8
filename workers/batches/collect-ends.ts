import { encodeEntry, eventsOf, FAULT } from '../../shared/contracts/events.ts';
import type { Terminal } from '../../shared/contracts/events.ts';
import type { EndedAnswer } from '../../shared/contracts/jobs.ts';
import type { AnswerCache } from '../../shared/requests/answers.ts';
import type { BatchQueue } from '../../shared/requests/queue-store.ts';
import { ANSWERS_BYTES, bytesOfEntries } from '../../shared/mongo/batches/batch-lines.ts';
import type { LineRetry } from '../../shared/mongo/batches/batch-lines.ts';
import type { BatchWorkRepository, LineEnd } from '../../shared/mongo/batches/batch-work-repository.ts';
import { endOf, outageOf } from '../../shared/domain/request-times.ts';
import type { Logger } from '../../shared/logging/logger.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import { newId } from '../../shared/lifecycle/ids.ts';
import { answeredAt, nextRetry } from './line-state.ts';
import type { FailedTries } from './line-state.ts';
import { advance } from './open-batch.ts';
import type { OpenBatch, SentLine } from './open-batch.ts';
import type { ProviderWatch } from './provider-watch.ts';
import type { ReadLines } from './send-slice.ts';

export interface CollectEndsDeps {
  work: Pick<BatchWorkRepository, 'end' | 'renumber' | 'count'>;
  queue: Pick<BatchQueue, 'states'>;
  answers: Pick<AnswerCache, 'read' | 'shorten'>;
  lines: Pick<ReadLines, 'again'>;
  failedTries: Pick<FailedTries, 'note'>;
  watch: Pick<ProviderWatch, 'recordEnd' | 'hasAnsweredSince'>;
  /** Redis keeps an answer this long once it is in the batch's results; milliseconds. */
  retentionMs: number;
  clock: Clock;
  random: () => number;
  log: Logger;
}

/** Answers that are in memory at once, fewer where they are large, and how many of them are read at once. */
const GROUP = 50;
const READ_AT_ONCE = 5;
/** A batch that waits for tokens tries again this soon after lines of it have ended. */
const SOON_MS = 250;

const tokensOf = ({ usage: { promptTokens, completionTokens } }: Terminal) => promptTokens + completionTokens;

interface EndedTry {
  line: SentLine;
  answer: Pick<EndedAnswer, 'fields' | 'entries'>;
  end: ReturnType<typeof endOf>;
}

/**
 * True for a request that timed out in the queue, before any provider call: the queue was paused, or slower than lines
 * came. That says nothing about the line or its provider.
 */
function hasOnlyWaited({ terminal }: EndedTry['end']): boolean {
  return terminal?.error?.code === 'timeout' && (terminal.trace?.attempts ?? []).length === 0;
}

function learnTokens({ tokens }: OpenBatch, tries: readonly EndedTry[]): void {
  for (const { line, end } of tries)
    if (end.terminal !== undefined && end.hasText && line.promptTokens !== undefined)
      tokens.note(tokensOf(end.terminal) - line.promptTokens);
}

/** Replaces an answer that cannot be decoded. Stored as it is, it would make all of the batch's results unreadable. */
const UNREADABLE: EndedAnswer['entries'] = [{ lastSeq: eventsOf(FAULT), payload: encodeEntry([], FAULT) }];

function toEnd({ line: { index, requestId }, answer, end }: EndedTry, now: number): LineEnd {
  const code = outageOf(end);
  const outage = code === undefined ? undefined : { code, at: now };
  return { index, requestId, status: answer.fields['status'] === 'completed' ? 'completed' : 'failed', answer, outage };
}

async function endAll({ work }: CollectEndsDeps, batch: OpenBatch, ends: readonly LineEnd[]): Promise<void> {
  const { tenantId, _id: batchId } = batch.row;
  const written = await work.end(tenantId, batchId, ends);
  advance(batch, { kind: 'gone', indexes: ends.map(({ index }) => index) });
  for (const { status } of ends) batch.counts[status] += 1;
  // The others had ended before, by an earlier try of this call or by the deletion of their entity, and are counted already.
  if (written < ends.length) batch.counts = await work.count(tenantId, batchId);
}

function recordFailed({ failedTries }: CollectEndsDeps, { row }: OpenBatch, tries: readonly EndedTry[]): void {
  for (const { line, answer, end } of tries)
    if (answer.fields['status'] !== 'completed' && !end.hasText) failedTries.note(row, line.requestId);
}

async function shortenAll(deps: CollectEndsDeps, shard: number, tries: readonly EndedTry[]): Promise<void> {
  const { answers, retentionMs } = deps;
  await Promise.all(
    tries.map(({ line: { requestId }, answer: { fields } }) =>
      answers.shorten(shard, { requestId, fields }, retentionMs),
    ),
  );
}

async function readEnd(deps: CollectEndsDeps, shard: number, line: SentLine): Promise<EndedTry | undefined> {
  const { answers, log } = deps;
  const ended = await answers.read(shard, line.requestId);
  if (ended === undefined) return undefined;
  const { fields, entries } = ended;
  try {
    return { line, answer: { fields, entries }, end: endOf(ended) };
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    log.error('The answer of a line cannot be read; the line fails.', { requestId: line.requestId, error });
    const answer = { fields: { ...fields, status: 'failed' }, entries: UNREADABLE };
    return { line, answer, end: endOf(answer) };
  }
}

/** Takes lines from `left` until their answers are a group. */
async function readGroup(deps: CollectEndsDeps, shard: number, left: SentLine[]): Promise<EndedTry[]> {
  const tries: EndedTry[] = [];
  let bytes = 0;
  while (bytes < ANSWERS_BYTES && left.length > 0 && tries.length < GROUP) {
    const read = await Promise.all(left.splice(0, READ_AT_ONCE).map((line) => readEnd(deps, shard, line)));
    tries.push(...read.filter((one) => one !== undefined));
    bytes = bytesOfEntries(tries.flatMap(({ answer }) => answer.entries));
  }
  return tries;
}

function retryOf(
  { watch, clock, random }: CollectEndsDeps,
  { line, answer: { fields }, end }: EndedTry,
): LineRetry | undefined {
  const trace = end.terminal?.trace;
  const isNotJson = trace?.reason === 'not_json';
  if (outageOf(end) === undefined && !isNotJson) return undefined;
  const since = line.retry?.failedAt ?? Number(fields['acceptedAt']);
  const hasOthers = answeredAt(trace) !== undefined || watch.hasAnsweredSince(fields['tier'] ?? '', since);
  const isOwnFault = isNotJson || (hasOthers && !hasOnlyWaited(end));
  return nextRetry(line.retry, { isOwnFault, now: clock.now(), random: random() });
}

async function putBack(deps: CollectEndsDeps, batch: OpenBatch, { line }: EndedTry, retry: LineRetry): Promise<void> {
  const { work, lines } = deps;
  const { tenantId, _id: batchId } = batch.row;
  const next = { requestId: newId('req'), retry: { ...retry, requestId: line.requestId } };
  const isOwn = await work.renumber(tenantId, batchId, line, next);
  if (!isOwn) return lines.again(batch, line.index);
  advance(batch, { kind: 'gone', indexes: [line.index] });
  advance(batch, { kind: 'waits', lines: [{ index: line.index, retry: next.retry }] });
}

/** While MongoDB is away the same ends are read again each round. Counted each time, a few would look like an outage. */
function createRecordOnce({ watch }: CollectEndsDeps): (tries: readonly EndedTry[]) => void {
  const noted = new WeakSet<SentLine>();
  return (tries) => {
    for (const { line, answer, end } of tries) {
      if (end.terminal === undefined || noted.has(line)) continue;
      noted.add(line);
      const hasFailed = outageOf(end) !== undefined && !hasOnlyWaited(end);
      watch.recordEnd(answer.fields['tier'] ?? '', end.terminal.trace, hasFailed);
    }
  };
}

/**
 * Brings answers of ended lines from Redis into the batch's results. A line that failed without text for a passing
 * reason is tried again later, as a request with an id of its own (docs/spec.md#batch-lines).
 */
export function createCollectEnds(deps: CollectEndsDeps) {
  const { queue, lines, clock } = deps;
  const recordOnce = createRecordOnce(deps);

  /** Resolves with the ends of the lines that are not tried again. */
  async function putBackFailed(batch: OpenBatch, tries: readonly EndedTry[]): Promise<LineEnd[]> {
    const ends: LineEnd[] = [];
    const again: Promise<void>[] = [];
    for (const one of tries) {
      const retry = batch.isClosed ? undefined : retryOf(deps, one);
      if (retry === undefined) ends.push(toEnd(one, clock.now()));
      else again.push(putBack(deps, batch, one, retry));
    }
    await Promise.all(again);
    return ends;
  }

  async function take(batch: OpenBatch, left: SentLine[]): Promise<void> {
    const { shard } = batch.row;
    const tries = await readGroup(deps, shard, left);
    recordOnce(tries);
    const ends = await putBackFailed(batch, tries);
    await endAll(deps, batch, ends);
    // After the write, because an end that could not be written is read again.
    recordFailed(deps, batch, tries);
    learnTokens(batch, tries);
    // Ended requests give back the tokens that they were counted with beyond what they took.
    advance(batch, { kind: 'freed', soon: performance.now() + SOON_MS });
    await shortenAll(deps, shard, tries);
  }

  return async (batch: OpenBatch): Promise<void> => {
    const inFlight = [...batch.lines.inFlight.values()];
    if (inFlight.length === 0) return;
    const states = await queue.states(
      batch.row.shard,
      inFlight.map(({ requestId }) => requestId),
    );
    const ended = inFlight.filter((_line, at) => states[at] === 'done');
    while (ended.length > 0) await take(batch, ended);
    // Redis has lost the request, or it was taken back. The line is sent again; the ledger charges it once, by its request id.
    const lost = inFlight.filter((_line, at) => states[at] === undefined || states[at] === 'void');
    for (const { index } of lost) await lines.again(batch, index);
  };
}

export type CollectEnds = ReturnType<typeof createCollectEnds>;
