import type {
  ComplianceKind,
  ComplianceScope,
  ComplianceStatus,
  DeletionReport,
  ExportedFile,
} from '../../../contracts/compliance.ts';

/** An export or a deletion. Times are milliseconds since the epoch. */
export interface ComplianceJobRow {
  _id: string;
  tenantId: string;
  kind: ComplianceKind;
  scope: ComplianceScope;
  /** Of scope `entity`, until the entity is deleted. */
  entityId?: string;
  /** The entity's pseudonym: of every deletion of an entity, and of its exports once it is deleted. */
  entityHash?: string;
  status: ComplianceStatus;
  /** Rises whenever a worker takes it, or takes it away from one: only the latest may write. */
  claim: number;
  /** When it may be taken (again). */
  claimedUntil: number;
  createdAt: number;
  completedAt?: number;
  /** Present until its webhook event has been raised. */
  untold?: boolean;
  /** Why it failed, for the tenant. */
  error?: string;
  /** Of a completed export. */
  archive?: ExportArchive;
  /** The archive was deleted before its time, because an entity in it was. */
  archiveGone?: boolean;
  reason?: string;
  report?: DeletionReport;
}

export interface ExportArchive {
  bytes: number;
  /** Hex. */
  sha256: string;
  chunks: number;
  /** Which claim has written it. */
  claim: number;
  files: ExportedFile[];
  expiresAt: number;
}

/** A piece of an archive; `_id` names export, claim and number. */
export interface ExportChunkRow {
  _id: string;
  tenantId: string;
  exportId: string;
  claim: number;
  data: Buffer;
  /** MongoDB deletes it then. */
  expiresAt: Date;
}

/** Nothing that was accepted up to `seq` may be stored under the entity's id any more. */
export interface ErasureRow {
  /** Tenant and pseudonym, or tenant and `*` for all of its entities. */
  _id: string;
  tenantId: string;
  seq: number;
  /** MongoDB deletes it then: whoever could still want to store something has long ended. */
  expiresAt: Date;
}
