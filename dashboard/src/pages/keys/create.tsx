import { useSignal } from '@preact/signals'
import { post, type Role } from '../../api/index.ts'
import { submitted, useAction } from '../../api/use-action.ts'
import { Dialog, DialogActions } from '../../ui/dialog.tsx'
import { ErrorBox } from '../../ui/feedback.tsx'
import { notify } from '../../ui/notices.tsx'

type Created = { id: string; name: string; key: string }
type NewKey = { name: string; roles: string[]; scopes: string[] }

const roles: { id: Role; text: string }[] = [
  { id: 'viewer', text: 'reads' },
  { id: 'publisher', text: 'sends events' },
  { id: 'operator', text: 'both, and changes settings, approves, retries' },
  { id: 'admin', text: 'everything, and keys' },
]

const words = (text: string): string[] => text.split(/[\s,]+/).filter((word) => word !== '')

/** Creates a key and shows it once. */
export function Create({ onClose }: { onClose: () => void }) {
  const created = useSignal<Created | null>(null)
  return created.value ? (
    <Shown created={created.value} onClose={onClose} />
  ) : (
    <Dialog title="Create a key" onClose={onClose}>
      <Form onCreated={(key) => (created.value = key)} onClose={onClose} />
    </Dialog>
  )
}

function Form({ onCreated, onClose }: { onCreated: (key: Created) => void; onClose: () => void }) {
  const { run, busy, problem } = useAction((key: NewKey) => post<Created>('/v1/keys', key))
  const submit = async (event: SubmitEvent) => {
    const of = submitted(event)
    const answer = await run({ name: of('name'), roles: [of('role'), ...words(of('more'))], scopes: words(of('scopes')) })
    if (answer.ok) onCreated(answer.value)
  }
  return (
    <form class="stack" onSubmit={(event) => void submit(event)}>
      <label>
        Name
        <input name="name" required maxLength={128} autocomplete="off" />
      </label>
      <fieldset>
        <legend>Role</legend>
        {roles.map(({ id, text }) => (
          <label key={id} class="inline" style={{ display: 'flex' }}>
            <input type="radio" name="role" value={id} defaultChecked={id === 'viewer'} />
            {id} <span class="quiet">{text}</span>
          </label>
        ))}
      </fieldset>
      <label>
        Further roles, for policies of skills (optional)
        <input name="more" autocomplete="off" />
      </label>
      <label>
        Scopes: patterns, separated by spaces
        <input name="scopes" required defaultValue="*" autocomplete="off" />
      </label>
      {problem && <ErrorBox problem={problem} />}
      <DialogActions verb="Create" isBusy={busy} onClose={onClose} />
    </form>
  )
}

function Shown({ created: { name, key }, onClose }: { created: Created; onClose: () => void }) {
  const copy = () => void navigator.clipboard.writeText(key).then(() => notify('Copied'))
  return (
    <Dialog title={`The key ${name}`} onClose={onClose}>
      <p>Copy it now: it is shown only once, and Reflex stores only its hash.</p>
      <label>
        Key
        <input readOnly value={key} onFocus={({ currentTarget }) => currentTarget.select()} />
      </label>
      <div class="actions" style={{ marginTop: '0.8rem' }}>
        <button type="button" class="primary" onClick={copy}>
          Copy
        </button>
        <button type="button" onClick={onClose}>
          Done
        </button>
      </div>
    </Dialog>
  )
}
