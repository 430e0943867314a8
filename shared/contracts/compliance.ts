import type { SearchedSpace } from './space.ts';

/** Whom an export or a deletion is about: one entity, or everybody the tenant has talked to. */
export type ComplianceScope = 'tenant' | 'entity';

/** Whose data it is: one entity's, or everybody's the tenant has talked to, of one mode or of both. */
export interface ComplianceSubject extends SearchedSpace {
  /** Undefined: the whole tenant. */
  entityId?: string | undefined;
}

/** A request of a subject, as far as a store knows it. */
export interface KnownRequest {
  requestId: string;
  /** What stands for its Idempotency-Key. */
  name?: string | undefined;
}

export type ComplianceKind = 'export' | 'deletion';

export type ComplianceStatus = 'queued' | 'in_progress' | 'completed' | 'failed';

/** What a deletion has found in each store, in the words of its report. */
export const DELETION_STORES = [
  'entity',
  'history',
  'streams',
  'queued_jobs',
  'answers',
  'idempotency_records',
  'batches',
  'webhook_payloads',
  'exports',
  'ledger_lines',
  'usage_rollups',
  'audit_entries',
] as const;

type DeletionStore = (typeof DELETION_STORES)[number];
export type DeletionReport = Partial<Record<DeletionStore, number>>;

/** One file of an export. */
export interface ExportedFile {
  name: string;
  /** Lines. */
  rows: number;
  bytes: number;
  /** Hex. */
  sha256: string;
}

/** `manifest.json` of an export. */
export interface ExportManifest {
  id: string;
  object: 'compliance.export.manifest';
  scope: ComplianceScope;
  tenant_id: string;
  entity_id: string | null;
  /** Unix seconds: when the export began to read. */
  created_at: number;
  files: ExportedFile[];
}
