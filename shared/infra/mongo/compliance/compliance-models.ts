import { Schema } from 'mongoose';
import type { Connection, Model } from 'mongoose';

import type { ExportedFile } from '../../../contracts/compliance.ts';
import type { ComplianceJobRow, ErasureRow, ExportArchive, ExportChunkRow } from './compliance-rows.ts';
import type { AuditRow } from '../rows.ts';
import { count, flag, number, options, required, text } from '../schema-parts.ts';

const file = new Schema<ExportedFile>({ name: required, rows: count, bytes: count, sha256: required }, { _id: false });
const archive = new Schema<ExportArchive>(
  { bytes: count, sha256: required, chunks: count, claim: count, files: [file], expiresAt: count },
  { _id: false },
);
const jobSchema = new Schema<ComplianceJobRow>(
  {
    _id: required,
    tenantId: required,
    kind: required,
    scope: required,
    entityId: text,
    entityHash: text,
    status: required,
    claim: count,
    claimedUntil: count,
    createdAt: count,
    completedAt: number,
    untold: flag,
    error: text,
    archive: { type: archive, required: false },
    archiveGone: flag,
    reason: text,
    report: { type: Schema.Types.Mixed },
  },
  options,
)
  .index({ tenantId: 1, kind: 1, createdAt: -1 })
  .index({ status: 1, claimedUntil: 1 })
  .index({ untold: 1 }, { partialFilterExpression: { untold: true } });

const chunkSchema = new Schema<ExportChunkRow>(
  {
    _id: required,
    tenantId: required,
    exportId: required,
    claim: count,
    data: { type: Buffer, required: true },
    expiresAt: { type: Date, required: true },
  },
  options,
)
  .index({ tenantId: 1, exportId: 1 })
  .index({ expiresAt: 1 }, { expireAfterSeconds: 0 });

const erasureSchema = new Schema<ErasureRow>(
  { _id: required, tenantId: required, seq: count, expiresAt: { type: Date, required: true } },
  options,
).index({ expiresAt: 1 }, { expireAfterSeconds: 0 });

const auditSchema = new Schema<AuditRow>(
  {
    _id: required,
    tenantId: required,
    createdAt: count,
    actor: required,
    action: required,
    target: required,
    requestId: required,
    details: { type: Schema.Types.Mixed, default: {} },
  },
  options,
).index({ tenantId: 1, createdAt: -1 });

export interface ComplianceModels {
  audit: Model<AuditRow>;
  complianceJobs: Model<ComplianceJobRow>;
  exportChunks: Model<ExportChunkRow>;
  erasures: Model<ErasureRow>;
}

export function createComplianceModels(connection: Connection): ComplianceModels {
  return {
    audit: connection.model<AuditRow>('Audit', auditSchema, 'audit_log'),
    complianceJobs: connection.model<ComplianceJobRow>('ComplianceJob', jobSchema, 'compliance_jobs'),
    exportChunks: connection.model<ExportChunkRow>('ExportChunk', chunkSchema, 'compliance_export_chunks'),
    erasures: connection.model<ErasureRow>('Erasure', erasureSchema, 'erasures'),
  };
}
