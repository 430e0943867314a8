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
import { checkDrive } from './checks.ts';
import { openLedger } from '../harness/ledger.ts';
import { ROOT } from '../harness/program.ts';
import { CREDITS, openTenant } from '../harness/open-tenant.ts';
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
  const driven = await drive({
    conversations: files.flatMap((file) => parseConversations(readFileSync(file, 'utf8'))),
    url: service.url,
    key,
    isStreamed: (index) => index % 2 === 1,
    concurrency: CONCURRENCY,
    signal: supervisor.signal,
    print,
  });
  const ledger = await openLedger(mongo.uri);
  supervisor.defer('the ledger', ledger.close);
  await ledger.waitFor(tenantId, driven.records.length, supervisor.signal);
  const sum = await ledger.sum(tenantId);
  const { balance } = (await service.admin.find(`/admin/v1/tenants/${tenantId}`)) ?? {};
  const checks = await checkDrive(provider.url, driven, { ...sum, fallenMicro: toMicro(CREDITS - Number(balance)) });
  for (const { passed, text } of checks) print(`${passed ? 'PASS' : 'FAIL'}  ${text}`);
  return checks.every(({ passed }) => passed) ? 0 : 1;
}

process.exitCode = await runSupervised('drive', print, driveAll);
