import type { Redis } from 'ioredis';

/** Less than leaders have: a lease that is longer is taken for one from before the clock was put back (lead.lua). */
const LEASE_MS = 4_000;
const RENEW_MS = 500;

/** Leads at a task in place of every worker, and does nothing. Returns what gives the lead up. */
export async function holdLead(redis: Pick<Redis, 'set' | 'del'>, lease: string): Promise<() => Promise<void>> {
  const renew = () => redis.set(lease, 'a process that does nothing', 'PX', LEASE_MS);
  await renew();
  const timer = setInterval(() => void renew(), RENEW_MS);
  return async () => {
    clearInterval(timer);
    await redis.del(lease);
  };
}
