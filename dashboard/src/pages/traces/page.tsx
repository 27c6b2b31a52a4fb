import { useLocation } from 'preact-iso'
import { useEffect, useRef } from 'preact/hooks'
import { activities } from '../../../../src/features/traces/contract/lists.ts'
import type { Flag } from '../../../../src/contract/shown.ts'
import type { Activity } from '../../../../src/features/traces/contract/activity.ts'
import { query } from '../../api/index.ts'
import { useReflexTitles } from '../../api/reflex-titles.ts'
import { useFilters } from '../../ui/filters.tsx'
import { Rows, useList } from '../../ui/list.tsx'
import { Page } from '../../ui/page.tsx'

const REFRESH_MS = 10_000
const MOST_FURTHER = 20
/** The kinds of spans that people search for, and the options that are fields of the page. */
const kinds = ['effect', 'reflex', 'turn', 'gate', 'approval', 'reply']
const flags: readonly Flag[] = activities.flags.flatMap((flag: Flag) => {
  if (/^--(?:agent|skill|min-duration) /.test(flag[0])) return []
  return flag[0].startsWith('--kind ') ? [[flag[0], flag[1], { choices: kinds }] as const] : [flag]
})

const HOUR_MS = 3_600_000
const ranges = { 'Last hour': HOUR_MS, 'Last day': 24 * HOUR_MS, 'Last 7 days': 168 * HOUR_MS }

/** Activities whose reflexes are named by their titles. */
function useTitled(items: Activity[] | undefined): Activity[] | undefined {
  const titleOf = useReflexTitles(items?.flatMap(({ decided_by }) => decided_by?.name ?? []) ?? [])
  return items?.map((one) =>
    one.decided_by?.name ? { ...one, decided_by: { ...one.decided_by, name: titleOf(one.decided_by.name) } } : one,
  )
}

/** The filters are in the address, so that a search can be shared. */
export default function ActivityPage() {
  const { path, query: asked, route } = useLocation()
  const { given, form } = useFilters(flags)
  const list = useList<Activity>(activities, { agent: asked['agent'], skill: asked['skill'], ...given, limit: 50 }, REFRESH_MS)
  const items = useTitled(list.items)
  const last = (ms: number) => route(path + query({ ...asked, since: new Date(Date.now() - ms).toISOString(), until: '' }))
  const further = useRef(0)
  // A search may find nothing among the traces of one request.
  useEffect(() => {
    if (list.items?.length !== 0) further.current = 0
    else if (list.more && !list.loading && (further.current += 1) <= MOST_FURTHER) list.loadMore()
  })
  const isSearched = Object.values(given).some((value) => value !== undefined)
  return (
    <Page
      title="Activity"
      actions={Object.entries(ranges).map(([text, ms]) => (
        <button key={text} type="button" onClick={() => last(ms)}>
          {text}
        </button>
      ))}
    >
      {form}
      <Rows of={activities} label="Activity" pages={{ ...list, items }} empty="Nothing matches.">
        <p>Each event and each call has a trace, about a second after it was accepted.</p>
      </Rows>
      {isSearched && list.more && (
        <button type="button" disabled={list.loading} onClick={list.loadMore}>
          Search further back
        </button>
      )}
    </Page>
  )
}
