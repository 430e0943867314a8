import type { FinishedNotice } from '../../shared/contracts/finished-notice.ts';
import type { LeaderLease } from '../../shared/infra/redis/leases/leader-lease.ts';
import type { NoticeStore } from '../../shared/infra/redis/requests/notice-store.ts';

export interface PublishNoticesDeps {
  notices: NoticeStore;
  leases: Pick<LeaderLease, 'hold'>;
  /** Rejects while MongoDB is away. */
  publish: (notices: readonly FinishedNotice[]) => Promise<void>;
}

const TASK = 'notices';
const AT_ONCE = 200;

/**
 * Publishes what webhooks hear of a shard's requests beside their bookings. A notice is removed after it was published,
 * so it survives every worker; one that is published twice is one event.
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
