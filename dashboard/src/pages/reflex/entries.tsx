import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { part, useGet } from '../../api/index.ts'
import { Empty, Loaded } from '../../ui/feedback.tsx'
import { Select } from '../../ui/form.tsx'

/** Entries of a log that are searched, the newest. */
const SEARCHED = 5000
const PAGE = 1000

type EntriesProps<Entry> = {
  scopes: readonly string[]
  /** The kinds of entries to choose from, with their titles. */
  kinds: Readonly<Record<string, string>>
  match: (entry: Entry) => boolean
  children: (entries: Entry[]) => ComponentChildren
}

/** The newest entries of a kind in the log of one scope, newest first. */
export function Entries<Entry>({ scopes, kinds, match, children }: EntriesProps<Entry>) {
  const chosen = useSignal('')
  const kind = useSignal(Object.keys(kinds)[0] ?? '')
  const scope = chosen.value || (scopes[0] ?? '')
  const state = useGet<{ last_seq: number }>(scope === '' ? null : `/v1/scopes/${part(scope)}`)
  const after = Math.max(0, (state.value?.last_seq ?? 0) - SEARCHED)
  const path = `/v1/scopes/${part(scope)}/log?kind=${kind.value}&after=${after}&limit=${PAGE}`
  const found = useGet<{ items: Entry[] }>(state.value ? path : null)
  if (scope === '') return <Empty title="It was used in no scope of this key." />
  return (
    <>
      <div class="actions">
        <Select label="Scope" value={scope} options={scopes} onChange={(name) => (chosen.value = name)} />
        {Object.keys(kinds).length > 1 && <Select label="Show" value={kind.value} options={kinds} onChange={(one) => (kind.value = one)} />}
      </div>
      <Loaded data={found}>
        {({ items }) => {
          const own = items.filter(match).toReversed()
          return own.length === 0 ? (
            <Empty title={`None in the latest ${SEARCHED.toLocaleString('en')} entries of this log.`} />
          ) : (
            children(own)
          )
        }}
      </Loaded>
    </>
  )
}
