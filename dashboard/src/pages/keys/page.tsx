import { useSignal } from '@preact/signals'
import type { z } from 'zod'
import type { key } from '../../../../src/contract/principal.ts'
import { own, part, request } from '../../api/index.ts'
import { useAction } from '../../api/use-action.ts'
import { usePages } from '../../api/use-pages.ts'
import { Dialog, DialogActions } from '../../ui/dialog.tsx'
import { Empty, ErrorBox, Loading } from '../../ui/feedback.tsx'
import { notify } from '../../ui/notices.tsx'
import { Page } from '../../ui/page.tsx'
import { Table, type Column } from '../../ui/table.tsx'
import { Text } from '../../ui/text.tsx'
import { Time } from '../../ui/time.tsx'
import { Create } from './create.tsx'

export type Key = z.infer<typeof key>

export default function KeysPage() {
  const creating = useSignal(false)
  return (
    <Page
      title="Keys"
      needs="admin"
      actions={
        own.value?.base_roles.includes('admin') && (
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
  const { items, more, problem, loadMore, reload } = usePages<Key>('/v1/keys?limit=200')
  const revoking = useSignal<Key | null>(null)
  return (
    <>
      <p class="quiet">
        You are signed in with {own.value?.name}. The key of the deployment, REFLEX_ADMIN_KEY, is not listed: it is a secret of the Worker.
      </p>
      {problem && <ErrorBox problem={problem} onRetry={reload} />}
      {items === undefined && !problem && <Loading />}
      {items?.length === 0 && (
        <Empty title="No key was created yet.">
          <p class="quiet">Give each program and each person a key of their own, with the least roles and scopes that they need.</p>
        </Empty>
      )}
      {items && items.length > 0 && (
        <Table
          label="Keys"
          rows={items}
          columns={columns((chosen) => (revoking.value = chosen))}
          keyOf={({ id }) => id}
          onEnd={more ? loadMore : undefined}
        />
      )}
      {creating && (
        <Create
          onClose={() => {
            onCreated()
            reload()
          }}
        />
      )}
      {revoking.value && (
        <Revoke
          revoked={revoking.value}
          onClose={() => {
            revoking.value = null
            reload()
          }}
        />
      )}
    </>
  )
}

const columns = (revoke: (key: Key) => void): Column<Key>[] => [
  { title: 'Name', cell: ({ name }) => <Text text={name} /> },
  { title: 'Roles', cell: ({ roles }) => roles.join(', ') },
  { title: 'Scopes', cell: ({ scopes }) => scopes.join(', ') },
  { title: 'Created', width: '8rem', cell: ({ created_at }) => <Time at={created_at} /> },
  {
    title: 'Revoke',
    width: '7rem',
    cell: (key) => (
      <button type="button" class="plain bad" onClick={() => revoke(key)} aria-label={`Revoke ${key.name}`}>
        Revoke …
      </button>
    ),
  },
]

function Revoke({ revoked: { id, name }, onClose }: { revoked: Key; onClose: () => void }) {
  const { run, busy, problem } = useAction(() => request<undefined>('DELETE', `/v1/keys/${part(id)}`))
  const revoke = async () => {
    if (!(await run(undefined)).ok) return
    notify(`${name} is revoked`)
    onClose()
  }
  return (
    <Dialog title={`Revoke ${name}?`} onClose={onClose}>
      <p>What uses it is refused within 30 seconds everywhere. This cannot be undone.</p>
      {problem && <ErrorBox problem={problem} />}
      <DialogActions verb="Revoke" dangerous isBusy={busy} onClose={onClose} onAct={() => void revoke()} />
    </Dialog>
  )
}
