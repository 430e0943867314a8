import { encodeEntry, eventsOf, FAULT } from '../../shared/contracts/events.ts';
import type { Terminal } from '../../shared/contracts/events.ts';
import type { EndedAnswer } from '../../shared/contracts/stored-answer.ts';
import type { AnswerCache } from '../../shared/infra/redis/requests/stored-answers.ts';
import type { BatchQueue } from '../../shared/infra/redis/requests/queue-store.ts';
import type { LineRetry } from '../../shared/infra/mongo/batches/batch-repository.ts';
import type { BatchWorkRepository, LineEnd } from '../../shared/infra/mongo/batches/batch-work-repository.ts';
import { endOf, outageOf } from '../../shared/domain/requests/outage.ts';
import type { Logger } from '../../shared/infra/logging/logger.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import { newId } from '../../shared/lifecycle/ids.ts';
import { answeredAt, nextRetry } from './line-retry.ts';
import type { OpenBatch, SentLine } from './open-batch.ts';
import type { ProviderWatch } from './provider-watch.ts';
import type { ReadLines } from './read-lines.ts';

export interface CollectEndsDeps {
  work: Pick<BatchWorkRepository, 'end' | 'renumber' | 'count'>;
  queue: Pick<BatchQueue, 'states'>;
  answers: Pick<AnswerCache, 'read' | 'shorten'>;
  lines: Pick<ReadLines, 'again'>;
  watch: Pick<ProviderWatch, 'noteEnd' | 'hasAnsweredSince'>;
  /** How long Redis keeps an answer that the results have. */
  retentionMs: number;
  clock: Clock;
  random: () => number;
  log: Pick<Logger, 'error'>;
}

/** Answers may be large: so many are in memory at once. */
const GROUP = 50;
/** A batch that waits for tokens looks again so long after some of its lines have ended. */
const SOON_MS = 250;

const tokensOf = ({ usage: { promptTokens, completionTokens } }: Terminal) => promptTokens + completionTokens;

/** A line's request that has ended. */
interface EndedTry {
  line: SentLine;
  answer: Pick<EndedAnswer, 'fields' | 'entries'>;
  end: ReturnType<typeof endOf>;
}

/**
 * Its time was over before anybody was asked: its queue was paused, or slower than lines came. That says nothing about the
 * line or its provider.
 */
function hasOnlyWaited({ terminal }: EndedTry['end']): boolean {
  return terminal?.error?.code === 'timeout' && (terminal.trace?.attempts ?? []).length === 0;
}

/** In the place of an answer that nobody can read: the results of a batch are read all together. */
const UNREADABLE: EndedAnswer['entries'] = [{ lastSeq: eventsOf(FAULT), payload: encodeEntry([], FAULT) }];

/**
 * Brings the answers of ended lines from Redis into the batch's results. A line that failed without text for a passing
 * reason goes back to those that wait, as a request of its own (docs/spec/contract.md section 8, Batches).
 */
export function createCollectEnds(deps: CollectEndsDeps) {
  const { work, queue, answers, lines, watch, retentionMs, clock, random, log } = deps;

  async function read(shard: number, line: SentLine): Promise<EndedTry | undefined> {
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

  function retryOf({ line, answer: { fields }, end }: EndedTry): LineRetry | undefined {
    if (end.terminal === undefined || outageOf(end) === undefined) return undefined;
    const since = line.retry?.failedAt ?? Number(fields['acceptedAt']);
    const hasOthers =
      answeredAt(end.terminal.trace) !== undefined || watch.hasAnsweredSince(fields['tier'] ?? '', since);
    const isOwnFault = hasOthers && !hasOnlyWaited(end);
    return nextRetry(line.retry, { isOwnFault, now: clock.now(), random: random() });
  }

  function toEnd({ line: { index, requestId }, answer, end }: EndedTry): LineEnd {
    const code = outageOf(end);
    const outage = code === undefined ? undefined : { code, at: clock.now() };
    return {
      index,
      requestId,
      status: answer.fields['status'] === 'completed' ? 'completed' : 'failed',
      answer,
      outage,
    };
  }

  async function endAll(batch: OpenBatch, ends: readonly LineEnd[]): Promise<void> {
    const { tenantId, _id: batchId } = batch.row;
    const written = await work.end(tenantId, batchId, ends);
    for (const { index, status } of ends) {
      batch.inFlight.delete(index);
      batch.counts[status] += 1;
    }
    // Some had ended before: by an earlier try of this call, or with the entity that they belonged to.
    if (written < ends.length) batch.counts = await work.count(tenantId, batchId);
  }

  async function putBack(batch: OpenBatch, { line }: EndedTry, retry: LineRetry): Promise<void> {
    const { tenantId, _id: batchId } = batch.row;
    const next = { requestId: newId('req'), retry };
    const isOwn = await work.renumber(tenantId, batchId, line, next);
    if (!isOwn) return lines.again(batch, line.index);
    batch.inFlight.delete(line.index);
    batch.later.push({ index: line.index, ...next });
  }

  async function take(batch: OpenBatch, group: readonly SentLine[]): Promise<void> {
    const { shard } = batch.row;
    const tries = (await Promise.all(group.map((line) => read(shard, line)))).filter((one) => one !== undefined);
    for (const { line, answer, end } of tries) {
      if (end.terminal === undefined || line.isNoted === true) continue;
      // A few ends that cannot be stored are read again and again, and would pass for many.
      line.isNoted = true;
      watch.noteEnd(
        answer.fields['tier'] ?? '',
        end.terminal.trace,
        outageOf(end) !== undefined && !hasOnlyWaited(end),
      );
    }
    const ends: LineEnd[] = [];
    const again: Promise<void>[] = [];
    for (const one of tries) {
      const retry = batch.isClosed ? undefined : retryOf(one);
      if (retry === undefined) ends.push(toEnd(one));
      else again.push(putBack(batch, one, retry));
    }
    await Promise.all(again);
    await endAll(batch, ends);
    // Not before: what could not be written is taken again, and a few lines would pass for many.
    for (const { line, end } of tries)
      if (end.terminal !== undefined && end.hasText && line.promptTokens !== undefined)
        batch.tokens.note(tokensOf(end.terminal) - line.promptTokens);
    // They have left room in the windows of tokens, mostly.
    if (batch.waitingFor === 'tpm') batch.notBefore = Math.min(batch.notBefore, performance.now() + SOON_MS);
    await Promise.all(
      tries.map(({ line: { requestId }, answer: { fields } }) =>
        answers.shorten(shard, { requestId, fields }, retentionMs),
      ),
    );
  }

  return async (batch: OpenBatch): Promise<void> => {
    const inFlight = [...batch.inFlight.values()];
    if (inFlight.length === 0) return;
    const states = await queue.states(
      batch.row.shard,
      inFlight.map(({ requestId }) => requestId),
    );
    const ended = inFlight.filter((_line, at) => states[at] === 'done');
    for (let from = 0; from < ended.length; from += GROUP) await take(batch, ended.slice(from, from + GROUP));
    // Redis came back without it, or the queue gave it back: it is sent again, and the book takes its charge once.
    const lost = inFlight.filter((_line, at) => states[at] === undefined || states[at] === 'void');
    for (const { index } of lost) await lines.again(batch, index);
  };
}

export type CollectEnds = ReturnType<typeof createCollectEnds>;
