import { BUCKET_MS, rollUpIdOf } from '../../shared/domain/roll-up.ts';
import type { RollUpKey } from '../../shared/domain/roll-up.ts';
import type { TestService, TestTenant } from '../support/service.ts';

const DAYS = 30;

/** A share from 0 to 1 that looks like chance and is the same every time. */
const wave = (at: number, seed: number) => Math.abs(Math.sin(at * 12.9898 + seed * 78.233) * 43_758.5453) % 1;

/** A month of traffic that was booked, so that every chart has something to show. */
export async function bookMonth(service: TestService, { tenantId, keyId }: TestTenant): Promise<void> {
  const now = Date.now();
  const rows = Array.from({ length: DAYS * 24 }, (_, back) => now - back * BUCKET_MS['1h']).flatMap((time, at) =>
    (['mobius', 'oloid'] as const).flatMap((tier, which) => {
      const daylight = Math.max(0.1, Math.sin((((time / BUCKET_MS['1h']) % 24) / 24) * Math.PI));
      const requests = Math.round(daylight * (40 - which * 26) * (0.6 + wave(at, which) * 0.8));
      const counts = {
        requests,
        promptTokens: requests * 180,
        completionTokens: requests * (240 + Math.round(wave(at, 3) * 80)),
        costMicro: requests * 420 * (which === 0 ? 1 : 4) * 1_000_000,
        estimatedRequests: 0,
        spendNano: 0,
      };
      return (['1h', '1d'] as const).flatMap((width) =>
        (['all', 'entity'] as const).map((scope) => {
          const key: RollUpKey = {
            ...{ tenantId, width, keyId, tier, mode: 'live', endpoint: which === 0 ? 'chat.stream' : 'chat', scope },
            ...{ startMs: time - (time % BUCKET_MS[width]), provider: 'simulated', model: 'sim', currency: '' },
            entityId: scope === 'all' ? '' : `visitor-${(at % 5) + 1}`,
          };
          return { key, counts };
        }),
      );
    }),
  );
  await service.models.usageRollUps.bulkWrite(
    rows.map(({ key, counts }) => ({
      updateOne: { filter: { _id: rollUpIdOf(key) }, update: { $setOnInsert: key, $inc: counts }, upsert: true },
    })),
  );
}
