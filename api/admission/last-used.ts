import type { PrincipalRepository } from '../../shared/infra/mongo/tenants/principal-repository.ts';
import { repeat } from '../../shared/lifecycle/repeat.ts';

/** Often enough for people who look at `last_used_at`, rarely enough to cost nothing. */
const FLUSH_MS = 5_000;

export interface LastUsed {
  note(keyId: string, now: number): void;
  /** Writes the collected times and stops. */
  close(): Promise<void>;
}

/** Collects `last_used_at` of keys and writes it in batches (docs/architecture/facts.md section 6). */
export function createLastUsed(repository: Pick<PrincipalRepository, 'touch'>): LastUsed {
  let noted = new Map<string, number>();

  async function flush(): Promise<void> {
    if (noted.size === 0) return;
    const batch = noted;
    noted = new Map();
    try {
      await repository.touch(batch);
    } catch {
      // MongoDB is unavailable: keep the newer of both times for the next try.
      for (const [keyId, time] of batch) noted.set(keyId, Math.max(time, noted.get(keyId) ?? 0));
    }
  }

  const flushing = repeat(
    flush,
    () => FLUSH_MS,
    () => undefined,
  );
  return {
    note: (keyId, now) => {
      noted.set(keyId, now);
    },
    async close() {
      await flushing.stop();
      await flush();
    },
  };
}
