import type { ButtonHTMLAttributes, ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';

import { ApiError } from '../shell/api.ts';
import { localTime, utcTime, words } from './format.ts';
import { Icon } from './icon.tsx';
import { toast } from './toast.tsx';

export type Tone = 'success' | 'waiting' | 'failed' | 'money';

/** A button that acts on this page; a form has its own. */
export function Button({
  kind,
  children,
  ...button
}: { kind?: 'primary' | 'danger' | 'quiet' | undefined } & Omit<ButtonHTMLAttributes, 'class' | 'type'>) {
  return (
    <button {...button} type="button" class="button" data-kind={kind}>
      {children}
    </button>
  );
}

/** The title of a page, what it is for, and what one can do here. */
export function PageHead({
  title,
  about,
  children,
}: {
  title: string;
  about?: ComponentChildren;
  children?: ComponentChildren;
}) {
  return (
    <header class="page-head">
      <div>
        <h1>{title}</h1>
        {about !== undefined && <p>{about}</p>}
      </div>
      {children !== undefined && <div class="row">{children}</div>}
    </header>
  );
}

export function Card({
  title,
  actions,
  bare = false,
  children,
}: {
  title?: ComponentChildren;
  actions?: ComponentChildren;
  /** Without padding, for a table or a chart. */
  bare?: boolean;
  children: ComponentChildren;
}) {
  return (
    <section class="card">
      {title !== undefined && (
        <header>
          <h2>{title}</h2>
          {actions !== undefined && <div class="row">{actions}</div>}
        </header>
      )}
      {bare ? children : <div class="body">{children}</div>}
    </section>
  );
}

export function Stat({
  label,
  value,
  note,
  tone,
}: {
  label: string;
  /** Undefined while it is being fetched. */
  value: ComponentChildren;
  note?: ComponentChildren;
  tone?: Tone;
}) {
  return (
    <dl class="stat">
      <dt>{label}</dt>
      <dd style={tone === undefined ? undefined : { color: `var(--${tone})` }}>{value ?? <span class="skeleton" />}</dd>
      {note !== undefined && <dd class="note">{note}</dd>}
    </dl>
  );
}

/** How much of a whole is used. It turns as the rest runs out, unless it has a tone of its own. */
export function Meter({ value, label, tone }: { value: number; label: string; tone?: Tone }) {
  const part = Math.min(1, Math.max(0, value));
  const turned = part >= 1 ? 'failed' : part >= 0.8 ? 'waiting' : undefined;
  return (
    <span class="meter" role="img" aria-label={label} data-tone={tone ?? turned}>
      <span style={{ width: `${part * 100}%` }} />
    </span>
  );
}

/** States of all resources, by what they mean. */
const TONES: Readonly<Record<string, Tone>> = {
  active: 'success',
  completed: 'success',
  succeeded: 'success',
  closed: 'success',
  ok: 'success',
  paid: 'success',
  queued: 'waiting',
  in_progress: 'waiting',
  validating: 'waiting',
  pending: 'waiting',
  processing: 'waiting',
  cancelling: 'waiting',
  half_open: 'waiting',
  draining: 'waiting',
  open: 'waiting',
  failed: 'failed',
  refused: 'failed',
  revoked: 'failed',
  disabled: 'failed',
  suspended: 'failed',
  live: 'money',
  purchase: 'money',
};

export function Badge({ children, tone }: { children: string; tone?: Tone | undefined }) {
  return (
    <span class="badge" data-tone={tone ?? TONES[children]}>
      {words(children)}
    </span>
  );
}

/** A moment in Unix seconds: local, and UTC where the pointer rests. */
export function Time({ at, absent = '–' }: { at: number | null | undefined; absent?: string }) {
  if (at === null || at === undefined) return <span class="muted">{absent}</span>;
  const utc = utcTime(at);
  return (
    <time class="number" dateTime={utc} title={`${utc.replace('T', ' ').replace(/\.000Z$/, '')} UTC`}>
      {localTime(at)}
    </time>
  );
}

export function CopyButton({ text, label = 'Copy' }: { text: string; label?: string }) {
  const [isCopied, setCopied] = useState(false);
  return (
    <Button
      kind="quiet"
      aria-label={label}
      onClick={() => {
        void navigator.clipboard.writeText(text).then(() => {
          setCopied(true);
          setTimeout(() => {
            setCopied(false);
          }, 1_500);
          toast('Copied');
        });
      }}
    >
      <Icon name={isCopied ? 'check' : 'copy'} />
      {label}
    </Button>
  );
}

export function Code({ text, label }: { text: string; label: string }) {
  return (
    <div class="code">
      {/* Reachable by keyboard, because it may scroll. */}
      <pre tabIndex={0} aria-label={label}>
        {text}
      </pre>
      <CopyButton text={text} />
    </div>
  );
}

/** An error in the words of the service, with the id that its operators ask for. */
export function ErrorBox({ error, retry }: { error: unknown; retry?: () => void }) {
  const isKnown = error instanceof ApiError;
  const requestId = isKnown ? error.requestId : undefined;
  return (
    <div class="notice" data-tone="failed" role="alert">
      <p class="break">
        {isKnown || !(error instanceof TypeError)
          ? (error as Error).message
          : 'The service did not answer. Is it running?'}
      </p>
      <div class="row">
        {isKnown && <code>{error.code}</code>}
        {requestId !== undefined && (
          <>
            <code>{requestId}</code>
            <CopyButton text={requestId} label="Copy request id" />
          </>
        )}
        {retry !== undefined && <Button onClick={retry}>Try again</Button>}
      </div>
    </div>
  );
}

/** Does what somebody asked for. `failure` is what went wrong, for where it is seen. */
export function useAct() {
  const [error, setError] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);
  return {
    isBusy,
    failure: error === undefined ? undefined : <ErrorBox error={error} />,
    async act(action: () => Promise<unknown>): Promise<void> {
      setBusy(true);
      setError(undefined);
      try {
        await action();
      } catch (fault) {
        setError(fault);
      } finally {
        setBusy(false);
      }
    },
  };
}

/** A place without anything yet: what would be here, and the call that puts it there. */
export function Empty({
  title,
  children,
  call,
  action,
}: {
  title: string;
  children?: ComponentChildren;
  call?: string;
  action?: ComponentChildren;
}) {
  return (
    <div class="empty">
      <h3>{title}</h3>
      {children !== undefined && <p>{children}</p>}
      {action}
      {call !== undefined && <Code text={call} label="The call to make first" />}
    </div>
  );
}

/** The page of an address that leads nowhere. */
export const Nowhere = () => (
  <>
    <PageHead title="Not found" />
    <Empty title="There is no such page in this console.">The navigation lists those that there are.</Empty>
  </>
);

export function Facts({
  rows,
  across = false,
}: {
  /** Next to each other, as figures, instead of below each other. */
  across?: boolean;
  rows: readonly (readonly [string, ComponentChildren])[];
}) {
  return (
    <dl class={across ? 'figures' : 'facts'}>
      {rows.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value === '' || value === null || value === undefined ? <span class="muted">–</span> : value}</dd>
        </div>
      ))}
    </dl>
  );
}
