import type { ComponentChildren } from 'preact'
import type { RangeReport, ReplayReport, ReplaySide } from '../../../../src/features/replay/contract/replay.ts'
import { TraceLink } from '../../ui/links.tsx'
import { count, usd } from '../../ui/numbers.ts'
import { Section } from '../../ui/page.tsx'
import { Table } from '../../ui/table.tsx'
import { Lines, Text, visible } from '../../ui/text.tsx'
import { duration } from '../../ui/time.tsx'
import { actionText } from './spans.ts'

const MOST_SHOWN = 50

/** The decisions of one trace, as recorded and as decided again. */
export function Report({ report, onSelect }: { report: ReplayReport; onSelect: (span_id: string) => void }) {
  const { mode, equivalent, complete, compared, changed, divergences, unknown, effects = [], recorded, replayed } = report
  const verdict = mode === 'pinned' ? pinnedVerdict(report) : `${count(changed)} of ${count(compared)} decisions would change.`
  return (
    <Section title={mode === 'pinned' ? 'Replay' : 'What if'}>
      <div class="card details" role="status">
        <p>
          <b>{verdict}</b> {unknown.length > 0 && `${count(unknown.length)} cannot be decided again.`}
          {mode === 'what_if' && equivalent === null && ' Whether any of those would change is not known.'}
          {!complete && ' The recording is not complete.'}
        </p>
        <Sides recorded={recorded} replayed={replayed} />
        {divergences.slice(0, MOST_SHOWN).map((difference) => (
          <Difference key={difference.span_id + difference.path} {...difference}>
            <button type="button" class="plain" onClick={() => onSelect(difference.span_id)}>
              Show the span
            </button>
          </Difference>
        ))}
        {divergences.length > MOST_SHOWN && <p class="quiet">{divergences.length - MOST_SHOWN} more differences are not shown.</p>}
        {effects.length > 0 && (
          <ul>
            {effects.slice(0, MOST_SHOWN).map(({ span_id, change, act, content }) => (
              <li key={span_id + change + act} class={change === 'appears' ? 'ok' : 'bad'}>
                {change === 'appears' ? 'Would happen: ' : 'Would not happen: '}
                <Text text={`${act} ${actionText(content) === '' ? jsonText(content) : actionText(content)}`} />
              </li>
            ))}
          </ul>
        )}
        <Unknown reasons={unknown.map(({ kind, reason }) => `${kind}: ${reason}`)} />
      </div>
    </Section>
  )
}

function pinnedVerdict({ equivalent, compared, changed }: ReplayReport): string {
  if (equivalent === null) return `Not known whether all are the same: the ${count(compared)} decisions that were compared are.`
  if (equivalent) return `All ${count(compared)} decisions are the same.`
  return `${count(changed)} of ${count(compared)} decisions differ from what was recorded.`
}

/**
 * A time range of a scope, or a part of it, decided again: numbers, and the clearest changes.
 */
export function RangeView({ report, part }: { report: RangeReport; part: number | null }) {
  const { events, same, changed, unknown, effects, examples, decisions, reasons, recorded, replayed } = report
  return (
    <div class="card details" role="status">
      <p>
        <b>
          {part !== null && `Part ${part}: `}
          {count(changed)} of {count(same + changed)} decisions on {count(events)} events would change.
        </b>{' '}
        {count(effects.appear)} effects would be new, {count(effects.vanish)} would not have happened; {count(unknown)} decisions are
        unknown.
      </p>
      <Sides recorded={recorded} replayed={replayed} />
      <Table
        label="Decisions by kind"
        rows={Object.entries(decisions)}
        keyOf={([kind]) => kind}
        columns={[
          { title: 'Decision', cell: ([kind]) => kind },
          { title: 'Same', cell: ([, tally]) => count(tally.same), numeric: true },
          { title: 'Changed', cell: ([, tally]) => count(tally.changed), numeric: true },
          { title: 'Unknown', cell: ([, tally]) => count(tally.unknown), numeric: true },
        ]}
      />
      {examples.map((example) => (
        <Difference key={example.trace_id + example.span_id + example.path} {...example}>
          <span>
            <Text text={example.why} /> {example.alike > 1 && `(${count(example.alike)} alike)`}{' '}
            <TraceLink id={example.trace_id} span={example.span_id} />
          </span>
        </Difference>
      ))}
      <Unknown reasons={reasons.map(({ reason, count: times }) => `${count(times)} × ${reason}`)} />
    </div>
  )
}

type DifferenceProps = { kind: string; path: string; recorded: unknown; replayed: unknown; children: ComponentChildren }

function Difference({ kind, path, recorded, replayed, children }: DifferenceProps) {
  return (
    <div>
      <p class="actions">
        <b>{visible(kind)}</b> <code>{visible(path)}</code> {children}
      </p>
      <div class="sides">
        <Side name="Recorded" value={recorded} />
        <Side name="Decided again" value={replayed} />
      </div>
    </div>
  )
}

function Side({ name, value }: { name: string; value: unknown }) {
  return (
    <div>
      <span class="quiet">{name}</span>
      <pre tabIndex={0} aria-label={name}>
        {value === undefined ? 'nothing' : visible(jsonText(value)).slice(0, 4000)}
      </pre>
    </div>
  )
}

/** Line breaks stay: an action or a text is read as it was written. */
const jsonText = (value: unknown): string => (typeof value === 'string' ? value : (JSON.stringify(value, null, 1) ?? ''))

function Sides(sides: { recorded: ReplaySide; replayed: ReplaySide }) {
  return (
    <Table
      label="Usage of both sides"
      rows={[
        { name: 'Recorded', ...sides.recorded },
        { name: 'Decided again', ...sides.replayed },
      ]}
      keyOf={({ name }) => name}
      columns={[
        { title: 'Side', cell: ({ name }) => name },
        { title: 'Model calls', of: ({ usage }) => usage.model_calls, kind: 'count' },
        { title: 'Tokens', of: ({ usage }) => usage.input_tokens + usage.output_tokens, kind: 'count' },
        { title: 'Cost', cell: ({ usage }) => (usage.cost_usd === null ? 'price unknown' : usd(usage.cost_usd)), numeric: true },
        { title: 'Effects', of: ({ effects }) => effects, kind: 'count' },
        { title: 'Time', cell: ({ duration_ms }) => duration(duration_ms), numeric: true },
      ]}
    />
  )
}

function Unknown({ reasons }: { reasons: readonly string[] }) {
  if (reasons.length === 0) return null
  return (
    <details>
      <summary>Not decided again ({reasons.length})</summary>
      <Lines of={reasons.slice(0, MOST_SHOWN)} />
    </details>
  )
}
