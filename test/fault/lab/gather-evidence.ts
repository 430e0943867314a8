import { readFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';

import { KIND_NAMES, TOKEN_KINDS, kindsOf } from '../../../shared/contracts/events.ts';
import type { TokenKinds } from '../../../shared/contracts/events.ts';
import { callJson } from '../../../scripts/harness/http.ts';
import type { Evidence, ProcessExit, ProviderCount } from '../checker/evidence.ts';
import type { Caller } from '../client/caller.ts';
import { checkReconciliation } from './check-reconciliation.ts';
import { inspectBook } from './inspect-book.ts';
import type { RedisInspector } from './inspect-redis.ts';
import type { LabProcesses } from './lab-processes.ts';
import type { LabTenants } from './lab-tenants.ts';
import type { LabOptions } from './lab.ts';
import { withAnswers } from './provider-answers.ts';
import { until } from './until.ts';
import { runningOf } from './victim.ts';

const REST_MS = 60_000;

interface Count {
  calls: number;
  prompt_tokens: number;
  completion_tokens: number;
  prompt_tokens_details?: Record<string, number>;
  completion_tokens_details?: Record<string, number>;
}

function kindsIn(count: Count): TokenKinds {
  const kinds = KIND_NAMES.map((name) => {
    const [of, detail] = TOKEN_KINDS[name];
    return [name, count[`${of}_tokens_details`]?.[detail]] as const;
  });
  return kindsOf(Object.fromEntries(kinds.filter(([, tokens]) => tokens !== undefined)));
}

/** The provider's own report (scripts/simulated-provider/stats.ts). */
export async function readProviderCounts(providerUrl: string): Promise<Map<string, ProviderCount>> {
  const { body } = await callJson('GET', `${providerUrl}/stats?detail=1`);
  return new Map(
    Object.entries(body['by_request'] as Record<string, Count>).map(([id, count]) => [
      id,
      {
        calls: count.calls,
        promptTokens: count.prompt_tokens,
        completionTokens: count.completion_tokens,
        kinds: kindsIn(count),
      },
    ]),
  );
}

/** The provider's settings for a tier's requests: its defaults, and what the tier's model says. */
function settingsOf({ provider = '', models = {} }: LabOptions, tier: string | undefined): URLSearchParams {
  const model = tier === 'mobius' || tier === 'oloid' ? (models[tier] ?? '') : '';
  return new URLSearchParams(`${model.slice(model.indexOf('?') + 1)}&${provider}`);
}

async function readLogs(logDir: string) {
  const names = await readdir(logDir);
  return Promise.all(names.map(async (name) => ({ name, text: await readFile(join(logDir, name), 'utf8') })));
}

export interface GatherEvidenceDeps {
  options: LabOptions;
  processes: Pick<LabProcesses, 'providerUrl' | 'ingresses' | 'workers'>;
  inspector: RedisInspector;
  caller: Caller;
  tenants: LabTenants;
  /** Past any proxy. */
  mongoUrl: string;
  /** The settings of the processes. */
  env: Record<string, string>;
  /** What no log may name. */
  secrets: Record<string, string>;
  /** Of the tiers, in micro-credits a token. */
  rates: Evidence['rates'];
  exits: ProcessExit[];
  logDir: string;
  signal: AbortSignal;
}

/** Waits until nothing moves any more, stops all processes, and gathers what the checker judges. */
export function createGatherEvidence(deps: GatherEvidenceDeps): () => Promise<Evidence> {
  const { options, processes, inspector, caller, tenants, mongoUrl, env, secrets, rates, exits, logDir, signal } = deps;
  const { providerUrl, ingresses, workers } = processes;

  const accountOf = async (tenantId: string) => {
    const { leftovers, ...account } = await inspector.account(tenantId);
    const counted = Object.entries(leftovers).filter(([name]) => options.leftBehind?.includes(name) !== true);
    return { ...account, leftovers: Object.fromEntries(counted) };
  };

  /** As last seen. Workers send canaries through the queues all the time, so a look at another moment may see one. */
  let queues: Record<string, number> = {};

  /** Everything that was accepted has ended and is in the book. */
  async function isAtRest(): Promise<boolean> {
    const { body } = await callJson('GET', `${providerUrl}/stats?detail=0`);
    if (body['in_flight'] !== 0) return false;
    queues = await inspector.queues();
    if (Object.values(queues).some((count) => count !== 0)) return false;
    const states = await Promise.all([...tenants.granted.keys()].map(accountOf));
    return states.every(({ leftovers }) => Object.values(leftovers).every((amount) => amount === 0));
  }

  return async () => {
    const rests = await until(isAtRest, { timeoutMs: REST_MS, signal, pollMs: 200 });
    if (!rests) queues = await inspector.queues();
    const accounts = await Promise.all([...tenants.granted.keys()].map(accountOf));
    const records = options.keepsRecords === false ? undefined : await inspector.records();
    const book = await inspectBook(mongoUrl);
    const tiers = new Map(book.ledger.map(({ requestId, tier }) => [requestId, tier]));
    const provider = await withAnswers(providerUrl, await readProviderCounts(providerUrl), (requestId) =>
      settingsOf(options, tiers.get(requestId)),
    );
    caller.leaveAll();
    await Promise.all(runningOf(ingresses).map((victim) => victim.stop()));
    await Promise.all(runningOf(workers).map((victim) => victim.stop()));
    const reconciliation = await checkReconciliation({ ...env, MONGODB_URI: mongoUrl }, signal);
    return {
      requests: caller.requests,
      provider,
      ledger: book.ledger,
      accounts: accounts.map((account) => ({
        ...account,
        grantedMicro: tenants.granted.get(account.tenantId) ?? 0,
        balanceMicro: book.balances.get(account.tenantId) ?? 0,
      })),
      records,
      keptAnswers: book.keptAnswers,
      reconciliation,
      queues,
      exits,
      logs: await readLogs(logDir),
      secrets: [...Object.entries(secrets).map(([name, value]) => ({ name, value })), ...tenants.keys],
      rates,
    };
  };
}
