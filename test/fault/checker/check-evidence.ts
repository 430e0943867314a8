import { checkCharges, checkLedgerEntries, checkTerminals, checkTexts } from './check-requests.ts';
import { checkBalances, checkExits, checkLogs, checkQueues } from './check-rest.ts';
import { checkStoredTexts } from './check-stored-texts.ts';
import type { Evidence } from './evidence.ts';
import { joinById } from './requests-by-id.ts';
import type { Verdict } from './verdict.ts';

/** The invariants I1-I9 that hold after every experiment, whatever it did. */
export function checkEvidence(evidence: Evidence): Verdict[] {
  const joined = joinById(evidence);
  return [
    checkTerminals(evidence, joined),
    checkLedgerEntries(evidence, joined),
    checkCharges(evidence, joined),
    checkBalances(evidence),
    checkTexts(evidence),
    checkExits(evidence),
    checkQueues(evidence),
    checkLogs(evidence),
    checkStoredTexts(evidence, joined),
  ];
}
