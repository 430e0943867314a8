import type { FinishedNotice } from '../../shared/contracts/finished-notice.ts';
import type { LeaderLease } from '../../shared/infra/redis/leases/leader-lease.ts';
import type { NoticeStore } from '../../shared/infra/redis/requests/notice-store.ts';

export interface PublishNoticesDeps {
  notices: NoticeStore;
  leases: Pick<LeaderLease, 'hold'>;
  /** Rejects while MongoDB is unavailable. */
  publish: (notices: readonly FinishedNotice[]) => Promise<void>;
}

const TASK = 'notices';
const AT_ONCE = 200;

/**
 * Publishes to webhooks the events of a shard's requests that do not come from bookings. A notice is removed only once
 * it is published, so no worker's death loses it; a notice published twice is still one event.
 */
export function createPublishNotices({ notices, leases, publish }: PublishNoticesDeps) {
  return async (shard: number): Promise<void> => {
    if (!(await leases.hold(shard, TASK))) return;
    const found = await notices.read(shard, AT_ONCE);
    if (found.length === 0) return;
    await publish(found.flatMap(({ notice }) => (notice === undefined ? [] : [notice])));
    await notices.remove(
      shard,
      found.map(({ id }) => id),
    );
  };
}
