import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';

import { Button, ErrorBox } from './parts.tsx';

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
  const [error, setError] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);
  const send = async (event: SubmitEvent) => {
    event.preventDefault();
    setBusy(true);
    setError(undefined);
    try {
      await onSubmit(new FormData(event.target as HTMLFormElement));
      onClose();
    } catch (fault) {
      setError(fault);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <form onSubmit={(event) => void send(event)}>
        <h2>{title}</h2>
        {children}
        {error !== undefined && <ErrorBox error={error} />}
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
