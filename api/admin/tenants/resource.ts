import { toCredits } from '../../../shared/domain/pricing/pricing.ts';
import type { TenantRow } from '../../../shared/infra/mongo/tenants/tenant-repository.ts';
import type { Balance } from './balance.ts';

export function toTenantResource(row: TenantRow, { balanceMicro, heldMicro }: Balance) {
  return {
    id: row._id,
    object: 'tenant',
    created_at: Math.floor(row.createdAt / 1000),
    name: row.name,
    status: row.status,
    default_model: row.defaultModel,
    rpm: row.rpm,
    tpm: row.tpm,
    daily_requests: row.dailyRequests,
    chat_rpm: row.chatRpm,
    stream_rpm: row.streamRpm,
    monthly_token_budget: row.monthlyTokenBudget,
    test_daily_tokens: row.testDailyTokens,
    subject: row.subject ?? null,
    grade: row.grade ?? null,
    on_disconnect: row.onDisconnect,
    moderation: row.moderation ?? null,
    balance: toCredits(balanceMicro),
    held: toCredits(heldMicro),
    available: toCredits(balanceMicro - heldMicro),
  };
}
