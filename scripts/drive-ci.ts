/**
 * The drive of `.ci/run`: the 80 two-turn MT-Bench conversations through a service of its own, half of them streamed,
 * and what came of them compared with the provider's count and with the ledger in MongoDB.
 */
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

import { toMicro } from '../shared/domain/pricing/pricing.ts';
import { drive } from './drive/drive.ts';
import type { DriveReport } from './drive/drive.ts';
import { parseConversations } from './drive/read-conversations.ts';
import { renderChecks } from './drive/verify.ts';
import type { Check } from './drive/verify.ts';
import { openLedger } from './service/ledger.ts';
import { ROOT } from './service/node-program.ts';
import { openTenant } from './service/open-tenant.ts';
import { runSupervised } from './service/run-supervised.ts';
import type { SupervisedTask } from './service/run-supervised.ts';
import { startProvider } from './service/start-provider.ts';
import { startService } from './service/start-service.ts';
import { openMongo, openRedis } from './service/start-stores.ts';

const CONVERSATIONS = join(ROOT, '..', 'shared', 'data', 'mt-bench', 'question.jsonl');
const CONCURRENCY = 8;
/** Quick, but with gaps between the chunks, as a real stream has. */
const MODEL = 'sim?first_token_ms=20&chunk_ms=2';

const print = (line: string) => {
  process.stdout.write(`${line}\n`);
};

async function driveAll({ supervisor, dataDir }: SupervisedTask): Promise<number> {
  const log = (line: string) => {
    print(`drive | ${line}`);
  };
  const provider = await startProvider(supervisor, dataDir);
  const redis = await openRedis({ supervisor, dataDir, log });
  const mongo = await openMongo({ supervisor, dataDir, log });
  const service = await startService({
    supervisor,
    dataDir,
    redisUrl: redis.url,
    mongodbUri: mongo.uri,
    provider: { url: provider.url, model: MODEL },
  });
  const { tenantId, key } = await openTenant(service.admin, 'Drive');
  const report = await drive({
    conversations: parseConversations(await readFile(CONVERSATIONS, 'utf8')),
    url: service.url,
    key,
    isStreamed: (index) => index % 2 === 1,
    concurrency: CONCURRENCY,
    account: { admin: service.admin, tenantId },
    providerUrl: provider.url,
    signal: supervisor.signal,
    print,
  });
  const booked = await checkLedger(mongo.uri, tenantId, report, supervisor.signal);
  print(renderChecks([booked]));
  return report.passed && booked.passed ? 0 : 1;
}

/** The tiers' default: mobius costs one credit a token. */
async function checkLedger(
  mongodbUri: string,
  tenantId: string,
  { summary }: DriveReport,
  signal: AbortSignal,
): Promise<Check> {
  const ledger = await openLedger(mongodbUri);
  try {
    await ledger.waitFor(tenantId, summary.requests, signal);
    const { entries, tokens, chargedMicro } = await ledger.sum(tenantId);
    const expected = summary.promptTokens + summary.completionTokens;
    return {
      passed: entries === summary.requests && tokens === expected && chargedMicro === toMicro(summary.credits),
      text: `the ledger has ${entries} entries with ${tokens} tokens for ${summary.requests} requests with ${expected}`,
    };
  } finally {
    await ledger.close();
  }
}

if (existsSync(CONVERSATIONS)) process.exitCode = await runSupervised('drive', print, driveAll);
else print(`drive | skipped: ${CONVERSATIONS} is not there`);
