import { useSignal } from '@preact/signals'
import { useEffect, useMemo, useRef } from 'preact/hooks'
import type { TraceReport } from '../../../../src/contract/reports/trace.ts'
import { statusText } from '../../ui/status.tsx'
import { visible } from '../../ui/text.tsx'
import { duration } from '../../ui/time.tsx'
import { factsOf, reasonsOf, rowsOf, type SpanRow } from './spans.ts'
import './trace.css'

/** All rows have this height, so that those in view are found without measuring. */
const ROW_PX = 28
const BEYOND = 10
const WIDTH = 1000

type WaterfallProps = { trace: TraceReport; selected: string; onSelect: (id: string) => void }

/** The tree on a time axis. Only spans in view are in the document; each names its place. */
export function Waterfall({ trace, selected, onSelect }: WaterfallProps) {
  const closed = useSignal<ReadonlySet<string>>(new Set())
  const frame = useRef<HTMLDivElement>(null)
  const rows = useMemo(() => rowsOf(trace, closed.value), [trace, closed.value])
  const end = useMemo(() => Math.max(1, ...rows.map(({ from, to }) => to ?? from)), [rows])
  const place = rows.findIndex(({ span }) => span.span_id === selected)
  const { view, look } = useView(frame, place, rows.length)
  const toggle = (id: string) => {
    const next = new Set(closed.value)
    if (!next.delete(id)) next.add(id)
    closed.value = next
  }
  const keys = useTreeKeys({ rows, place, closed: closed.value, toggle, onSelect })
  const click = ({ target }: Event) => {
    const item = target instanceof Element ? target.closest<HTMLElement>('[role=treeitem]') : null
    const id = item?.dataset['id']
    if (id === undefined) return
    if (target instanceof Element && target.matches('.toggle')) toggle(id)
    else onSelect(id)
  }
  const { from, to } = view.value
  // The selected row is always there: the focus is on it.
  const shown = rows.flatMap((row, index) => ((index >= from && index < to) || index === place ? [{ row, index }] : []))
  return (
    <div class="waterfall">
      <Axis end={end} />
      <div
        class="spans"
        role="tree"
        aria-label="Spans"
        tabIndex={0}
        ref={frame}
        onScroll={look}
        onKeyDown={keys}
        onClick={click}
        {...(place >= 0 && { 'aria-activedescendant': `span-${selected}` })}
      >
        <div role="none" class="space" style={{ height: `${rows.length * ROW_PX}px` }}>
          {shown.map(({ row, index }) => (
            <SpanRow
              key={row.span.span_id}
              row={row}
              top={index * ROW_PX}
              end={end}
              isClosed={closed.value.has(row.span.span_id)}
              isSelected={index === place}
            />
          ))}
        </div>
      </div>
    </div>
  )
}

/** The rows in view. The selected one is scrolled into it when the selection moves. */
function useView(frame: { current: HTMLDivElement | null }, place: number, rows: number) {
  const view = useSignal({ from: 0, to: 40 })
  const look = () => {
    const { scrollTop, clientHeight } = frame.current ?? { scrollTop: 0, clientHeight: 0 }
    const from = Math.max(0, Math.floor(scrollTop / ROW_PX) - BEYOND)
    const to = Math.ceil((scrollTop + clientHeight) / ROW_PX) + BEYOND
    if (from !== view.value.from || to !== view.value.to) view.value = { from, to }
  }
  useEffect(() => {
    const { current } = frame
    const top = place * ROW_PX
    const isHidden = current !== null && (top < current.scrollTop || top + ROW_PX > current.scrollTop + current.clientHeight)
    if (isHidden && place >= 0) current.scrollTop = top - current.clientHeight / 2
    look()
  }, [place, rows])
  return { view, look }
}

type RowProps = {
  row: SpanRow
  top: number
  end: number
  isClosed: boolean
  isSelected: boolean
}

function SpanRow({ row: { span, depth, position, siblings, from, to }, top, end, isClosed, isSelected }: RowProps) {
  const { span_id, name, kind, status, children } = span
  const x = (from / end) * WIDTH
  const width = Math.max(3, (((to ?? end) - from) / end) * WIDTH)
  const took = span.duration_ms === null ? statusText(status) : duration(span.duration_ms)
  return (
    <div
      id={`span-${span_id}`}
      role="treeitem"
      class={`span ${status}`}
      style={{ top: `${top}px` }}
      aria-level={depth}
      aria-posinset={position}
      aria-setsize={siblings}
      aria-selected={isSelected}
      {...(children.length > 0 && { 'aria-expanded': !isClosed })}
      tabIndex={-1}
      data-id={span_id}
    >
      <span class="name" style={{ paddingLeft: `${(Math.min(depth, 14) - 1) * 0.9}rem` }}>
        <span aria-hidden="true" class="toggle">
          {children.length === 0 ? '' : isClosed ? '▸' : '▾'}
        </span>
        <b class={status === 'error' ? 'bad' : ''}>{visible(name)}</b>{' '}
        <span class="quiet">{visible([kind, ...factsOf(span), ...reasonsOf(span)].join(' · ')).slice(0, 200)}</span>
      </span>
      <svg viewBox={`0 0 ${WIDTH} 10`} preserveAspectRatio="none" aria-hidden="true">
        <rect class={`bar ${kind}`} x={Math.min(x, WIDTH - 3)} y="1" width={width} height="8" />
      </svg>
      <span class="took">{took}</span>
    </div>
  )
}

const TICKS = 4

function Axis({ end }: { end: number }) {
  const ticks = Array.from({ length: TICKS }, (_, index) => (end * index) / TICKS)
  return (
    <div class="axis quiet" aria-hidden="true">
      <span />
      <span class="ticks">
        {ticks.map((tick) => (
          <span key={tick}>{duration(tick)}</span>
        ))}
      </span>
      <span class="took">{duration(end)}</span>
    </div>
  )
}

type TreeKeys = {
  rows: readonly SpanRow[]
  place: number
  closed: ReadonlySet<string>
  toggle: (id: string) => void
  onSelect: (id: string) => void
}

/** As in any tree: up and down, right and left, the first and the last. */
function useTreeKeys({ rows, place, closed, toggle, onSelect }: TreeKeys) {
  const go = (index: number) => {
    const row = rows[Math.min(rows.length - 1, Math.max(0, index))]
    if (row) onSelect(row.span.span_id)
  }
  return (event: KeyboardEvent) => {
    const current = rows[place]
    const id = current?.span.span_id ?? ''
    const isOpen = (current?.span.children.length ?? 0) > 0 && !closed.has(id)
    const parent = current ? rows.slice(0, place).findLastIndex(({ depth }) => depth < current.depth) : -1
    const acts: Record<string, () => void> = {
      ArrowDown: () => go(place + 1),
      ArrowUp: () => go(place - 1),
      Home: () => go(0),
      End: () => go(rows.length - 1),
      ArrowRight: () => (closed.has(id) ? toggle(id) : isOpen && go(place + 1)),
      ArrowLeft: () => (isOpen ? toggle(id) : parent >= 0 && go(parent)),
    }
    const act = acts[event.key]
    if (!act) return
    event.preventDefault()
    act()
  }
}
