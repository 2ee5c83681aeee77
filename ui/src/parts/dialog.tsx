// A window over the page: the browser's own `dialog`, which keeps the focus inside and closes with Escape.

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

interface Props {
  title: string;
  children: ComponentChildren;
  onClose(): void;
}

export function Dialog({ title, children, onClose }: Props) {
  const element = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const dialog = element.current;
    const before = document.activeElement;
    dialog?.showModal();
    return () => {
      dialog?.close();
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return (
    <dialog ref={element} aria-label={title} onCancel={onClose} onClick={(event) => event.target === element.current && onClose()}>
      <div class="dialog">
        <h2>{title}</h2>
        {children}
      </div>
    </dialog>
  );
}

interface ButtonProps {
  label: string;
  class?: string;
  title: string;
  /** What the window shows; `close` shuts it. */
  children(close: () => void): ComponentChildren;
}

/** A button that opens a window. */
export function DialogButton({ label, title, children, class: kind }: ButtonProps) {
  const [open, setOpen] = useState(false);
  const close = () => setOpen(false);
  return (
    <>
      <button type="button" class={kind} onClick={() => setOpen(true)}>
        {label}
      </button>
      {open && (
        <Dialog title={title} onClose={close}>
          {children(close)}
        </Dialog>
      )}
    </>
  );
}

interface ConfirmProps {
  label: string;
  title: string;
  /** What will be lost. */
  text: ComponentChildren;
  /** True if it was done. */
  action(): Promise<boolean>;
  small?: boolean;
}

/** A button for what cannot be taken back. */
export function ConfirmButton({ label, title, text, action, small }: ConfirmProps) {
  return (
    <DialogButton label={label} title={title} class={small ? "danger small" : "danger"}>
      {(close) => <Sure label={label} text={text} action={action} close={close} />}
    </DialogButton>
  );
}

function Sure({ label, text, action, close }: { label: string; text: ComponentChildren; action(): Promise<boolean>; close(): void }) {
  const [busy, setBusy] = useState(false);
  const act = async () => {
    setBusy(true);
    await action();
    close();
  };
  return (
    <>
      <p>{text}</p>
      <p class="buttons">
        <button type="button" onClick={close}>
          Cancel
        </button>
        <button type="button" class="danger" disabled={busy} onClick={act}>
          {label}
        </button>
      </p>
    </>
  );
}
