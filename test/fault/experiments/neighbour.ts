import { setTimeout as pause } from 'node:timers/promises';

import type { SentRequest, Tenant } from '../client/caller.ts';
import type { Verdict } from '../checker/verdict.ts';
import type { Lab } from '../lab/lab.ts';
import { expectThat, isWhole } from './findings.ts';

const REQUESTS = 60;
const PAUSE_MS = 50;
/** Of the 95th percentile; the clients share their machine with what they measure. */
const RATIO_MAX = 1.5;
const SLACK_MS = 50;

export interface Pace {
  p95Ms: number;
  failed: SentRequest[];
}

/** The 95th percentile of a tenant that asks for short answers, one after the other. */
export async function paceOf(lab: Lab, tenant: Tenant, requests = REQUESTS): Promise<Pace> {
  const times: number[] = [];
  const failed: SentRequest[] = [];
  for (let index = 0; index < requests; index += 1) {
    const sent = lab.caller.send({ url: lab.urlOf(index), tenant, stream: false, words: 5 });
    const { sentAt, endedAt } = await sent.ended;
    times.push(endedAt - sentAt);
    if (!isWhole(sent)) failed.push(sent);
    await pause(PAUSE_MS, undefined, { signal: lab.signal });
  }
  times.sort((a, b) => a - b);
  return { p95Ms: times[Math.ceil(times.length * 0.95) - 1] ?? 0, failed };
}

export function expectSamePace(before: Pace, during: Pace): Verdict {
  const most = Math.max(before.p95Ms * RATIO_MAX, before.p95Ms + SLACK_MS);
  const found = `${during.p95Ms.toFixed(0)} ms after ${before.p95Ms.toFixed(0)} ms`;
  return expectThat('another tenant’s p95 stays below 1.5 times its own', during.p95Ms <= most, found);
}
