import { useSignal } from '@preact/signals'
import { Component } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { TraceLink } from '../../../ui/links.tsx'
import { Text } from '../../../ui/text.tsx'
import { Clock, duration } from '../../../ui/time.tsx'
import type { LogWindow } from './log-window.ts'
import type { Line } from './story.ts'

const ROW_PX = 30
const BEYOND = 10
/** Older entries are loaded when the reader is this near to the oldest. */
const NEAR_PX = 600

type RowsProps = { shown: LogWindow; picked: number | null; onPick: (seq: number) => void }

/** Only the rows in view are in the document. The view moves only with the reader, or follows. */
export function Rows({ shown, picked, onPick }: RowsProps) {
  const frame = useRef<HTMLDivElement>(null)
  const top = useSignal(0)
  void shown.changed.value
  const { lines } = shown
  const height = frame.current?.clientHeight ?? 600
  const last = shown.following ? lines.length : Math.min(lines.length, Math.ceil((top.value + height) / ROW_PX) + BEYOND)
  const first = Math.max(0, shown.following ? last - Math.ceil(height / ROW_PX) - BEYOND : Math.floor(top.value / ROW_PX) - BEYOND)
  useLayoutEffect(() => {
    const { current } = frame
    if (!current) return
    if (shown.prepended > 0) current.scrollTop += shown.prepended * ROW_PX
    shown.prepended = 0
    if (shown.following) current.scrollTop = current.scrollHeight
  })
  const scrolled = () => {
    const { current } = frame
    if (!current) return
    const before = top.peek()
    const { scrollTop, scrollHeight, clientHeight } = current
    const isAtEnd = scrollHeight - scrollTop - clientHeight < ROW_PX
    if (!isAtEnd && scrollTop < before) shown.follows(false)
    if (isAtEnd && !shown.paused && shown.skipped === 0) shown.follows(true)
    top.value = scrollTop
    if (!shown.following && scrollTop < NEAR_PX) void shown.loadOlder()
  }
  return (
    <div class="lines" ref={frame} onScroll={scrolled} tabIndex={0} role="region" aria-label="Log">
      <ol style={{ paddingTop: `${first * ROW_PX}px`, paddingBottom: `${(lines.length - last) * ROW_PX}px` }}>
        {lines.slice(first, last).map((line) => (
          <Row key={line.seq} line={line} picked={line.seq === picked} onPick={onPick} />
        ))}
      </ol>
    </div>
  )
}

type RowProps = { line: Line; picked: boolean; onPick: (seq: number) => void }

/** A line never changes, so that a frame renders only its new ones. */
class Row extends Component<RowProps> {
  override shouldComponentUpdate({ line, picked }: RowProps): boolean {
    return line !== this.props.line || picked !== this.props.picked
  }

  override render({ line, picked, onPick }: RowProps) {
    const { seq, at, kind, text, ms, bad, trace_id, span_id } = line
    return (
      <li class={picked ? 'picked' : ''}>
        <Clock at={at} />
        <button type="button" class="plain" aria-expanded={picked} onClick={() => onPick(seq)}>
          {kind}
        </button>
        <span class={bad ? 'bad text' : 'text'}>
          <Text text={text} />
        </span>
        <span class="quiet">{ms === null ? '' : duration(ms)}</span>
        <TraceLink id={trace_id} span={span_id} />
      </li>
    )
  }
}
