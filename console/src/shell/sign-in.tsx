import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';

import { Logo } from '../ui/icon.tsx';
import { ErrorBox } from '../ui/parts.tsx';
import { textOf } from '../ui/field.tsx';
import { queries } from './api.ts';
import type { Session } from './session.ts';
import { ThemeToggle } from './theme.tsx';

/** Asks for the secret; `check` tries it before the session begins, and throws where it is refused. */
export function SignIn({
  title,
  label,
  hint,
  session,
  check,
}: {
  title: string;
  label: string;
  hint: ComponentChildren;
  session: Session;
  check: (secret: string) => Promise<unknown>;
}) {
  const [error, setError] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);
  const notice = session.notice();
  const begin = async (event: SubmitEvent) => {
    event.preventDefault();
    const secret = textOf(new FormData(event.target as HTMLFormElement), 'secret')?.trim();
    if (secret === undefined) return;
    setBusy(true);
    try {
      await check(secret);
      queries.clear();
      session.begin(secret);
    } catch (fault) {
      setError(fault);
      setBusy(false);
    }
  };
  return (
    <main class="sign-in">
      <div class="row between">
        <span class="brand">
          <Logo /> Parley
        </span>
        <ThemeToggle />
      </div>
      <form class="card" onSubmit={(event) => void begin(event)}>
        <div class="body stack">
          <h1>{title}</h1>
          {notice !== undefined && error === undefined && (
            <p class="notice" data-tone="waiting" role="status">
              {notice}
            </p>
          )}
          <div class="field">
            <label for="secret">{label}</label>
            <input
              class="input mono"
              id="secret"
              name="secret"
              type="password"
              required
              autocomplete="off"
              spellcheck={false}
              autofocus
              aria-describedby="secret-hint"
            />
            <span class="hint" id="secret-hint">
              {hint}
            </span>
          </div>
          {error !== undefined && <ErrorBox error={error} />}
          <button type="submit" class="button" data-kind="primary" disabled={isBusy}>
            {isBusy ? 'Checking …' : 'Sign in'}
          </button>
        </div>
      </form>
    </main>
  );
}
