/**
 * The drive of `.ci/run`: sends two-turn conversations through its own service, half of them streamed, and compares the
 * results with the provider's count and with the ledger in MongoDB. If the 80 conversations of MT-Bench lie next to the
 * project, they are sent as well.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { toMicro } from '../../shared/domain/pricing.ts';
import { parseConversations } from './conversations.ts';
import { drive } from './drive.ts';
import type { DriveReport } from './drive.ts';
import { openLedger } from '../harness/ledger.ts';
import { ROOT } from '../harness/program.ts';
import { openTenant } from '../harness/open-tenant.ts';
import { runSupervised } from '../harness/run-supervised.ts';
import type { SupervisedTask } from '../harness/run-supervised.ts';
import { startProcesses, superviseProvider } from '../harness/start-processes.ts';
import { superviseMongo, superviseRedis } from '../harness/stores.ts';

const CONVERSATIONS = join(import.meta.dirname, 'conversations.jsonl');
const MT_BENCH = join(ROOT, '..', 'shared', 'data', 'mt-bench', 'question.jsonl');
const CONCURRENCY = 8;
/** Fast, but with gaps between the chunks, like a real stream. */
const MODEL = 'sim?first_token_ms=20&chunk_ms=2';

const print = (line: string) => {
  process.stdout.write(`${line}\n`);
};

async function driveAll({ supervisor, dataDir }: SupervisedTask): Promise<number> {
  const log = (line: string) => {
    print(`drive | ${line}`);
  };
  const provider = await superviseProvider(supervisor, dataDir);
  const redis = await superviseRedis({ supervisor, dataDir, log });
  const mongo = await superviseMongo({ supervisor, dataDir, log });
  const service = await startProcesses({
    supervisor,
    dataDir,
    redisUrl: redis.url,
    mongodbUri: mongo.uri,
    provider: { url: provider.url, model: MODEL },
  });
  const { tenantId, key } = await openTenant(service.admin, 'Drive');
  const files = [CONVERSATIONS, ...(existsSync(MT_BENCH) ? [MT_BENCH] : [])];
  const report = await drive({
    conversations: files.flatMap((file) => parseConversations(readFileSync(file, 'utf8'))),
    url: service.url,
    key,
    isStreamed: (index) => index % 2 === 1,
    concurrency: CONCURRENCY,
    account: { admin: service.admin, tenantId },
    providerUrl: provider.url,
    signal: supervisor.signal,
    print,
  });
  const isBooked = await checkLedger(mongo.uri, tenantId, report, supervisor.signal);
  return report.passed && isBooked ? 0 : 1;
}

/** By default, mobius costs one credit per token. */
async function checkLedger(mongodbUri: string, tenantId: string, { summary }: DriveReport, signal: AbortSignal) {
  const ledger = await openLedger(mongodbUri);
  try {
    await ledger.waitFor(tenantId, summary.requests, signal);
    const { entries, tokens, chargedMicro } = await ledger.sum(tenantId);
    const expected = summary.promptTokens + summary.completionTokens;
    const isRight = entries === summary.requests && tokens === expected && chargedMicro === toMicro(summary.credits);
    const has = `${entries} entries with ${tokens} tokens for ${summary.requests} requests with ${expected}`;
    print(`${isRight ? 'PASS' : 'FAIL'}  the ledger has ${has}`);
    return isRight;
  } finally {
    await ledger.close();
  }
}

process.exitCode = await runSupervised('drive', print, driveAll);
