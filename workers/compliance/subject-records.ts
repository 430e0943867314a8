import type { ComplianceSubject } from '../../shared/contracts/compliance.ts';
import type { KeyMode, SearchedSpace } from '../../shared/contracts/space.ts';
import type { SettlementRecord } from '../../shared/contracts/settlement.ts';
import type { Pseudonyms } from '../../shared/domain/compliance/pseudonyms.ts';
import { seqAt } from '../../shared/domain/requests/acceptance-order.ts';

/** Where a settlement record names its entity. */
const ENTITY_FIELD = /("entityId"\s*:\s*)("(?:[^"\\]|\\.)*")/g;

export const isWithin = ({ tenantId, mode }: SearchedSpace, row: { tenantId: string; mode: KeyMode }) =>
  row.tenantId === tenantId && (mode === 'any' || row.mode === mode);

/** Undefined: not a valid JSON string. */
function textOf(quoted: string): string | undefined {
  try {
    // If quoted text parses at all, it is a string.
    return JSON.parse(quoted) as string;
  } catch {
    return undefined;
  }
}

/** Whether a record names the subject and was accepted up to `seq`; a pseudonym names nobody. */
export function isRecordOf(subject: ComplianceSubject, seq: number, pseudonyms: Pseudonyms) {
  const { tenantId, entityId } = subject;
  return (record: SettlementRecord): boolean =>
    isWithin(subject, record) &&
    seqAt(record.acceptedAt) <= seq &&
    (entityId === undefined
      ? record.entityId !== undefined && !pseudonyms.isOne(tenantId, record.entityId)
      : record.entityId === entityId);
}

/**
 * A dead letter with the subject's names replaced by pseudonyms; undefined: it contains none of them, so it stays
 * unchanged. It may not be a valid record, so it is treated as plain text. The entity is replaced only in its own
 * field: an entity may be called `chat` or `live`, and the rest is somebody's money.
 */
export function withoutSubject(
  raw: string,
  { tenantId, mode, entityId }: ComplianceSubject,
  pseudonyms: Pseudonyms,
): string | undefined {
  const isOwn = raw.includes(JSON.stringify(tenantId)) && (mode === 'any' || raw.includes(`"mode":"${mode}"`));
  if (!isOwn) return undefined;
  const text = raw.replaceAll(ENTITY_FIELD, (field, before: string, quoted: string) => {
    // The expression may match a JSON string that is not valid.
    const plain = textOf(quoted);
    const isMeant = entityId === undefined ? plain !== undefined : plain === entityId;
    if (plain === undefined || !isMeant || pseudonyms.isOne(tenantId, plain)) return field;
    return before + JSON.stringify(pseudonyms.of(tenantId, plain));
  });
  return text === raw ? undefined : text;
}
