import type { Experiment } from '../experiment.ts';
import { workerKilled } from './e01-worker-killed.ts';
import { workerPaused } from './e02-worker-paused.ts';
import { twoDeliveries } from './e03-two-deliveries.ts';
import { clientLeaves } from './e04-client-leaves.ts';
import { redisAwayForLong, redisKilled, writesRefused } from './e05-redis-killed.ts';
import { tailCut } from './e05b-tail-cut.ts';
import { redisHangs, redisPaused } from './e06-redis-paused.ts';
import { smallBalance } from './e07-small-balance.ts';
import { boundsAtOnce } from './e07b-bounds-at-once.ts';
import { mongoAway } from './e08-mongo-away.ts';
import { breakerOpens } from './e09-breaker-opens.ts';
import { providersBreak } from './e10-providers-break.ts';
import { clientsThatNeverRead } from './e11-clients-that-never-read.ts';
import { subscribersKilled } from './e12-subscribers-killed.ts';
import { rollingRestart } from './e13-rolling-restart.ts';
import { windowEdges } from './e14-window-edges.ts';
import { fuzzing } from './e15-fuzzing.ts';
import { badInputs } from './e16-bad-input.ts';
import { steadyLoad } from './e17-steady-load.ts';
import { redisFull } from './e18-redis-full.ts';
import { clusterMasterHangs, clusterMasterKilled, sentinelMasterLost, slotMoves } from './e19-master-lost.ts';
import { mongoRefuses } from './e20-mongo-refuses.ts';
import { providerOutage } from './e21-provider-outage.ts';
import { bodies } from './e22-bodies.ts';
import { authenticationFlood } from './e23-authentication-flood.ts';
import { readers } from './e24-readers.ts';
import { honestQueue } from './e26-honest-queue.ts';
import { tenantsTakeTurns } from './e25-tenants-take-turns.ts';
import { outageReplayed } from './e27-replay.ts';
import { overload } from './e28-overload.ts';
import {
  batchesTakeTheRest,
  countedByTheMinute,
  fourSlotsFound,
  fourSlotsSet,
  manyAtOnce,
} from './e29-provider-capacity.ts';
import { cutAndResumed } from './r1-cut-and-resumed.ts';
import { leaderCutOff, leaderUnheard, onePathToRedis, startsAtReturn } from './e40-one-path.ts';
import { behindHaproxy, behindNginx, restartsBehindHaproxy, restartsBehindNginx } from './e50-behind-a-proxy.ts';
import { ingressBesideOldWorker } from './e52-old-workers.ts';
import { oneIdempotencyKey } from './r2-one-idempotency-key.ts';
import { tenThousandStreams } from './r3-ten-thousand-streams.ts';
import { batchWorkersKilled } from './r4-batch-workers-killed.ts';
import { backupRestored } from './r5-backup-restored.ts';
import { usageShapes } from './r6-usage-shapes.ts';
import { scaleOnCluster, scaleOnSentinel } from './s-scale.ts';

/** In the order in which they run. */
export const EXPERIMENTS: readonly Experiment[] = [
  workerKilled,
  workerPaused,
  twoDeliveries,
  clientLeaves,
  redisKilled,
  tailCut,
  redisAwayForLong,
  writesRefused,
  redisPaused,
  redisHangs,
  smallBalance,
  boundsAtOnce,
  mongoAway,
  breakerOpens,
  providersBreak,
  clientsThatNeverRead,
  subscribersKilled,
  rollingRestart,
  windowEdges,
  fuzzing,
  badInputs,
  steadyLoad,
  redisFull,
  clusterMasterKilled,
  clusterMasterHangs,
  sentinelMasterLost,
  slotMoves,
  mongoRefuses,
  providerOutage,
  bodies,
  authenticationFlood,
  readers,
  tenantsTakeTurns,
  honestQueue,
  outageReplayed,
  overload,
  startsAtReturn,
  leaderCutOff,
  leaderUnheard,
  ...onePathToRedis,
  behindNginx,
  behindHaproxy,
  restartsBehindNginx,
  restartsBehindHaproxy,
  ingressBesideOldWorker,
  fourSlotsSet,
  fourSlotsFound,
  manyAtOnce,
  countedByTheMinute,
  batchesTakeTheRest,
  cutAndResumed,
  oneIdempotencyKey,
  tenThousandStreams,
  batchWorkersKilled,
  backupRestored,
  usageShapes,
  scaleOnCluster,
  scaleOnSentinel,
];
