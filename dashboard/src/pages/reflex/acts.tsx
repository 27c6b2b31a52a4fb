import { useSignal } from '@preact/signals'
import type { z } from 'zod'
import type { listedReflex } from '../../../../src/contract/reflex.ts'
import { hasRole, part, post, useGet } from '../../api/index.ts'
import { useAction } from '../../api/use-action.ts'
import { Dialog } from '../../ui/dialog.tsx'
import { Empty, ErrorBox, Loaded } from '../../ui/feedback.tsx'
import { ScopeLink } from '../../ui/links.tsx'
import { notify } from '../../ui/notices.tsx'
import { Section } from '../../ui/page.tsx'
import { Status } from '../../ui/status.tsx'
import { Table } from '../../ui/table.tsx'
import { Text, visible } from '../../ui/text.tsx'
import { Time } from '../../ui/time.tsx'

type Idle = z.infer<typeof listedReflex>['idle']
type Where = { scope: string; acts: number | null; watches: number | null; reason: string | null }

type StateProps = { version: number; state: string; idle?: Idle | undefined; acts: number | null }

/** The state of a version, and which other one acts; an active one by proof may act nowhere. */
export function State({ version, state, idle, acts }: StateProps) {
  if (!idle)
    return (
      <>
        <Status status={state} />
        {acts !== null && acts !== version && `, version ${acts} acts`}
      </>
    )
  return (
    <span title={idle.reason}>
      {visible(state)}, does not act
      {idle.since !== null && (
        <>
          {' '}
          since <Time at={idle.since} />
        </>
      )}
    </span>
  )
}

type ActsProps = { id: string; acts: number | null; reload: () => void }

/** The scopes with the reflex in their chain, what acts there, and the ways to stop it. */
export function Acts({ id, acts, reload }: ActsProps) {
  const data = useGet<{ items: Where[]; next_cursor: string | null }>(`/v1/reflexes/${part(id)}/scopes`)
  const asked = useSignal<'off' | 'rollback' | null>(null)
  const actions = hasRole('operator') && acts !== null && (
    <>
      <button type="button" onClick={() => (asked.value = 'rollback')}>
        Roll back
      </button>
      <button type="button" class="danger" onClick={() => (asked.value = 'off')}>
        Switch off
      </button>
    </>
  )
  const changed = () => {
    reload()
    data.reload()
  }
  return (
    <Section title="What acts now" actions={actions}>
      <Loaded data={data}>
        {({ items, next_cursor }) => (
          <>
            {items.length === 0 && <Empty title="No scope has it in its chain." />}
            {items.length > 0 && (
              <Table
                label="What acts in each scope"
                rows={items}
                keyOf={({ scope }) => scope}
                columns={[
                  { title: 'Scope', cell: ({ scope }) => <ScopeLink scope={scope} /> },
                  { title: 'Acts', cell: ({ acts: one }) => one ?? 'none', width: '6rem' },
                  { title: 'In shadow mode', cell: ({ watches }) => watches ?? '', width: '9rem' },
                  { title: 'Why', cell: ({ reason }) => <Text text={reason ?? ''} /> },
                ]}
              />
            )}
            {next_cursor !== null && <p>There are further scopes.</p>}
          </>
        )}
      </Loaded>
      {asked.value && acts !== null && <Stop id={id} acts={acts} how={asked.value} onClose={() => (asked.value = null)} reload={changed} />}
    </Section>
  )
}

type StopProps = ActsProps & { acts: number; how: 'off' | 'rollback'; onClose: () => void }

function Stop({ id, acts, how, onClose, reload }: StopProps) {
  const { run, busy, problem } = useAction((body: object) => post<{ acts: number | null }>(`/v1/reflexes/${part(id)}/${how}`, body))
  const submit = async (event: SubmitEvent) => {
    event.preventDefault()
    const answer = await run(how === 'rollback' ? { from: acts } : {})
    if (!answer.ok) return
    notify(answer.value.acts === null ? `No version of ${id} acts now.` : `${id}@${answer.value.acts} acts now.`)
    reload()
    onClose()
  }
  const title = how === 'off' ? 'Switch off' : 'Roll back'
  return (
    <Dialog title={`${title}: ${visible(id)}`} onClose={onClose}>
      <form class="stack" onSubmit={(event) => void submit(event)}>
        <p>
          {how === 'off'
            ? 'All versions that act or run in shadow mode become drafts: none acts in any scope.'
            : `Version ${acts} becomes a draft, and the earlier one acts.`}
        </p>
        {problem && <ErrorBox problem={problem} />}
        <button type="submit" class="danger" disabled={busy}>
          {busy ? 'Changing …' : title}
        </button>
      </form>
    </Dialog>
  )
}
