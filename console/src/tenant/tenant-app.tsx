import { Route, Switch } from 'wouter-preact';

import { Shell } from '../shell/shell.tsx';
import type { NavGroup, NavItem } from '../shell/shell.tsx';
import { SignIn } from '../shell/sign-in.tsx';
import { Badge, Nowhere } from '../ui/parts.tsx';
import { mayUse, session, tryKey, useOwnKey } from './api.ts';
import type { ApiKey, Scope } from './api.ts';
import { BatchPage, Batches } from './batches.tsx';
import { Billing } from './billing.tsx';
import { Audit, Compliance } from './compliance.tsx';
import { Entities, EntityPage } from './entities.tsx';
import { KeyPage, Keys } from './keys.tsx';
import { Overview } from './overview.tsx';
import { Playground } from './playground.tsx';
import { RequestPage, Requests } from './requests.tsx';
import { Usage } from './usage.tsx';
import { WebhookPage, Webhooks } from './webhooks.tsx';

interface TenantItem extends NavItem {
  /** Any of them opens it; none: every key does. */
  scopes?: readonly Scope[];
}
interface TenantGroup extends NavGroup {
  items: readonly TenantItem[];
}

const GROUPS: readonly TenantGroup[] = [
  {
    items: [
      { to: '/', label: 'Overview', icon: 'overview' },
      { to: '/playground', label: 'Playground', icon: 'playground', scopes: ['chat.stream'] },
    ],
  },
  {
    title: 'Observe',
    items: [
      { to: '/requests', label: 'Requests', icon: 'requests', scopes: ['chat', 'chat.stream'] },
      { to: '/usage', label: 'Usage', icon: 'usage', scopes: ['usage'] },
      { to: '/billing', label: 'Billing', icon: 'billing', scopes: ['billing'] },
    ],
  },
  {
    title: 'Build',
    items: [
      { to: '/keys', label: 'API keys', icon: 'keys', scopes: ['keys'] },
      { to: '/entities', label: 'Entities', icon: 'entities', scopes: ['entities'] },
      { to: '/batches', label: 'Batches', icon: 'batches', scopes: ['chat'] },
      { to: '/webhooks', label: 'Webhooks', icon: 'webhooks', scopes: ['webhooks'] },
    ],
  },
  {
    title: 'Govern',
    items: [
      { to: '/compliance', label: 'Compliance', icon: 'compliance', scopes: ['compliance'] },
      { to: '/audit', label: 'Audit log', icon: 'audit', scopes: ['compliance'] },
    ],
  },
  { title: 'Read', items: [{ to: '../docs/', label: 'API reference', icon: 'docs', isOutside: true }] },
];

/** What the key opens. Until that is known, everything, so that nothing jumps into place for most keys. */
const groupsFor = (key: ApiKey | undefined): NavGroup[] =>
  GROUPS.map(({ items, ...group }) => ({
    ...group,
    items: items.filter(
      ({ scopes }) => key === undefined || scopes === undefined || scopes.some((scope) => mayUse(key, scope)),
    ),
  })).filter(({ items }) => items.length > 0);

function Account() {
  const key = useOwnKey();
  return (
    <div class="stack tight">
      <span class="row between">
        <strong class="break">{key?.name ?? ' '}</strong>
        {key !== undefined && <Badge>{key.mode}</Badge>}
      </span>
      <code class="muted">{key?.redacted_value ?? ' '}</code>
    </div>
  );
}

function Pages() {
  return (
    <Switch>
      <Route path="/" component={Overview} />
      <Route path="/playground" component={Playground} />
      <Route path="/requests" component={Requests} />
      <Route path="/requests/:id" component={RequestPage} />
      <Route path="/usage" component={Usage} />
      <Route path="/billing" component={Billing} />
      <Route path="/keys" component={Keys} />
      <Route path="/keys/:id" component={KeyPage} />
      <Route path="/entities" component={Entities} />
      <Route path="/entities/view" component={EntityPage} />
      <Route path="/batches" component={Batches} />
      <Route path="/batches/:id" component={BatchPage} />
      <Route path="/webhooks" component={Webhooks} />
      <Route path="/webhooks/:id" component={WebhookPage} />
      <Route path="/compliance" component={Compliance} />
      <Route path="/audit" component={Audit} />
      <Route component={Nowhere} />
    </Switch>
  );
}

function SignedIn() {
  const key = useOwnKey();
  return (
    <Shell
      groups={groupsFor(key)}
      account={<Account />}
      onSignOut={() => {
        session.end();
      }}
    >
      <Pages />
    </Shell>
  );
}

export function TenantApp() {
  const secret = session.useSecret();
  if (secret === undefined)
    return (
      <SignIn
        title="Sign in"
        label="API key"
        hint="It stays in this tab and is sent to this service alone. Closing the tab forgets it."
        session={session}
        check={tryKey}
      />
    );
  return <SignedIn />;
}
