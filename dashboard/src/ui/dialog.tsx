import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef } from 'preact/hooks'
import type { Signal } from '@preact/signals'

type DialogProps = { title: string; onClose: () => void; children: ComponentChildren; wide?: boolean }

/** Modal while it is rendered. Escape closes it, and the focus returns to where it was. */
export function Dialog({ title, onClose, children, wide = false }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null)
  const id = useId()
  useEffect(() => {
    const opener = document.activeElement
    dialog.current?.showModal()
    // Otherwise the focus is on the button that closes it. A reason is what people write first.
    for (const field of ['input, textarea, select', '[name=reason]']) dialog.current?.querySelector<HTMLElement>(field)?.focus()
    return () => {
      if (opener instanceof HTMLElement && opener.isConnected) opener.focus()
    }
  }, [])
  // Escape would hide the dialog a moment before the page knows: a key in between would be lost.
  const cancel = (event: Event) => {
    event.preventDefault()
    onClose()
  }
  return (
    <dialog ref={dialog} aria-labelledby={id} class={wide ? 'wide' : ''} onCancel={cancel} onClose={onClose}>
      <div class="heading">
        <h2 id={id}>{title}</h2>
        <button type="button" class="plain" aria-label="Close" onClick={onClose}>
          ✕
        </button>
      </div>
      {children}
    </dialog>
  )
}

type ActionsProps = {
  verb: string
  isBusy: boolean | Signal<boolean>
  onClose: () => void
  /** Without it, the button submits the form around it. */
  onAct?: () => void
  dangerous?: boolean
}

export function DialogActions({ verb, isBusy, onClose, onAct, dangerous = false }: ActionsProps) {
  return (
    <div class="actions">
      <button type={onAct ? 'button' : 'submit'} class={dangerous ? 'danger' : 'primary'} disabled={isBusy} onClick={onAct}>
        {verb}
      </button>
      <button type="button" onClick={onClose}>
        Cancel
      </button>
    </div>
  )
}
