import type { HttpClient } from './providers/http-client.ts';
import { createAnswerCache, createStreamReader } from '../shared/requests/answers.ts';
import { createChunkWriters } from './pipeline/chunk-writer.ts';
import { createClaim, createLease, createOpenLeases } from './pipeline/claim.ts';
import { createAssemblePrompt, createLoadContext } from './pipeline/build-prompt.ts';
import { createConclude } from './pipeline/conclude.ts';
import { createFinish, createStoreAnswer, createSaveTurn } from './pipeline/finish.ts';
import { createGenerate, createSelectRoute } from './pipeline/generate.ts';
import { createClassify, createModerate } from './pipeline/moderate.ts';
import { createPipeline } from './pipeline/stage.ts';
import type { WorkerParts } from './pipeline/worker-parts.ts';
import { createModeration } from './moderation/create-moderation.ts';
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

/** A target is slow if an answer takes more than a third of the grace that a request without readers has. */
const SLOW_PART_OF_GRACE_MS = 1000 / 3;

/** Puts the stages together with what each of them uses; stage.ts has their order. */
export function openPipeline(worker: WorkerParts, silenceMs: number) {
  const { config, redis, keyspace, http, telemetry: events, conversations, tracing, log } = worker;
  const parts = { ...worker, events };
  const { moderator, openWindow } = createModeration(config.moderation, http, events);
  const openLeases = createOpenLeases((lease) => createLease(log, lease));
  const moderate = createModerate({ ...parts, moderator });
  const adapters = createAdapters(http);

  const runPipeline = createPipeline({
    claim: createClaim({ ...parts, streams: createStreamReader(redis, keyspace), openLease: openLeases.open }),
    loadContext: createLoadContext(conversations),
    assemblePrompt: createAssemblePrompt(),
    moderate: tracing === undefined ? moderate : traceModeration(moderate, tracing),
    classify: createClassify(moderator),
    selectRoute: createSelectRoute({ ...parts, random: Math.random }),
    generate: createGenerate({
      ...parts,
      adapters: tracing === undefined ? adapters : traceAdapters(adapters, tracing),
      openWindow,
      openWriter: createChunkWriters(),
      silenceMs,
      slowAnswerMs: config.limits.disconnectGraceSeconds * SLOW_PART_OF_GRACE_MS,
    }),
    saveTurn: createSaveTurn(parts),
    finish: createFinish(parts),
    storeAnswer: createStoreAnswer({ ...parts, cache: createAnswerCache(redis, keyspace) }),
    conclude: createConclude(parts),
  });

  function warn(requestId: string): (error: unknown) => void {
    return (error) => {
      log.warn('A lease could not be renewed at once; its next interval tries again.', { requestId, error });
    };
  }

  return {
    runPipeline,
    /** Has all requests of some shards that run here report to a Redis that may have come back without their claims. */
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
