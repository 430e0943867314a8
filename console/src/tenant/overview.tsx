import { useQuery } from '@tanstack/preact-query';

import { ok } from '../shell/api.ts';
import { credits } from '../ui/format.ts';
import { PageHead, Stat } from '../ui/parts.tsx';
import { api } from './api.ts';

export function Overview() {
  const billing = useQuery({ queryKey: ['billing'], queryFn: () => ok(api.GET('/billing')) }).data;
  return (
    <>
      <PageHead title="Overview" />
      <div class="stats">
        <Stat label="Balance" value={billing && credits(billing.balance)} tone="money" note="credits" />
      </div>
    </>
  );
}
