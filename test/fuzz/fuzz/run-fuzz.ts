import { Agent } from 'node:http';

import { createAnswerChecker } from '../check-answer.ts';
import type { AnswerChecker, WireAnswer } from '../check-answer.ts';
import { createChance } from '../../support/chance.ts';
import type { Chance } from '../../support/chance.ts';
import { endpointsOf } from '../read-document.ts';
import type { ServedDocument } from '../read-document.ts';
import { createIdPool, namedBy } from './id-pool.ts';
import type { IdPool } from './id-pool.ts';
import { createRequestMaker } from './make-request.ts';
import type { FuzzRequest } from './make-request.ts';
import { send } from './send.ts';

export interface FuzzOptions {
  document: ServedDocument;
  /** An ingress for the n-th request, without a path. */
  urlOf(index: number): string;
  /** A key with every scope, and those with one scope each. */
  keys: { all: string; byScope: Readonly<Record<string, string>> };
  /** The same seed makes the same requests, as far as ids and answers are the same. */
  seed: number;
  count: number;
  /** How many requests are under way at once. */
  parallel: number;
}

export interface FuzzReport {
  /** What the service did wrong, each with the number of its request. */
  faults: string[];
  statuses: Record<string, number>;
  /** Endpoints that were reached with success. */
  succeeded: ReadonlySet<string>;
}

const UNKNOWN_KEYS = ['', 'x', 'svc_sk_live_', `svc_sk_live_${'0'.repeat(32)}`, 'a b', '\u00ff'];

function parse(text: string): object | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Mostly one that may, now and then one that may not, or none. */
function pickKey(chance: Chance, { keys }: FuzzOptions): string | undefined {
  const dice = chance.next();
  if (dice < 0.75) return keys.all;
  if (dice < 0.95) return chance.pick(Object.values(keys.byScope));
  return chance.is(0.5) ? undefined : chance.pick(UNKNOWN_KEYS);
}

function judge(checker: AnswerChecker, { endpoint, method }: FuzzRequest, answer: WireAnswer): string[] {
  const { status, text } = answer;
  if (status >= 500) return [`answered ${status}: ${text.slice(0, 300)}`];
  // A preflight, a head, a page: of no endpoint.
  if (method === 'HEAD' || (endpoint === undefined && status < 400)) return [];
  // Where a strange segment has led away from the endpoint.
  const isElsewhere = status === 405 || (status === 404 && text.includes('"code":"not_found"'));
  if (endpoint === undefined || isElsewhere) return checker.checkError(answer);
  return checker.check(endpoint, answer);
}

function describe(index: number, { kind, method, path, headers, body }: FuzzRequest, fault: string): string {
  const bytes = body === undefined ? '' : ` ${body.contentType ?? ''} ${body.bytes.subarray(0, 400).toString()}`;
  return `#${index} (${kind}) ${method} ${path.slice(0, 200)} ${JSON.stringify(headers)}${bytes}: ${fault}`;
}

/** Learns of what a call has made, for later paths. */
function learn(ids: IdPool, { method }: FuzzRequest, { status, text }: WireAnswer): void {
  if (method !== 'POST' || status >= 300) return;
  const named = namedBy(parse(text) ?? {});
  if (named !== undefined) ids.note(named.parameter, named.id);
}

/** Sends requests made from the document and holds every answer against it. */
export async function runFuzz(options: FuzzOptions): Promise<FuzzReport> {
  const { document, seed, count, parallel } = options;
  const checker = createAnswerChecker(document);
  const maker = createRequestMaker(document, endpointsOf(document));
  const ids = createIdPool();
  const agent = new Agent({ keepAlive: true, maxSockets: parallel });
  const report = { faults: [] as string[], statuses: {} as Record<string, number>, succeeded: new Set<string>() };
  let next = 0;

  async function sendOne(index: number): Promise<void> {
    const chance = createChance(seed * 1_000_003 + index);
    const request = maker.make(chance, ids);
    const key = pickKey(chance, options);
    // As behind a proxy. Failed authentications are limited by address: each has its own.
    const address = {
      'X-Forwarded-Proto': 'https',
      'X-Forwarded-For': `10.${(index >> 16) & 255}.${(index >> 8) & 255}.${index & 255}`,
    };
    try {
      const answer = await send(request, { url: options.urlOf(index), key, agent, headers: address });
      report.statuses[answer.status] = (report.statuses[answer.status] ?? 0) + 1;
      report.faults.push(...judge(checker, request, answer).map((fault) => describe(index, request, fault)));
      if (request.endpoint !== undefined && answer.status < 300) report.succeeded.add(request.endpoint.id);
      learn(ids, request, answer);
    } catch (error) {
      report.faults.push(describe(index, request, `no answer: ${error instanceof Error ? error.message : 'failed'}`));
    }
  }

  async function work(): Promise<void> {
    while (next < count) {
      next += 1;
      await sendOne(next);
    }
  }

  await Promise.all(Array.from({ length: parallel }, work));
  agent.destroy();
  return report;
}
