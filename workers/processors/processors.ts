import type { JobQueueName } from '../../shared/contracts/jobs.ts';
import { createComplianceWorker } from './compliance.ts';
import { createInferenceWorker } from './inference.ts';
import { createWebhookWorkers } from './webhook-delivery.ts';

/** What takes the jobs of each queue of the catalogue: a queue without a processor does not compile. */
export const PROCESSORS = {
  interactive: createInferenceWorker,
  batch: createInferenceWorker,
  webhooks: createWebhookWorkers,
  'webhooks-slow': createWebhookWorkers,
  compliance: createComplianceWorker,
} as const satisfies Record<JobQueueName, unknown>;
