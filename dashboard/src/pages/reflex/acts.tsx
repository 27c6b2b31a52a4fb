import { useSignal } from '@preact/signals'
import type { z } from 'zod'
import type { listedReflex } from '../../../../src/contract/reflex.ts'
import { hasRole, part, post, useGet } from '../../api/index.ts'
import { Confirm } from '../../ui/confirm.tsx'
import { Empty, Loaded } from '../../ui/feedback.tsx'
import { Section } from '../../ui/page.tsx'
import { Status } from '../../ui/status.tsx'
import { Table } from '../../ui/table.tsx'
import { visible } from '../../ui/text.tsx'
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
                  { title: 'Scope', of: ({ scope }) => scope, kind: 'scope' },
                  { title: 'Acts', cell: ({ acts: one }) => one ?? 'none', width: 6 },
                  { title: 'In shadow mode', cell: ({ watches }) => watches ?? '', width: 9 },
                  { title: 'Why', of: ({ reason }) => reason ?? '' },
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
  const verb = how === 'off' ? 'Switch off' : 'Roll back'
  return (
    <Confirm
      title={`${verb}: ${visible(id)}`}
      verb={verb}
      act={() => post<{ acts: number | null }>(`/v1/reflexes/${part(id)}/${how}`, how === 'rollback' ? { from: acts } : {})}
      done={({ acts: one }) => (one === null ? `No version of ${id} acts now.` : `${id}@${one} acts now.`)}
      onClose={onClose}
      onDone={reload}
    >
      <p>
        {how === 'off'
          ? 'All versions that act or run in shadow mode become drafts: none acts in any scope.'
          : `Version ${acts} becomes a draft, and the earlier one acts.`}
      </p>
    </Confirm>
  )
}
