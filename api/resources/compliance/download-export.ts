import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';

import type { Response } from 'express';

import { ServiceError } from '../../../shared/errors/service-error.ts';
import type { ComplianceJobRow, ExportArchive } from '../../../shared/mongo/compliance/compliance-job-repository.ts';
import { archiveNameOf } from '../../../shared/mongo/compliance/export-archive-repository.ts';
import type { ExportArchiveRepository } from '../../../shared/mongo/compliance/export-archive-repository.ts';
import { defineEndpoint, SENT } from '../../contract/endpoint.ts';
import { dropUnread } from '../../relay/paced-writer.ts';
import { DRAIN_MS } from '../../relay/forward.ts';
import { findJob } from './compliance-jobs.ts';
import type { ComplianceDeps } from './compliance-jobs.ts';

const ONE_MORE = 'ask for another one with POST /compliance/exports';

/** The archive of an export that can be downloaded. Throws `conflict` and `gone`. */
function archiveOf({ status, archive, archiveGone }: ComplianceJobRow, now: number): ExportArchive {
  if (status === 'failed') throw new ServiceError('conflict', `This export has failed; ${ONE_MORE}.`);
  if (archive === undefined)
    throw new ServiceError('conflict', 'This export is not complete yet; look at its status and try again later.');
  if (archiveGone === true)
    throw new ServiceError('gone', `The file of this export was deleted together with an entity; ${ONE_MORE}.`);
  if (archive.expiresAt <= now)
    throw new ServiceError('gone', `The file of this export is no longer kept; ${ONE_MORE}.`);
  return archive;
}

function headOf({ _id: exportId }: ComplianceJobRow, { bytes, sha256 }: ExportArchive) {
  return {
    'Content-Type': 'application/zip',
    'Content-Length': bytes,
    'Content-Disposition': `attachment; filename="parley-${exportId}.zip"`,
    'Cache-Control': 'private, no-store',
    'Repr-Digest': `sha-256=:${Buffer.from(sha256, 'hex').toString('base64')}:`,
  };
}

/** Sends the archive chunk by chunk, no faster than the client reads. Throws only before the first byte. */
async function sendArchive(
  res: Response,
  job: ComplianceJobRow,
  archive: ExportArchive,
  { archives, drainMs }: { archives: ExportArchiveRepository; drainMs: number },
): Promise<void> {
  const name = archiveNameOf(job, archive);
  const first = await archives.read(name, 0);
  if (first === undefined) throw new ServiceError('gone', `The file of this export is no longer kept; ${ONE_MORE}.`);

  async function* chunks(): AsyncGenerator<Buffer> {
    yield first ?? Buffer.alloc(0);
    for (let number = 1; number < archive.chunks; number += 1) {
      const data = await archives.read(name, number);
      // The archive was deleted meanwhile. Cutting the connection shows that the download is incomplete.
      if (data === undefined) throw new Error('The archive is not there any more');
      yield data;
    }
  }

  res.writeHead(200, headOf(job, archive));
  dropUnread(res, drainMs);
  // `pipeline` has already cut the connection when the client leaves or the archive is deleted.
  await pipeline(Readable.from(chunks(), { objectMode: false }), res).catch(() => undefined);
}

export const downloadExport = defineEndpoint({
  method: 'GET',
  path: '/compliance/exports/:exportId/download',
  scopes: ['compliance'],
  tag: 'Compliance',
  summary: 'Download an export',
  description: 'A ZIP archive; 409 until it is complete, 410 after it has expired.',
  answers: {
    200: {
      description: 'The archive.',
      content: { 'application/zip': { description: 'Its bytes.' } },
      headers: ['Content-Disposition', 'Repr-Digest'],
    },
  },
  errors: ['conflict', 'gone'],
  examples: {},
  async handle({ req, res, principal, params, actor }, deps: ComplianceDeps) {
    const { compliance, events, readerPlaces, relayTimes, clock } = deps;
    const job = await findJob(deps, principal, 'export', params.exportId);
    const archive = archiveOf(job, clock.now());
    // A request for the head alone downloads nothing.
    if (req.method === 'HEAD') {
      res.writeHead(200, headOf(job, archive)).end();
      return SENT;
    }
    readerPlaces.enterDownload(res, principal);
    await events.emit(actor, 'compliance.export_downloaded', job._id);
    const { archives } = compliance;
    await sendArchive(res, job, archive, { archives, drainMs: relayTimes.drainMs ?? DRAIN_MS });
    return SENT;
  },
});
