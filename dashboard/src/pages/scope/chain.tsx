import type { ComponentChildren } from 'preact'
import type { ReflexMetrics } from '../../../../src/contract/reports/reflex-report.ts'
import type { ScopeChain } from '../../../../src/contract/scope.ts'
import { part, useGet } from '../../api/index.ts'
import { Loaded } from '../../ui/feedback.tsx'
import { count, percent } from '../../ui/numbers.ts'
import { Text } from '../../ui/text.tsx'
import { ReflexSwitch, type OfScope } from './switches.tsx'
import './chain.css'

type Numbers = Pick<ReflexMetrics, 'runs' | 'fired'> & { reflex_id: string; version: number }
type Metrics = { reflexes: Numbers[] }

/** The filters, reflexes and models that an event meets, and which of them act. */
export function Chain({ scope, switches }: { scope: string; switches: OfScope | undefined }) {
  const path = `/v1/scopes/${part(scope)}`
  const chain = useGet<ScopeChain>(`${path}/chain`, { every_ms: 5000 })
  const metrics = useGet<Metrics>(`${path}/metrics`, { every_ms: 5000 })
  const done = () => {
    switches?.onDone()
    chain.reload()
  }
  const of = switches && { ...switches, onDone: done }
  return <Loaded data={chain}>{(value) => <Stages chain={value} numbers={metrics.value?.reflexes ?? []} switches={of} />}</Loaded>
}

function Stages({ chain, numbers, switches }: { chain: ScopeChain; numbers: readonly Numbers[]; switches: OfScope | undefined }) {
  const { consumer, filters, reflexes, decision_model: model, turn, agent } = chain
  if (consumer === 'pull')
    return (
      <ol class="chain">
        <Stage title="External consumer" acts>
          The setting consumer is pull: a program outside claims the events and decides on them.
        </Stage>
      </ol>
    )
  return (
    <ol class="chain">
      <Stage title="Filters" acts={filters.count > 0} state={filters.count > 0 ? 'acts' : 'none: every event passes'}>
        {filters.count > 0 && (
          <>
            {count(filters.count)} of the agent {agent.name}. An event that no filter passes is ignored.
            {filters.types.length > 0 && ` They name: ${filters.types.join(', ')}.`}
          </>
        )}
      </Stage>
      {reflexes.map((one, index) => (
        <ReflexStage key={one.id} reflex={one} place={index + 1} numbers={numbers} switches={switches} />
      ))}
      {reflexes.length > 0 && switches && (
        <li>
          <ReflexSwitch {...switches} />
        </li>
      )}
      {reflexes.length === 0 && (
        <Stage title="Reflexes" acts={false} state="none">
          The setting reflexes names the reflexes that run before a model.
        </Stage>
      )}
      {model && (
        <Stage
          title={`Decision model ${model.name}`}
          acts={model.threshold !== null}
          state={model.threshold === null ? 'compared with turns' : 'acts'}
        >
          <Text text={model.model} />
          {model.types && `, for ${model.types.join(', ')}`}
          {model.threshold !== null && `, from ${percent(model.threshold)} probability on`}
        </Stage>
      )}
      <Stage title="Turn" acts={turn !== null} state={turn ? 'acts' : 'none'}>
        {turn ? (
          <>
            The agent {agent.name} with the model <Text text={turn.model} /> considers what is left
            {turn.tools.length > 0 && ` and may use ${turn.tools.join(', ')}`}.
          </>
        ) : (
          `The agent ${agent.name} starts no turns: what is left joins the context, and nothing else happens.`
        )}
      </Stage>
    </ol>
  )
}

type ReflexStageProps = {
  reflex: ScopeChain['reflexes'][number]
  place: number
  numbers: readonly Numbers[]
  switches: OfScope | undefined
}

function ReflexStage({ reflex, place, numbers, switches }: ReflexStageProps) {
  const { id, version, watching, by_proof, absent, cooldown_s, rate } = reflex
  const acts = version !== null
  const of = numbers.find((one) => one.reflex_id === id && one.version === (version ?? watching))
  return (
    <Stage
      title={
        <>
          Reflex {place}: <a href={`/reflexes/${part(id)}`}>{id}</a>
          {acts && `@${version}`}
        </>
      }
      acts={acts}
      state={
        acts ? (by_proof ? 'acts as far as it is proven' : 'acts') : watching === null ? 'does not run' : `${id}@${watching} in shadow mode`
      }
    >
      {absent !== null && <Text text={absent} />}
      {of && ` Fired ${count(of.fired)} of ${count(of.runs)} times.`}
      {acts && watching !== null && ` Version ${watching} runs in shadow mode.`}
      {cooldown_s !== null && ` At most once in ${cooldown_s} s.`}
      {rate !== null && ` At most ${rate} times a minute.`}
      {switches && (
        <p>
          <ReflexSwitch {...switches} id={id} />
        </p>
      )}
    </Stage>
  )
}

type StageProps = { title: ComponentChildren; acts: boolean; state?: string; children?: ComponentChildren }

const Stage = ({ title, acts, state = 'acts', children }: StageProps) => (
  <li class="card">
    <div class="heading">
      <h2>{title}</h2>
      <span class={acts ? 'ok' : 'idle'}>{state}</span>
    </div>
    <div class="quiet">{children}</div>
  </li>
)
