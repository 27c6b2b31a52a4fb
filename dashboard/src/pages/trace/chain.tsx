import type { Span } from '../../../../src/contract/reports/trace.ts'
import { useReflexTitles } from '../../api/reflex-titles.ts'
import { counted } from '../../ui/numbers.ts'
import { Section } from '../../ui/page.tsx'
import { Status, statusText } from '../../ui/status.tsx'
import { Lines, Text } from '../../ui/text.tsx'
import { actionText, below, needsOf, numberOf, reasonsOf, textOf } from './spans.ts'

type Item = { span: Span; text: string; note: string | null }
type Stage = { name: string; items: Item[]; without: string }

/** The parts that decide on an event, in their order, each with its decision. */
export function Chain({ event, onSelect }: { event: Span; onSelect: (id: string) => void }) {
  const ran = below(event).flatMap((span) => (span.kind === 'reflex' ? [textOf(span, 'reflex.id') ?? ''] : []))
  const stages = stagesOf(event, useReflexTitles(ran))
  const { 'reflex.outcome': outcome, 'reflex.event.status': status } = event.attributes
  const changes = [
    ...new Set(
      below(event)
        .filter(({ kind }) => kind === 'gate')
        .flatMap(needsOf),
    ),
  ].slice(0, MOST_CHANGES)
  return (
    <Section title="Why">
      <ol class="stages">
        {stages.map(({ name, items, without }) => (
          <li key={name} class={items.length > 0 ? 'done' : ''}>
            <b>{name}</b>
            {items.length === 0 && <p class="quiet">{without}</p>}
            {items.slice(0, MOST_ITEMS).map(({ span, text, note }) => (
              <button key={span.span_id} type="button" class="plain" onClick={() => onSelect(span.span_id)}>
                <Text text={text} most={90} />
                {note !== null && (
                  <span class="quiet">
                    <br />
                    <Text text={note} most={160} />
                  </span>
                )}
              </button>
            ))}
            {items.length > MOST_ITEMS && <p class="quiet">and {items.length - MOST_ITEMS} more</p>}
          </li>
        ))}
        <li class="done">
          <b>Outcome</b>
          <p>
            {typeof status === 'string' ? <Status status={status} /> : <Status status="running" />}
            {deciderOf(outcome)}
          </p>
        </li>
      </ol>
      {changes.length > 0 && (
        <>
          <h3>What would have to change</h3>
          <Lines of={changes} />
        </>
      )}
    </Section>
  )
}

const MOST_ITEMS = 4
const MOST_CHANGES = 20

function deciderOf(outcome: unknown): string {
  const { by } = (outcome ?? {}) as { by?: string }
  return by === undefined ? '' : ` by ${by === 'perceive' ? 'no trigger' : by}`
}

function stagesOf(event: Span, title: (id: string) => string): Stage[] {
  const spans = below(event)
  const of = (...kinds: Span['kind'][]) => spans.filter(({ kind }) => kinds.includes(kind))
  const isDecision = ({ name }: Span) => name.startsWith('decide ')
  const item = (span: Span, text: string, note: string | null = reasonsOf(span)[0] ?? null): Item => ({ span, text, note })
  const { by } = (event.attributes['reflex.outcome'] ?? {}) as { by?: string }
  const filtered = by === 'filter' ? [item(event, 'left out by the filter', null)] : of('filter').map((span) => item(span, span.name))
  const reflexes = of('reflex').map((span) => {
    const { 'reflex.fired': fired, 'reflex.action': action, 'reflex.state': state } = span.attributes
    const shadow = state === 'shadow' ? ' (in shadow mode)' : ''
    return fired === true
      ? item(span, `${title(textOf(span, 'reflex.id') ?? '')} fired${shadow}: ${actionText(action)}`, null)
      : item(span, `${title(textOf(span, 'reflex.id') ?? '')} passed${shadow}`)
  })
  return [
    { name: 'Filter', items: filtered, without: 'let it through' },
    { name: 'Reflexes', items: reflexes, without: 'none ran' },
    { name: 'Decision model', items: spans.filter(isDecision).map((span) => item(span, span.name)), without: 'not asked' },
    {
      name: 'Turn',
      items: [
        ...of('turn').map((span) =>
          item(span, `${textOf(span, 'gen_ai.agent.name')}: ${statusText(textOf(span, 'reflex.turn.status') ?? 'running')}`),
        ),
        ...modelItems(of('model').filter((span) => !isDecision(span))),
      ],
      without: 'none',
    },
    {
      name: 'Gate',
      items: of('gate').map((span) => item(span, `${span.name.replace('gate ', '')}: ${verdictOf(span)}`)),
      without: 'no skill proposed',
    },
    {
      name: 'Effects',
      items: [
        ...of('approval').map((span) => item(span, `${span.name}: ${textOf(span, 'reflex.approval.status') ?? 'waits for a person'}`)),
        ...of('effect').map((span) => item(span, effectText(span), reasonsOf(span)[0] ?? argumentsOf(span))),
        ...of('reply').map((span) => item(span, `reply: ${textOf(span, 'gen_ai.output.messages') ?? ''}`)),
      ],
      without: 'none',
    },
  ]
}

/** All model calls as one item, which leads to the first. */
function modelItems(spans: readonly Span[]): Item[] {
  const [first] = spans
  if (!first) return []
  const tokensOf = (span: Span) => (numberOf(span, 'gen_ai.usage.input_tokens') ?? 0) + (numberOf(span, 'gen_ai.usage.output_tokens') ?? 0)
  const tokens = spans.reduce((sum, span) => sum + tokensOf(span), 0)
  const failed = spans.find(({ status }) => status === 'error')
  return [
    {
      span: first,
      text: `${counted(spans.length, 'model call')}, ${counted(tokens, 'token')}`,
      note: failed ? (reasonsOf(failed)[0] ?? null) : null,
    },
  ]
}

const effectText = (span: Span): string =>
  `${textOf(span, 'gen_ai.tool.name')}: ${statusText(textOf(span, 'reflex.effect.status') ?? 'running')}`

const argumentsOf = ({ attributes }: Span): string | null => {
  const input = attributes['gen_ai.tool.call.arguments']
  return input === undefined ? null : JSON.stringify(input)
}

function verdictOf(span: Span): string {
  const stage = textOf(span, 'reflex.stage')
  return `${statusText(textOf(span, 'reflex.verdict') ?? 'refused')}${stage === null ? '' : ` at ${stage}`}`
}
