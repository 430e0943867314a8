import { CANARIES } from './canaries.ts';
import type { ClientRequest, Evidence, LedgerLine, ProviderCount, Reading } from './evidence.ts';
import { hasFailed, hasLeft, isAccepted, isRefused, isTerminal, startsLate, textOf } from './requests-by-id.ts';
import type { JoinedRequest } from './requests-by-id.ts';
import type { Verdict } from './verdict.ts';

/** I1: every accepted request has exactly one terminal event, by its client and by its stream in Redis. */
export function checkTerminals({ requests, records, forgotten }: Evidence, joined: readonly JoinedRequest[]): Verdict {
  const faults = requests.flatMap((request) => (isAccepted(request) ? terminalFaults(request) : []));
  for (const request of requests) {
    if (request.readings.some(({ end }) => end === 'open')) faults.push(`${nameOf(request)} has not ended`);
  }
  const known = joined.filter(({ requestId, record }) => record !== undefined || forgotten?.has(requestId) !== true);
  if (records !== undefined) faults.push(...known.flatMap(recordFaults));
  return { name: 'I1', faults };
}

function nameOf({ canary, readings }: ClientRequest): string {
  return `${readings.at(-1)?.requestId ?? ''} (${canary})`;
}

function terminalFaults(request: ClientRequest): string[] {
  const name = nameOf(request);
  const ends = request.readings.filter(isTerminal);
  const faults: string[] = [];
  if (ends.length === 0 && !hasLeft(request)) faults.push(`${name} has no terminal event`);
  if (ends.length > 1) faults.push(`${name} has ${ends.length} terminal events`);
  if (request.stream) faults.push(...request.readings.flatMap((reading) => streamFaults(name, reading)));
  const seqs = request.readings.flatMap(({ events }) => events.map(({ seq }) => seq));
  const gap = seqs.findIndex((seq, index) => seq !== index + 1);
  if (gap !== -1) faults.push(`${name} has event ${seqs[gap] ?? 0} in place ${gap + 1}`);
  return faults;
}

/** Nothing comes after the terminal chunk but its `[DONE]`, which an error does not have. */
function streamFaults(name: string, { status, events, finishReason, errorCode, isDone, end }: Reading): string[] {
  if (status !== 200) return [];
  const faults: string[] = [];
  const marks = events.filter(({ data }) => data === '[DONE]' || /"finish_reason":"/.test(data)).length;
  const isWhole = end === 'closed' && finishReason !== undefined;
  const expected = errorCode === undefined ? 2 : 1;
  if (isWhole && marks !== expected) faults.push(`${name} ended with ${marks} last events instead of ${expected}`);
  if (isDone && errorCode !== undefined) faults.push(`${name} has [DONE] after an error`);
  return faults;
}

function recordFaults({ requestId, clients, record }: JoinedRequest): string[] {
  if (record === undefined) return clients.some(isAccepted) ? [`${requestId} has no record in Redis`] : [];
  const { state, terminals } = record;
  if (state === 'void') return clients.some(isAccepted) ? [`${requestId} was answered, and its record is void`] : [];
  if (state !== 'done') return [`${requestId} is ${state} at rest`];
  if (terminals !== 1) return [`${requestId} has ${terminals} terminal entries in its stream`];
  return [];
}

/** I2: a ledger entry for every request that produced text, none twice, none for a refusal. */
export function checkLedgerEntries(evidence: Evidence, joined: readonly JoinedRequest[]): Verdict {
  const faults = joined.flatMap(({ requestId, clients, ledger, record }) => {
    const hasText = (record?.increments ?? 0) > 0 || clients.some((client) => textOf(client) !== '');
    const found: string[] = [];
    if (ledger.length > 1) found.push(`${requestId} has ${ledger.length} ledger entries`);
    const isToldLost = evidence.forgotten?.has(requestId) === true && clients.every(hasFailed);
    // docs/spec.md#unanswered-admissions: what was admitted although its caller was told 503 is taken back and free, also
    // where it has begun to answer, or has answered before the worker heard.
    const isTakenBack =
      clients.length > 0 && clients.every((client) => isRefused(client) && client.readings.at(-1)?.status === 503);
    if (hasText && ledger.length === 0 && !isToldLost && !isTakenBack)
      found.push(`${requestId} produced text and has no ledger entry`);
    // Without records, a client that left early does not know whether there was text.
    const isKnown = evidence.records !== undefined || clients.some((client) => !hasLeft(client));
    if (!hasText && isKnown && ledger.some(({ completionTokens }) => completionTokens > 0)) {
      found.push(`${requestId} has a ledger entry and produced no text`);
    }
    if (clients.length > 0 && clients.every(isRefused) && ledger.length > 0) {
      found.push(`${requestId} was refused (${clients[0]?.readings.at(-1)?.status ?? 0}) and billed`);
    }
    return found;
  });
  return { name: 'I2', faults };
}

/** An estimate is our tokenizer's, which cuts words in other places than the provider. */
const ESTIMATE_FACTOR = 2;
const ESTIMATE_MARGIN = 20;

/** I3: the charge is the provider's own count, or a flagged estimate; and what the client was told. */
export function checkCharges({ rates }: Evidence, joined: readonly JoinedRequest[]): Verdict {
  const faults = joined.flatMap(({ requestId, clients, provider, ledger }) =>
    ledger.flatMap((line) => {
      const found = [...priceFaults(line, rates), ...countFaults(line, provider)];
      for (const usage of clients.flatMap(({ readings }) => readings.flatMap((reading) => reading.usage ?? []))) {
        if (usage.prompt === line.promptTokens && usage.completion === line.completionTokens) continue;
        found.push(`charged ${line.promptTokens}+${line.completionTokens}, told ${usage.prompt}+${usage.completion}`);
      }
      return found.map((fault) => `${requestId}: ${fault}`);
    }),
  );
  return { name: 'I3', faults };
}

function priceFaults(line: LedgerLine, rates: Evidence['rates']): string[] {
  const rate = rates[line.tier ?? ''];
  if (rate === undefined) return [`its tier is ${line.tier ?? 'missing'}`];
  const price = line.promptTokens * rate.prompt + line.completionTokens * rate.completion;
  const expected = line.mode === 'live' ? price : 0;
  return -line.amountMicro === expected ? [] : [`charged ${-line.amountMicro} micro-credits instead of ${expected}`];
}

function countFaults(line: LedgerLine, provider: ProviderCount | undefined): string[] {
  if (provider === undefined) return ['the provider was never called'];
  const { promptTokens, completionTokens, isEstimated } = line;
  const charged = `${promptTokens}+${completionTokens}`;
  const counted = `${provider.promptTokens}+${provider.completionTokens} in ${provider.calls} calls`;
  if (isEstimated) {
    const { answer } = provider;
    const most = Math.max(provider.completionTokens * ESTIMATE_FACTOR + ESTIMATE_MARGIN, answer?.tokens ?? 0);
    return completionTokens <= most ? [] : [`estimated ${charged}, the provider counted ${counted}`];
  }
  const isSame = promptTokens === provider.promptTokens && completionTokens === provider.completionTokens;
  // Of several calls one is charged; the provider counts all of them together.
  const isPart = promptTokens <= provider.promptTokens && completionTokens <= provider.completionTokens;
  return isSame || (provider.calls > 1 && isPart) ? [] : [`charged ${charged}, the provider counted ${counted}`];
}

/** I5: no text of one request in another; where the whole answer is known, nothing but a beginning of it. */
export function checkTexts({ requests }: Evidence): Verdict {
  const faults = requests.flatMap((request) => {
    const { canary, expectedText } = request;
    const text = textOf(request);
    // The last one may be cut.
    const foreign = [...text.matchAll(CANARIES)].map(([found]) => found).filter((found) => !canary.startsWith(found));
    if (foreign.length > 0) return [`${nameOf(request)} has text of ${foreign[0] ?? ''}`];
    if (expectedText === undefined) return [];
    const isWhole = request.readings.some(({ finishReason }) => finishReason === 'stop') && !startsLate(request);
    const isRight = isWhole ? text === expectedText : expectedText.startsWith(text);
    return isRight ? [] : [`${nameOf(request)} has text that repeats, lacks or adds something`];
  });
  return { name: 'I5', faults };
}
