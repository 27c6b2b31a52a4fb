import type { z } from 'zod'
import type { listedRun } from '../../../../src/features/learning/contract/runs.ts'
import { hasRole, part, post, query, request, useGet } from '../../api/index.ts'
import { useAction } from '../../api/use-action.ts'
import { ErrorBox } from '../../ui/feedback.tsx'
import { ScopeLink } from '../../ui/links.tsx'
import { count } from '../../ui/numbers.ts'
import { Section } from '../../ui/page.tsx'
import { visible } from '../../ui/text.tsx'

type ListedRun = z.infer<typeof listedRun>
type Crowded = ListedRun & { episodes: { crowd: NonNullable<ListedRun['episodes']['crowd']> } }
type Runs = { items: ListedRun[] }

const isCrowded = (run: ListedRun): run is Crowded => run.episodes.crowd !== undefined

/** A scope that learns nothing because one sender sends its events, and what trusts that sender. */
function Trust({ run: { scope, episodes }, onTrusted }: { run: Crowded; onTrusted: () => void }) {
  const { sender, n, trusts } = episodes.crowd
  const learning = { trusted_sources: trusts }
  const trust = useAction(async () => {
    const saved = await request('PATCH', `/v1/scopes/${part(scope)}`, { body: { learning } })
    return saved.ok ? post('/v1/learn', { scope }) : saved
  })
  const act = async () => {
    if ((await trust.run(undefined)).ok) onTrusted()
  }
  return (
    <div class="card">
      <p>
        <ScopeLink scope={scope} /> learns nothing: {count(n)} of {count(episodes.used)} decisions are about events of{' '}
        <b>{visible(sender)}</b>. Trust it if whoever writes the content of its events may teach the scope.
      </p>
      <p>
        <code>
          reflex scope set {scope} 'learning={JSON.stringify(learning)}'
        </code>
      </p>
      {hasRole('operator') && (
        <button type="button" class="primary" disabled={trust.busy} onClick={() => void act()}>
          Trust {visible(sender)} and learn
        </button>
      )}
      <ErrorBox problem={trust.problem} />
    </div>
  )
}

/** The same for one run. */
export const TrustOf = ({ run, onTrusted }: { run: ListedRun; onTrusted: () => void }) =>
  isCrowded(run) ? <Trust run={run} onTrusted={onTrusted} /> : null

const EVERY_MS = 60_000
const MOST = 20

/** The scopes whose latest run learned nothing for this reason. */
export function Untaught() {
  const runs = useGet<Runs>(`/v1/learn/runs${query({ status: 'done', limit: String(MOST) })}`, { every_ms: EVERY_MS })
  const latest = new Map<string, ListedRun>()
  for (const run of runs.value?.items ?? []) if (!latest.has(run.scope)) latest.set(run.scope, run)
  const crowded = [...latest.values()].filter(isCrowded)
  if (crowded.length === 0) return null
  return (
    <Section title="Learning that waits for your trust">
      {crowded.map((run) => (
        <Trust key={run.run_id} run={run} onTrusted={runs.reload} />
      ))}
    </Section>
  )
}
