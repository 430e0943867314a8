import type { SearchedSpace } from './space.ts';

export type ComplianceScope = 'tenant' | 'entity';

/** The data of one entity, or of everybody the tenant has talked to, in one mode or both. */
export interface ComplianceSubject extends SearchedSpace {
  /** Undefined: the whole tenant. */
  entityId?: string | undefined;
}

export interface KnownRequest {
  requestId: string;
  /** The name of its Idempotency-Key. */
  name?: string | undefined;
}

export type ComplianceKind = 'export' | 'deletion';

export type ComplianceStatus = 'queued' | 'in_progress' | 'completed' | 'failed';

/** The stores in which a deletion counts what it found, as its report names them. */
export const DELETION_STORES = [
  'entity',
  'history',
  'streams',
  'queued_jobs',
  'answers',
  'requests',
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

export interface ExportedFile {
  name: string;
  rows: number;
  bytes: number;
  sha256: string;
}

/** `manifest.json` of an export. */
export interface ExportManifest {
  id: string;
  object: 'compliance.export.manifest';
  scope: ComplianceScope;
  tenant_id: string;
  entity_id: string | null;
  /** Unix seconds when the export began to read. */
  created_at: number;
  files: ExportedFile[];
}
