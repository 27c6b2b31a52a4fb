import './curve.css'
import { useSignal } from '@preact/signals'
import { useLocation } from 'preact-iso'
import type { z } from 'zod'
import { runs } from '../../../../src/features/learning/contract/lists.ts'
import type { LearnRequest, listedRun, startedRun } from '../../../../src/features/learning/contract/runs.ts'
import { hasRole, post, query, type Role, useGet } from '../../api/index.ts'
import { useAction } from '../../api/use-action.ts'
import { ErrorBox, Loaded } from '../../ui/feedback.tsx'
import { Field, Select } from '../../ui/form.tsx'
import { Rows, useList } from '../../ui/list.tsx'
import { count } from '../../ui/numbers.ts'
import { NeedsRole, Page, Section } from '../../ui/page.tsx'
import { visible } from '../../ui/text.tsx'
import { Run } from './run.tsx'
import { Chart } from '../reflexes/chart.tsx'
import { ranges, type RateBucket, type RateStatistics } from '../reflexes/rates.tsx'

type Point = { at: string; calls: number; events: number; value: number }

/** Model calls for each 100 events of a scope: what learning is for. */
function Curve({ scope }: { scope: string }) {
  const bucket = useSignal<RateBucket>('minute')
  const path = (metric: string) => `/v1/stats${query({ metric, scope, bucket: bucket.value })}`
  const calls = useGet<RateStatistics>(path('model.calls'))
  const events = useGet<RateStatistics>(path('events.accepted'))
  return (
    <Section
      title={`Cost curve of ${visible(scope)}`}
      actions={<Select label="Range" value={bucket.value} options={ranges} onChange={(one) => (bucket.value = one as RateBucket)} />}
    >
      <Loaded data={calls}>{(made) => <Loaded data={events}>{(accepted) => <Drawn points={pointsOf(made, accepted)} />}</Loaded>}</Loaded>
    </Section>
  )
}

function pointsOf(calls: RateStatistics, events: RateStatistics): Point[] {
  const made = new Map(calls.series[0]?.points.map(({ at, value }) => [at, value ?? 0]))
  return (events.series[0]?.points ?? []).flatMap(({ at, value }) => {
    const accepted = value ?? 0
    const used = made.get(at) ?? 0
    return accepted === 0 ? [] : [{ at, calls: used, events: accepted, value: (used / accepted) * 100 }]
  })
}

function Drawn({ points }: { points: Point[] }) {
  const [first] = points
  const last = points.at(-1)
  if (!first || !last) return <p class="quiet">It has no events in this range.</p>
  return (
    <div class="card">
      <Chart
        label={`From ${count(first.value)} to ${count(last.value)} model calls for each 100 events`}
        at={points.map(({ at }) => Date.parse(at))}
        lines={[{ name: 'for each 100 events', colour: '--wait', values: points.map(({ value }) => value) }]}
        show={count}
        note={(index) => `${count(points[index]?.calls)} model calls on ${count(points[index]?.events)} events`}
      />
    </div>
  )
}

type RunItem = z.infer<typeof listedRun>
const NEEDED: Role = 'operator'

/** `?run=` shows one run, `?scope=` the runs and the costs of one scope. */
export default function LearningPage() {
  const { query: asked } = useLocation()
  const run = asked['run']
  if (run !== undefined) return <Run key={run} id={run} />
  return (
    <Page title="Learning">
      <Runs scope={asked['scope'] ?? ''} />
    </Page>
  )
}

function Runs({ scope }: { scope: string }) {
  const { route } = useLocation()
  const list = useList<RunItem>(runs, { scope, limit: 100 })
  const scopes = [...new Set(list.items?.map((one) => one.scope))]
  const shown = scope || scopes[0]
  return (
    <>
      <Start scope={scope} />
      {shown !== undefined && <Curve key={shown} scope={shown} />}
      <Section
        title="Runs"
        actions={
          <Select
            label="Scope"
            value={scope}
            options={{ '': 'all', ...Object.fromEntries([scope, ...scopes].filter(Boolean).map((name) => [name, name])) }}
            onChange={(name) => route(`/learning${query({ scope: name })}`, true)}
          />
        }
      >
        <Rows of={runs} label="Runs of learning" pages={list} empty="No scope has learned yet.">
          <p>A run reads what turns and people have decided, and writes reflexes and skills that decide the same. Start one above.</p>
        </Rows>
      </Section>
    </>
  )
}

const kindNames = { both: 'reflexes and skills', reflex: 'reflexes', skill: 'skills' }
type Kinds = keyof typeof kindNames

function Start({ scope: first }: { scope: string }) {
  const { route } = useLocation()
  const scope = useSignal(first)
  const kinds = useSignal<Kinds>('both')
  const { run, busy, problem } = useAction((body: LearnRequest) => post<z.infer<typeof startedRun>>('/v1/learn', body))
  const submit = async (event: SubmitEvent) => {
    event.preventDefault()
    const answer = await run({ scope: scope.value, ...(kinds.value !== 'both' && { kinds: [kinds.value] }) })
    if (answer.ok) route(`/learning?run=${answer.value.run_id}`)
  }
  if (!hasRole(NEEDED)) return <NeedsRole role={NEEDED} what="To start a run" />
  return (
    <Section title="Start a run">
      <form class="card actions" onSubmit={(event) => void submit(event)}>
        <Field
          label="Scope"
          required
          stacked={false}
          value={scope.value}
          placeholder="ssh/web-1"
          onInput={(text) => (scope.value = text)}
        />
        <Select label="Learn" value={kinds.value} options={kindNames} onChange={(one) => (kinds.value = one as Kinds)} />
        <button type="submit" class="primary" disabled={busy}>
          {busy ? 'Starting …' : 'Learn'}
        </button>
      </form>
      <ErrorBox problem={problem} />
    </Section>
  )
}
