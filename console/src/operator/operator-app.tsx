import { Route, Switch } from 'wouter-preact';

import { Shell } from '../shell/shell.tsx';
import type { NavGroup } from '../shell/shell.tsx';
import { SignIn } from '../shell/sign-in.tsx';
import { Badge, Nowhere } from '../ui/parts.tsx';
import { session, tryToken, useOwnToken } from './api.ts';
import { Audit } from './audit.tsx';
import { Fleet } from './fleet.tsx';
import { Money } from './money.tsx';
import { Providers } from './providers.tsx';
import { RequestPage, Requests } from './requests.tsx';
import { Settlement } from './settlement.tsx';
import { TenantPage } from './tenant.tsx';
import { Tenants } from './tenants.tsx';

const GROUPS: readonly NavGroup[] = [
  {
    items: [
      { to: '/', label: 'Fleet', icon: 'fleet' },
      { to: '/requests', label: 'Requests', icon: 'requests' },
      { to: '/providers', label: 'Providers', icon: 'providers' },
      { to: '/tenants', label: 'Tenants', icon: 'tenants' },
    ],
  },
  {
    title: 'Money',
    items: [
      { to: '/money', label: 'Cost and margin', icon: 'billing' },
      { to: '/settlement', label: 'Settlement', icon: 'settlement' },
    ],
  },
  { title: 'Govern', items: [{ to: '/audit', label: 'Audit log', icon: 'audit' }] },
  {
    title: 'Read',
    items: [
      { to: '../queues', label: 'Queues, job by job', icon: 'queues', isOutside: true },
      { to: '../docs/', label: 'API reference', icon: 'docs', isOutside: true },
    ],
  },
];

function Account() {
  const token = useOwnToken();
  return (
    <span class="row between">
      <strong class="break">{token?.name ?? ' '}</strong>
      {token !== undefined && <Badge>{token.role === 'read' ? 'reads only' : 'reads and writes'}</Badge>}
    </span>
  );
}

export function OperatorApp() {
  const secret = session.useSecret();
  if (secret === undefined)
    return (
      <SignIn
        title="Administration"
        label="Administrator token"
        hint="It stays in this tab and is sent to this service alone. Closing the tab forgets it."
        session={session}
        check={tryToken}
      />
    );
  return (
    <Shell
      face="operator"
      groups={GROUPS}
      account={<Account />}
      onSignOut={() => {
        session.end();
      }}
    >
      <Switch>
        <Route path="/" component={Fleet} />
        <Route path="/requests" component={Requests} />
        <Route path="/requests/:id" component={RequestPage} />
        <Route path="/providers" component={Providers} />
        <Route path="/tenants" component={Tenants} />
        <Route path="/tenants/:id" component={TenantPage} />
        <Route path="/money" component={Money} />
        <Route path="/settlement" component={Settlement} />
        <Route path="/audit" component={Audit} />
        <Route component={Nowhere} />
      </Switch>
    </Shell>
  );
}
