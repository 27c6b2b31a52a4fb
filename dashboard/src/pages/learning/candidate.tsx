import { useSignal } from '@preact/signals'
import type { Candidate, EvidencePart, ReadPlace } from '../../../../src/features/learning/contract/runs.ts'
import { hasRole, part, query } from '../../api/index.ts'
import { usePages } from '../../api/use-pages.ts'
import { LoadedList } from '../../ui/feedback.tsx'
import { Json } from '../../ui/json.tsx'
import { TraceLink } from '../../ui/links.tsx'
import { compact, count, percent, usd } from '../../ui/numbers.ts'
import { Status } from '../../ui/status.tsx'
import { Fact, Facts, Text, visible } from '../../ui/text.tsx'
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
      <Evidence candidate={candidate} />
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

function Evidence({ candidate: { evidence, mined } }: { candidate: Candidate }) {
  if (mined) {
    const { turns, support, success, delta_cost, delta_p95, tests } = mined
    return (
      <Facts>
        <Fact name="Turns with its sequence">
          {count(turns)} ({percent(support)})
        </Fact>
        <Fact name="Ended well">{percent(success)}</Fact>
        <Fact name="Change of cost">{percent(delta_cost)}</Fact>
        <Fact name="Change of latency, p95">{percent(delta_p95)}</Fact>
        <Fact name="Tests">
          {tests.unit.passed} of {tests.unit.n} cases, {tests.fuzz.passed} of {tests.fuzz.n} mutations
        </Fact>
      </Facts>
    )
  }
  if (!evidence) return null
  const { train, held_out, saves } = evidence
  return (
    <Facts>
      <Fact name="Learned from">
        {count(train.n)} of {count(train.of)} decisions, {count(train.exceptions)} exceptions
      </Fact>
      <Fact name="Newer decisions it would have taken">
        {count(held_out.covered)}, of {count(held_out.n)} of its kind
      </Fact>
      <Fact name="Agreed">
        {count(held_out.agreed)} ({percent(held_out.covered === 0 ? null : held_out.agreed / held_out.covered)}, at least{' '}
        {percent(held_out.wilson_low)})
      </Fact>
      <Fact name="These took">
        {compact(saves.model_calls)} model calls · {compact(saves.tokens)} tokens · {usd(saves.cost_usd)} · {duration(saves.latency_ms)}
      </Fact>
    </Facts>
  )
}

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
