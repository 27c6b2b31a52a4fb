import { useSignal } from '@preact/signals'
import type { z } from 'zod'
import { keys } from '../../../../src/contract/lists/deployment.ts'
import type { key } from '../../../../src/contract/principal.ts'
import { hasRole, own, part, request, post, type Role } from '../../api/index.ts'
import { useAction, submitted } from '../../api/use-action.ts'
import { Dialog, DialogActions } from '../../ui/dialog.tsx'
import { ErrorBox } from '../../ui/feedback.tsx'
import { notify } from '../../ui/notices.tsx'
import { Page } from '../../ui/page.tsx'
import { Rows, useList } from '../../ui/list.tsx'
import { Confirm } from '../../ui/confirm.tsx'
import type { TableColumn } from '../../ui/table.tsx'

type Created = { id: string; name: string; key: string }
type NewKey = { name: string; roles: string[]; scopes: string[]; teaches?: true; expires_at?: string }

const roles: { id: Role; text: string }[] = [
  { id: 'viewer', text: 'reads' },
  { id: 'publisher', text: 'sends events' },
  { id: 'operator', text: 'both, and changes settings, approves, retries' },
  { id: 'admin', text: 'everything, and keys' },
]

const DAY_MS = 86_400_000
const words = (text: string): string[] => text.split(/[\s,]+/).filter((word) => word !== '')

/** Creates a key and shows it once. */
function Create({ onClose }: { onClose: () => void }) {
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
    const teaches = of('teaches') === 'yes' && { teaches: true as const }
    const days = Number(of('days'))
    const expires = days > 0 && { expires_at: new Date(Date.now() + days * DAY_MS).toISOString() }
    const about = { name: of('name'), roles: [of('role'), ...words(of('more'))], scopes: words(of('scopes')) }
    const answer = await run({ ...about, ...teaches, ...expires })
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
        <input name="scopes" required placeholder="shop/* support/inbox, or * for all" autocomplete="off" />
      </label>
      <label>
        Expires after days (empty: never)
        <input name="days" type="number" min={1} max={3650} />
      </label>
      <label class="inline" style={{ display: 'flex' }}>
        <input type="checkbox" name="teaches" value="yes" />
        teaches <span class="quiet">its scopes may learn from its events alone</span>
      </label>
      <ErrorBox problem={problem} />
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

type Key = z.infer<typeof key>

export default function KeysPage() {
  const creating = useSignal(false)
  return (
    <Page
      title="Keys"
      needs="admin"
      actions={
        hasRole('admin') && (
          <button type="button" class="primary" onClick={() => (creating.value = true)}>
            Create a key …
          </button>
        )
      }
    >
      <Keys creating={creating.value} onCreated={() => (creating.value = false)} />
    </Page>
  )
}

function Keys({ creating, onCreated }: { creating: boolean; onCreated: () => void }) {
  const pages = useList<Key>(keys, { limit: 200 })
  const revoking = useSignal<Key | null>(null)
  const revoked = revoking.value
  return (
    <>
      <p class="quiet">
        You are signed in with {own.value?.name}. The key of the deployment, REFLEX_ADMIN_KEY, is not listed: it is a secret of the Worker.
      </p>
      <Rows of={keys} label="Keys" pages={pages} own={columns((chosen) => (revoking.value = chosen))} empty="No key was created yet.">
        <p class="quiet">Give each program and each person a key of their own, with the least roles and scopes that they need.</p>
      </Rows>
      {creating && (
        <Create
          onClose={() => {
            onCreated()
            pages.reload()
          }}
        />
      )}
      {revoked && (
        <Confirm
          title={`Revoke ${revoked.name}?`}
          verb="Revoke"
          act={() => request<undefined>('DELETE', `/v1/keys/${part(revoked.id)}`)}
          done={() => `${revoked.name} is revoked`}
          onClose={() => {
            revoking.value = null
            pages.reload()
          }}
        >
          <p>What uses it is refused within 30 seconds everywhere. This cannot be undone.</p>
        </Confirm>
      )}
    </>
  )
}

const columns = (revoke: (key: Key) => void): TableColumn<Key>[] => [
  {
    title: 'Revoke',
    width: 7,
    cell: (key) => (
      <button type="button" class="plain bad" onClick={() => revoke(key)} aria-label={`Revoke ${key.name}`}>
        Revoke …
      </button>
    ),
  },
]
