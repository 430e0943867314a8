import { CANARY_TRACE } from './canaries.ts';
import type { Evidence } from './evidence.ts';
import type { Verdict } from './verdict.ts';

/** I4: grants − Σ ledger = balance, the same in MongoDB and Redis, and nothing is held at rest; reconciliation agrees. */
export function checkBalances({ accounts, ledger, reconciliation }: Evidence): Verdict {
  const faults = accounts.flatMap(({ tenantId, grantedMicro, balanceMicro, ledgerMicro, leftovers }) => {
    const lines = ledger.filter((line) => line.tenantId === tenantId);
    const charged = lines.filter(({ type }) => type === 'usage').reduce((sum, { amountMicro }) => sum - amountMicro, 0);
    const found: string[] = [];
    if (grantedMicro - charged !== balanceMicro) {
      found.push(`granted ${grantedMicro} - charged ${charged} is not the balance of ${balanceMicro}`);
    }
    if (ledgerMicro !== balanceMicro) found.push(`Redis has the book at ${ledgerMicro}, MongoDB at ${balanceMicro}`);
    for (const [name, amount] of Object.entries(leftovers)) {
      if (amount !== 0) found.push(`${name} is ${amount} at rest`);
    }
    return found.map((fault) => `${tenantId}: ${fault}`);
  });
  const known = new Set(accounts.map(({ tenantId }) => tenantId));
  const strange = ledger.filter(({ tenantId }) => !known.has(tenantId));
  if (strange.length > 0) faults.push(`${strange.length} ledger lines belong to no tenant of this experiment`);
  const { exitCode, output } = reconciliation;
  if (exitCode !== 0) faults.push(`npm run reconcile -- --check ended with ${exitCode}: ${output}`);
  return { name: 'I4', faults };
}

/** I6: no process ended but those that were meant to, as they were meant to. */
export function checkExits({ exits }: Evidence): Verdict {
  const faults = exits
    .filter(({ how, planned }) => how !== planned)
    .map(({ name, how, planned }) => `${name} ended with ${how} instead of ${planned ?? 'going on'}`);
  return { name: 'I6', faults };
}

/** I7: queues, outbox and leases are empty at rest. */
export function checkQueues({ queues }: Evidence): Verdict {
  const faults = Object.entries(queues)
    .filter(([, count]) => count !== 0)
    .map(([name, count]) => `${count} in ${name}`);
  return { name: 'I7', faults };
}

/** I8: no secret and no conversation text in any log. */
export function checkLogs({ logs, secrets }: Evidence): Verdict {
  const faults = logs.flatMap(({ name, text }) => {
    const leaked = secrets.filter(({ value }) => text.includes(value)).map((secret) => `${name} has ${secret.name}`);
    const word = CANARY_TRACE.exec(text)?.[0];
    return word === undefined ? leaked : [...leaked, `${name} has conversation text (${word})`];
  });
  return { name: 'I8', faults };
}
