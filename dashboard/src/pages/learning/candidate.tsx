import { useSignal } from '@preact/signals'
import type { Candidate, EvidencePart, ReadPlace } from '../../../../src/features/learning/contract/runs.ts'
import { hasRole, part, query } from '../../api/index.ts'
import { usePages } from '../../api/use-pages.ts'
import { LoadedList } from '../../ui/feedback.tsx'
import { Json } from '../../ui/json.tsx'
import { TraceLink } from '../../ui/links.tsx'
import { compact, count, percent, usd } from '../../ui/numbers.ts'
import { Status } from '../../ui/status.tsx'
import { Facts } from '../../ui/facts.tsx'
import type { TableColumn } from '../../ui/table.tsx'
import { Text, visible } from '../../ui/text.tsx'
import { duration } from '../../ui/time.tsx'
import { Change } from '../reflex/states.tsx'

type Props = { run_id: string; candidate: Candidate; reload: () => void }
type NextState = { to: string; title: string }

const steps: Record<Candidate['kind'], { accept: NextState; reject: NextState }> = {
  reflex: { accept: { to: 'active', title: 'Accept' }, reject: { to: 'retired', title: 'Reject' } },
  skill: { accept: { to: 'active', title: 'Accept' }, reject: { to: 'deprecated', title: 'Reject' } },
}

/** A reflex or skill that a run found: the decision, the evidence, its content, and the choice. */
export function CandidateView({ run_id, candidate, reload }: Props) {
  const { kind, id, version, state, decision, examples, code, manifest } = candidate
  const step = useSignal<NextState | null>(null)
  const { accept, reject } = steps[kind]
  const may = hasRole('operator') && state !== 'deleted'
  const page = `/${kind === 'reflex' ? 'reflexes' : 'skills'}/${part(id)}`
  return (
    <article class="card" aria-label={`${kind} ${id}`}>
      <div class="heading">
        <h3>
          <a href={page}>{visible(id)}</a> {visible(version)} <Status status={state} />
        </h3>
        {may && (
          <div class="actions">
            {state !== accept.to && (
              <button type="button" class="primary" onClick={() => (step.value = accept)}>
                {accept.title}
              </button>
            )}
            {state !== reject.to && (
              <button type="button" onClick={() => (step.value = reject)}>
                {reject.title}
              </button>
            )}
          </div>
        )}
      </div>
      <p>
        Decides: <Text text={decision} most={400} />
      </p>
      {candidate.mined ? (
        <Facts of={candidate.mined} columns={mined} />
      ) : (
        candidate.evidence && <Facts of={candidate.evidence} columns={learned} />
      )}
      <p>
        Examples:{' '}
        {examples.map(({ trace_id, seq }) => (
          <span key={seq}>
            <TraceLink id={trace_id} text={`entry ${seq}`} />{' '}
          </span>
        ))}
      </p>
      <Places run_id={run_id} candidate={candidate} />
      <Content code={code} manifest={manifest} />
      {step.value && (
        <Change
          kind={kind}
          id={id}
          version={{ version, state, state_reason: null, state_at: '', hash: '' }}
          step={step.value}
          onClose={() => (step.value = null)}
          reload={reload}
        />
      )}
    </article>
  )
}

function Content({ code, manifest }: { code: string | undefined; manifest: unknown }) {
  return (
    <details>
      <summary>{code === undefined ? 'Manifest' : 'Code'}</summary>
      {code === undefined ? (
        <Json value={manifest} open={2} label="Manifest" />
      ) : (
        <pre tabIndex={0} aria-label="Code">
          {visible(code)}
        </pre>
      )}
    </details>
  )
}

const mined: TableColumn<NonNullable<Candidate['mined']>>[] = [
  { title: 'Turns with its sequence', of: ({ turns, support }) => `${count(turns)} (${percent(support)})` },
  { title: 'Ended well', of: ({ success }) => success, kind: 'share' },
  { title: 'Change of cost', of: ({ delta_cost }) => delta_cost, kind: 'share' },
  { title: 'Change of latency, p95', of: ({ delta_p95 }) => delta_p95, kind: 'share' },
  { title: 'Tests', of: ({ tests: { unit, fuzz } }) => `${unit.passed} of ${unit.n} cases, ${fuzz.passed} of ${fuzz.n} mutations` },
]
const learned: TableColumn<NonNullable<Candidate['evidence']>>[] = [
  {
    title: 'Learned from',
    of: ({ train: { n, of, exceptions } }) => `${count(n)} of ${count(of)} decisions, ${count(exceptions)} exceptions`,
  },
  {
    title: 'Newer decisions it would have taken',
    of: ({ held_out: { covered, n } }) => `${count(covered)}, of ${count(n)} of its kind`,
  },
  {
    title: 'Agreed',
    of: ({ held_out: { agreed, covered, wilson_low } }) =>
      `${count(agreed)} (${percent(covered === 0 ? null : agreed / covered)}, at least ${percent(wilson_low)})`,
  },
  {
    title: 'These took',
    of: ({ saves: { model_calls, tokens, cost_usd, latency_ms } }) =>
      `${compact(model_calls)} model calls · ${compact(tokens)} tokens · ${usd(cost_usd)} · ${duration(latency_ms)}`,
  },
]

const parts: Record<EvidencePart, string> = { train: 'Learned from', agreed: 'Newer, agreed', differed: 'Newer, differed' }

/** The decisions behind the numbers, each with its trace. They are loaded when they are opened. */
function Places({ run_id, candidate: { id, kind } }: { run_id: string; candidate: Candidate }) {
  const open = useSignal<EvidencePart | null>(null)
  const path = `/v1/learn/runs/${part(run_id)}/evidence${query({ candidate: id, part: open.value })}`
  const places = usePages<ReadPlace>(open.value === null ? null : path)
  const offered = kind === 'skill' ? (['train'] as const) : (Object.keys(parts) as EvidencePart[])
  return (
    <>
      <div class="actions" role="group" aria-label="Decisions behind the numbers">
        {offered.map((one) => (
          <button key={one} type="button" aria-pressed={open.value === one} onClick={() => (open.value = open.value === one ? null : one)}>
            {parts[one]}
          </button>
        ))}
      </div>
      {open.value !== null && (
        <>
          <LoadedList pages={places} empty={<p class="quiet">None.</p>}>
            {(items) => (
              <ul class="places">
                {items.map(({ seq, trace_id, event_id }) => (
                  <li key={`${seq} ${event_id}`}>
                    <TraceLink id={trace_id} text={visible(event_id)} />
                  </li>
                ))}
              </ul>
            )}
          </LoadedList>
          {places.more && (
            <button type="button" onClick={places.loadMore}>
              More
            </button>
          )}
        </>
      )}
    </>
  )
}
