import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';

import { Button, useAct } from './parts.tsx';

/** The browser's own dialog: it keeps the focus, Escape closes it, and what is behind it cannot be reached. */
export function Dialog({
  title,
  onClose,
  children,
}: {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    dialog.current?.showModal();
  }, []);
  return (
    <dialog ref={dialog} aria-label={title} onClose={onClose}>
      {children}
    </dialog>
  );
}

/** A form in a dialog. `onSubmit` may throw: the form stays, with the error. */
export function FormDialog({
  title,
  submit,
  danger = false,
  onClose,
  onSubmit,
  children,
}: {
  title: string;
  /** The word of the button. */
  submit: string;
  danger?: boolean;
  onClose: () => void;
  onSubmit: (form: FormData) => Promise<unknown>;
  children: ComponentChildren;
}) {
  const { act, isBusy, failure } = useAct();
  const send = (event: SubmitEvent) => {
    event.preventDefault();
    void act(async () => {
      await onSubmit(new FormData(event.target as HTMLFormElement));
      onClose();
    });
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <form onSubmit={send}>
        <h2>{title}</h2>
        {children}
        {failure}
        <div class="actions">
          <Button onClick={onClose}>Cancel</Button>
          <button type="submit" class="button" data-kind={danger ? 'danger' : 'primary'} disabled={isBusy}>
            {isBusy ? 'Working …' : submit}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
