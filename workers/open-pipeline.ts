import type { Config } from '../shared/config/load-config.ts';
import type { HttpClient } from '../shared/infra/http/http-client.ts';
import type { Logger } from '../shared/infra/logging/logger.ts';
import type { RoutingCache } from '../shared/infra/mongo/routing/routing-cache.ts';
import { createAnswerCache } from '../shared/infra/redis/requests/answer-cache.ts';
import { createStreamReader } from '../shared/infra/redis/requests/stream-reader.ts';
import type { RedisClient } from '../shared/infra/redis/connection.ts';
import type { Keyspace } from '../shared/infra/redis/keyspace.ts';
import type { RequestStore } from '../shared/infra/redis/requests/request-store.ts';
import type { Tracing } from '../shared/infra/tracing/tracing.ts';
import type { Clock } from '../shared/lifecycle/clock.ts';
import type { Breakers } from './pipeline/breakers/breakers.ts';
import type { Capacities } from './pipeline/capacity/capacities.ts';
import { createChunkWriters } from './pipeline/chunks/chunk-writer.ts';
import type { ErasureGatedStores } from '../shared/compliance/erasure-gate.ts';
import { createClaim } from './pipeline/claim.ts';
import { createLease } from './pipeline/lease/lease.ts';
import { createOpenLeases } from './pipeline/lease/open-leases.ts';
import { createModeration } from './moderation/create-moderation.ts';
import { createAssemblePrompt } from './pipeline/assemble-prompt.ts';
import { createConclude } from './pipeline/conclude.ts';
import type { Pseudonyms } from '../shared/domain/compliance/pseudonyms.ts';
import { createFinish } from './pipeline/finish.ts';
import { createGenerate } from './pipeline/generate.ts';
import { createStoreAnswer } from './pipeline/store-answer.ts';
import { createLoadContext } from './pipeline/load-context.ts';
import { createModerate } from './pipeline/moderate.ts';
import { createSaveTurn } from './pipeline/save-turn.ts';
import { createPipeline } from './pipeline/run-pipeline.ts';
import type { RunPipeline } from './pipeline/run-pipeline.ts';
import { createSelectRoute } from './pipeline/select-route.ts';
import type { FinishJournal } from './settlement/finish-journal.ts';
import type { WorkerEmitter } from './worker-events.ts';
import { traceAdapters, traceModeration } from './worker-tracing.ts';
import type { ProviderKind } from '../shared/domain/routing/routing.ts';
import { createAnthropicAdapter } from './providers/anthropic/index.ts';
import { createOpenAiAdapter } from './providers/openai/index.ts';
import type { ProviderAdapter } from './providers/provider.ts';

/** One adapter per kind. The simulated provider speaks OpenAI's protocol, so that the HTTP path is the real one. */
export function createAdapters(http: HttpClient): Record<ProviderKind, ProviderAdapter> {
  const openai = createOpenAiAdapter(http);
  return { openai, simulated: openai, anthropic: createAnthropicAdapter(http) };
}

export interface OpenPipelineDeps {
  redis: RedisClient;
  keyspace: Keyspace;
  http: HttpClient;
  routing: RoutingCache;
  breakers: Breakers;
  capacities: Capacities;
  config: Pick<Config, 'moderation' | 'limits'>;
  requests: RequestStore;
  journal: Pick<FinishJournal, 'finish'>;
  stores: Pick<ErasureGatedStores, 'conversations' | 'answers'>;
  pseudonyms: Pseudonyms;
  telemetry: WorkerEmitter;
  /** Undefined: nothing is traced. */
  tracing: Tracing | undefined;
  hasReconnectedRecently: (shard: number, withinMs?: number) => boolean;
  /** Silence between two pieces of text that counts as a hung provider. */
  betweenTokensMs: number;
  retentionMs: number;
  clock: Clock;
  log: Logger;
}

export interface Pipeline {
  runPipeline: RunPipeline;
  /** Checks at once, not with its next renewal, whether a request that runs here is still owned and wanted. */
  checkNow(requestId: string): void;
  /** As `checkNow`, of a request that was cancelled: one that is about to run here stops, too. */
  hearCancel(requestId: string): void;
  /** Has all requests of some shards that run here say so, to a Redis that may have come back without their claims. */
  checkAll(isOf: (shard: number) => boolean): void;
}

/** A target is slow if an answer takes more than a third of the grace that a request without readers has. */
const SLOW_PART_OF_GRACE_MS = 1000 / 3;

/** Puts the stages together with what each of them uses; run-pipeline.ts has their order. */
export function openPipeline(deps: OpenPipelineDeps): Pipeline {
  const { redis, keyspace, http, routing, requests, stores, telemetry, tracing, clock, log } = deps;
  const { conversations } = stores;
  const { moderator, openWindow } = createModeration(deps.config.moderation, http, telemetry);
  const openLeases = createOpenLeases((lease) => createLease(requests, log, lease));
  const openWriter = createChunkWriters(requests);
  const moderate = createModerate({ moderator, clock, events: telemetry });
  const adapters = createAdapters(http);

  const runPipeline = createPipeline({
    claim: createClaim({
      requests,
      routing,
      streams: createStreamReader(redis, keyspace),
      openLease: openLeases.open,
      pseudonyms: deps.pseudonyms,
      hasReconnectedRecently: deps.hasReconnectedRecently,
      events: telemetry,
      log,
    }),
    loadContext: createLoadContext(conversations),
    assemblePrompt: createAssemblePrompt(),
    moderate: tracing === undefined ? moderate : traceModeration(moderate, tracing),
    selectRoute: createSelectRoute({ routing, random: Math.random, log }),
    generate: createGenerate({
      adapters: tracing === undefined ? adapters : traceAdapters(adapters, tracing),
      breakers: deps.breakers,
      capacities: deps.capacities,
      openWindow,
      openWriter: (run) => openWriter(run.ref, run.answer, run.lease),
      events: telemetry,
      betweenTokensMs: deps.betweenTokensMs,
      slowAnswerMs: deps.config.limits.disconnectGraceSeconds * SLOW_PART_OF_GRACE_MS,
      clock,
      log,
    }),
    saveTurn: createSaveTurn({ conversations, clock, log }),
    finish: createFinish({ journal: deps.journal, conversations, clock, events: telemetry, log }),
    storeAnswer: createStoreAnswer({
      answers: stores.answers,
      cache: createAnswerCache(redis, keyspace),
      retentionMs: deps.retentionMs,
      log,
    }),
    conclude: createConclude({ conversations, log }),
  });

  function warn(requestId: string): (error: unknown) => void {
    return (error) => {
      log.warn('A lease could not be renewed at once; its next interval tries again.', { requestId, error });
    };
  }

  return {
    runPipeline,
    checkAll(isOf) {
      void openLeases.checkAll(isOf);
    },
    checkNow(requestId) {
      openLeases.check(requestId).catch(warn(requestId));
    },
    hearCancel(requestId) {
      openLeases.hearCancel(requestId).catch(warn(requestId));
    },
  };
}
