import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect } from 'preact/hooks'
import { get, part, query, useGet } from '../../api/index.ts'
import type { ApiProblem } from '../../api/problem.ts'
import { Empty, ErrorBox, Loaded, Loading } from '../../ui/feedback.tsx'
import { Select } from '../../ui/form.tsx'
import { count } from '../../ui/numbers.ts'

/** Entries of a log that are searched at once. */
const STEP = 5000
/** With these many found, the search waits for somebody who wants more. */
const ENOUGH = 20
/** Entries that are searched before the page asks whether to search further. */
const FAR = 25_000
const PAGE = 1000

type EntriesProps<Entry> = {
  scopes: readonly string[]
  /** The kinds of entries to choose from, with their titles. */
  kinds: Readonly<Record<string, string>>
  match: (entry: Entry) => boolean
  children: (entries: Entry[]) => ComponentChildren
}

/** The entries of a kind in the log of one scope, newest first. */
export function Entries<Entry>({ scopes, kinds, match, children }: EntriesProps<Entry>) {
  const chosen = useSignal('')
  const kind = useSignal(Object.keys(kinds)[0] ?? '')
  const scope = chosen.value || (scopes[0] ?? '')
  const state = useGet<{ last_seq: number }>(scope === '' ? null : `/v1/scopes/${part(scope)}`)
  if (scope === '') return <Empty title="It was used in no scope of this key." />
  return (
    <>
      <div class="actions">
        <Select label="Scope" value={scope} options={scopes} onChange={(name) => (chosen.value = name)} />
        {Object.keys(kinds).length > 1 && <Select label="Show" value={kind.value} options={kinds} onChange={(one) => (kind.value = one)} />}
      </div>
      <Loaded data={state}>
        {({ last_seq }) => (
          <Search<Entry> key={`${scope} ${kind.value} ${last_seq}`} {...{ scope, match, children }} kind={kind.value} newest={last_seq} />
        )}
      </Loaded>
    </>
  )
}

type SearchProps<Entry> = Pick<EntriesProps<Entry>, 'match' | 'children'> & { scope: string; kind: string; newest: number }

/** Searches from the newest entry on, until enough is found or it is asked whether to continue. */
function Search<Entry>({ scope, kind, newest, match, children }: SearchProps<Entry>) {
  const found = useSignal<Entry[]>([])
  /** The entries after it were searched. */
  const after = useSignal(newest)
  const wanted = useSignal({ found: ENOUGH, from: newest - FAR })
  const problem = useSignal<ApiProblem | null>(null)
  const isDone = after.value <= 0 || found.value.length >= wanted.value.found || after.value <= wanted.value.from
  useEffect(() => {
    if (isDone || problem.value) return undefined
    const stop = new AbortController()
    const from = Math.max(0, after.value - STEP)
    const search = async () => {
      const answer = await entriesOf<Entry>(`/v1/scopes/${part(scope)}/log`, { kind, from, before: after.value + 1 }, stop.signal)
      if (stop.signal.aborted) return
      if ('status' in answer) problem.value = answer
      else {
        found.value = [...found.value, ...answer.filter(match).toReversed()]
        after.value = from
      }
    }
    void search()
    return () => stop.abort()
  }, [isDone, after.value, problem.value])
  const searched = count(newest - after.value)
  return (
    <>
      {found.value.length > 0 && children(found.value)}
      {problem.value && <ErrorBox problem={problem.value} onRetry={() => (problem.value = null)} />}
      {!isDone && !problem.value && <Loading />}
      {isDone && (
        <p class="quiet" role="status">
          {found.value.length === 0 && 'None. '}
          {after.value <= 0 ? 'The whole log was searched.' : `The latest ${searched} of ${count(newest)} entries were searched. `}
          {after.value > 0 && (
            <button type="button" onClick={() => (wanted.value = { found: found.value.length + ENOUGH, from: after.value - FAR })}>
              Search further
            </button>
          )}
        </p>
      )}
    </>
  )
}

/** All entries of a kind in a part of the log, over as many pages as they take. */
async function entriesOf<Entry>(
  path: string,
  { kind, from, before }: { kind: string; from: number; before: number },
  signal: AbortSignal,
): Promise<Entry[] | ApiProblem> {
  const entries: Entry[] = []
  for (let after: string | null = String(from); after !== null;) {
    const page: Awaited<ReturnType<typeof get<{ items: Entry[]; next_cursor: string | null }>>> = await get(
      `${path}${query({ kind, after, before, limit: PAGE })}`,
      signal,
    )
    if (!page.ok) return page.problem
    entries.push(...page.value.items)
    after = page.value.next_cursor
  }
  return entries
}
