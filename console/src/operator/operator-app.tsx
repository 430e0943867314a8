import { Route, Switch } from 'wouter-preact';

import { Shell } from '../shell/shell.tsx';
import type { NavGroup } from '../shell/shell.tsx';
import { SignIn } from '../shell/sign-in.tsx';
import { PageHead } from '../ui/parts.tsx';
import { session, tryToken } from './api.ts';

const GROUPS: readonly NavGroup[] = [
  { items: [{ to: '/', label: 'Fleet', icon: 'fleet' }] },
  {
    title: 'Read',
    items: [
      { to: '../queues', label: 'Queues, job by job', icon: 'queues', isOutside: true },
      { to: '../docs/', label: 'API reference', icon: 'docs', isOutside: true },
    ],
  },
];

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
      account={<span class="muted">Administrator</span>}
      onSignOut={() => {
        session.end();
      }}
    >
      <Switch>
        <Route path="/">
          <PageHead title="Fleet" />
        </Route>
      </Switch>
    </Shell>
  );
}
