import { useQuery } from '@tanstack/preact-query';

import { ok } from '../shell/api.ts';
import { count, duration } from '../ui/format.ts';
import { Button, Card, ErrorBox, PageHead, Stat, useAct } from '../ui/parts.tsx';
import { toast } from '../ui/toast.tsx';
import { LIVE, api, useMayWrite } from './api.ts';

/** From finished requests to the ledger. */
export function Settlement() {
  const mayWrite = useMayWrite();
  const query = useQuery({ queryKey: ['settlement'], queryFn: () => ok(api.GET('/settlement')), ...LIVE });
  const state = query.data;
  const { act, failure } = useAct();
  const requeue = async () => {
    const { requeued } = await ok(api.POST('/settlement/requeue'));
    toast(`${count(requeued)} records are tried again`);
    await query.refetch();
  };
  const bad = (value: number | null | undefined) => ((value ?? 0) === 0 ? {} : { tone: 'failed' as const });
  return (
    <>
      <PageHead
        title="Settlement"
        about="Every ended request becomes one entry of the ledger. What is on its way is here."
      />
      {query.error !== null && <ErrorBox error={query.error} retry={() => void query.refetch()} />}
      <div class="stats">
        <Stat label="To be booked" value={state && count(state.outbox)} note="finished requests" />
        <Stat
          label="Lag"
          value={state && duration(state.lag_seconds * 1_000)}
          note="age of the oldest that is not booked"
          {...((state?.lag_seconds ?? 0) > 60 ? { tone: 'waiting' as const } : {})}
        />
        <Stat
          label="Drift"
          value={state && (state.drift === null ? '–' : count(state.drift))}
          note="what the last reconciliation could not repair"
          {...bad(state?.drift)}
        />
        <Stat
          label="Dead letters"
          value={state && count(state.dead_letters)}
          note="could not be booked"
          {...bad(state?.dead_letters)}
        />
      </div>
      {mayWrite && (
        <Card title="Dead letters">
          <div class="stack">
            <p class="muted">
              A record that could not be booked keeps its hold, so no credit is lost or spent twice meanwhile. Trying
              again is safe: what was booked is not booked twice.
            </p>
            {failure}
            <div>
              <Button disabled={(state?.dead_letters ?? 0) === 0} onClick={() => void act(requeue)}>
                Try all again
              </Button>
            </div>
          </div>
        </Card>
      )}
    </>
  );
}
