import type { OnEarlyEnd } from '../../shared/contracts/settlement.ts';
import type { ErasureGatedStores } from '../../shared/erasure-gate.ts';
import type { ProcessParts } from '../../shared/process-parts.ts';
import type { ChatQueues } from '../../shared/queue/queues.ts';
import type { AccountStore } from '../../shared/redis/stores/account-store.ts';
import type { LeaderLease } from '../../shared/redis/stores/leader-lease.ts';
import type { AdmissionStore } from '../../shared/requests/admission-store.ts';
import type { RequestStore } from '../../shared/requests/delivery-store.ts';
import type { HttpClient } from '../providers/http-client.ts';
import type { Breakers } from './breakers.ts';
import type { Capacities } from './capacities.ts';
import type { WorkerEventBus } from './worker-events.ts';

/** Every part of a worker is opened with these (workers/compose.ts), and takes what it uses. */
export interface WorkerParts extends ProcessParts, ErasureGatedStores {
  workerId: string;
  http: HttpClient;
  telemetry: WorkerEventBus;
  breakers: Breakers;
  capacities: Capacities;
  leases: LeaderLease;
  queues: ChatQueues;
  requests: RequestStore;
  admissions: AdmissionStore;
  accountStore: AccountStore;
  onEarlyEnd: OnEarlyEnd;
}
