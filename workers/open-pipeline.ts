import type { Config } from '../shared/config/settings.ts';
import type { HttpClient } from './providers/http-client.ts';
import type { Logger } from '../shared/logging/logger.ts';
import type { RoutingCache } from '../shared/mongo/routing/routing-cache.ts';
import { createAnswerCache, createStreamReader } from '../shared/requests/answers.ts';
import type { RequestStore } from '../shared/requests/delivery-store.ts';
import type { RedisClient } from '../shared/redis/connection.ts';
import type { Keyspace } from '../shared/redis/keyspace.ts';
import type { Tracing } from '../shared/tracing/tracing.ts';
import type { Clock } from '../shared/lifecycle/clock.ts';
import type { Breakers } from './pipeline/breakers.ts';
import type { Capacities } from './pipeline/capacities.ts';
import { createChunkWriters } from './pipeline/chunk-writer.ts';
import { createClaim, createLease, createOpenLeases } from './pipeline/claim.ts';
import { createAssemblePrompt, createLoadContext } from './pipeline/build-prompt.ts';
import { createConclude } from './pipeline/conclude.ts';
import { createFinish, createStoreAnswer, createSaveTurn } from './pipeline/finish.ts';
import { createGenerate, createSelectRoute } from './pipeline/generate.ts';
import { createClassify, createModerate } from './pipeline/moderate.ts';
import { createPipeline } from './pipeline/stage.ts';
import type { WorkerEmitter } from './pipeline/worker-events.ts';
import type { ErasureGatedStores } from '../shared/erasure-gate.ts';
import { createModeration } from './moderation/create-moderation.ts';
import type { Pseudonyms } from '../shared/domain/pseudonyms.ts';
import type { ProviderKind } from '../shared/domain/routing.ts';
import { traceAdapters, traceModeration } from './observers/worker-tracing.ts';
import { createAnthropicAdapter } from './providers/anthropic.ts';
import { createOpenAiAdapter } from './providers/openai.ts';
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
  config: Config;
  requests: RequestStore;
  stores: ErasureGatedStores;
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

/** A target is slow if an answer takes more than a third of the grace that a request without readers has. */
const SLOW_PART_OF_GRACE_MS = 1000 / 3;

/** Puts the stages together with what each of them uses; stage.ts has their order. */
export function openPipeline(deps: OpenPipelineDeps) {
  const { redis, keyspace, http, routing, requests, stores, telemetry, tracing, clock, log } = deps;
  const { conversations } = stores;
  const { moderator, openWindow } = createModeration(deps.config.moderation, http, telemetry);
  const openLeases = createOpenLeases((lease) => createLease(log, lease));
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
    classify: createClassify(moderator),
    selectRoute: createSelectRoute({ routing, random: Math.random, log }),
    generate: createGenerate({
      adapters: tracing === undefined ? adapters : traceAdapters(adapters, tracing),
      breakers: deps.breakers,
      capacities: deps.capacities,
      openWindow,
      openWriter: createChunkWriters(),
      events: telemetry,
      betweenTokensMs: deps.betweenTokensMs,
      slowAnswerMs: deps.config.limits.disconnectGraceSeconds * SLOW_PART_OF_GRACE_MS,
      clock,
      log,
    }),
    saveTurn: createSaveTurn({ conversations, clock, log }),
    finish: createFinish({ conversations, clock, events: telemetry, log }),
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
    /** Has all requests of some shards that run here say so, to a Redis that may have come back without their claims. */
    checkAll(isOf: (shard: number) => boolean): void {
      void openLeases.checkAll(isOf);
    },
    /** Checks at once, not with its next renewal, whether a request that runs here is still owned and wanted. */
    checkNow(requestId: string): void {
      openLeases.check(requestId).catch(warn(requestId));
    },
    /** Like `checkNow`, of a request that was cancelled: one that is about to run here stops, too. */
    onCancelled(requestId: string): void {
      openLeases.onCancelled(requestId).catch(warn(requestId));
    },
  };
}
