import { useSignal } from '@preact/signals'
import { useLocation } from 'preact-iso'
import { useEffect, useMemo } from 'preact/hooks'
import { query } from '../../../api/index.ts'
import { followScope } from '../../../api/socket.ts'
import { ErrorBox } from '../../../ui/feedback.tsx'
import { count } from '../../../ui/numbers.ts'
import { Text, visible } from '../../../ui/text.tsx'
import { useKeys } from '../../../ui/use-keys.ts'
import { LogWindow } from './log-window.ts'
import { Rows } from './rows.tsx'
import { kinds } from './story.ts'
import { Entry } from './entry.tsx'
import './log.css'

type Connection = 'connecting' | 'live' | 'lost' | 'ended'

/** The log as a story that continues by itself. The kinds are in the address. */
export function Log({ scope }: { scope: string }) {
  const { path, query: asked, route } = useLocation()
  const { kind = '' } = asked
  const chosen = kind.split(',').filter(Boolean)
  const show = (names: string[]) => route(`${path}${query({ ...asked, kind: names.join(',') })}`, true)
  return (
    <div class="log">
      <div class="actions">
        <label class="inline">
          Show
          <select value="" onChange={({ currentTarget }) => show([...chosen, currentTarget.value])}>
            <option value="">{kind === '' ? 'every kind' : 'one more kind'}</option>
            {kinds.map((name) => !chosen.includes(name) && <option key={name}>{name}</option>)}
          </select>
        </label>
        {chosen.map((name) => (
          <button key={name} type="button" title="Leave it out" onClick={() => show(chosen.filter((one) => one !== name))}>
            {visible(name)} ✕
          </button>
        ))}
      </div>
      <Story key={`${scope} ${kind}`} scope={scope} kind={kind} />
    </div>
  )
}

function Story({ scope, kind }: { scope: string; kind: string }) {
  const shown = useMemo(() => new LogWindow(scope, kind), [])
  const { state, why, retry } = useFollowing(scope, shown)
  const picked = useSignal<number | null>(null)
  const { lines, problem, skipped, paused, following } = shown
  void shown.changed.value
  useKeys({ p: () => (paused ? void shown.follow() : shown.pause()) })
  return (
    <>
      <div class="actions">
        <button type="button" aria-pressed={paused} onClick={() => (paused ? void shown.follow() : shown.pause())}>
          {paused ? 'Continue' : 'Pause'} <kbd>p</kbd>
        </button>
        {!following && (
          <button type="button" onClick={() => void shown.follow()}>
            Go to the newest
          </button>
        )}
        <span role="status" class="quiet">
          {words[state]}
          {paused && `, paused`}
          {skipped > 0 && `, ${count(skipped)} newer ${skipped === 1 ? 'entry' : 'entries'}`}
        </span>
        {why !== null && <Text text={why} />}
        {state === 'ended' && (
          <button type="button" onClick={retry}>
            Connect again
          </button>
        )}
      </div>
      {problem && <ErrorBox problem={problem} onRetry={retry} />}
      <Rows shown={shown} picked={picked.value} onPick={(seq) => (picked.value = picked.value === seq ? null : seq)} />
      {lines.length === 0 && !shown.loading && <p class="quiet">{nothing(kind)}</p>}
      {picked.value !== null && <Entry key={picked.value} scope={scope} seq={picked.value} onClose={() => (picked.value = null)} />}
    </>
  )
}

const words: Record<Connection, string> = {
  connecting: 'Connecting',
  live: 'Live',
  lost: 'The connection is lost and continues by itself',
  ended: 'The connection has ended',
}
const nothing = (kind: string): string =>
  kind === ''
    ? 'Nothing has happened in this scope yet. Entries appear here by themselves.'
    : `No recent entry is of the kind ${kind.replaceAll(',', ' or ')}.`

/** Loads the newest part of the log, then follows it over any number of connections. */
function useFollowing(scope: string, shown: LogWindow) {
  const state = useSignal<Connection>('connecting')
  const why = useSignal<string | null>(null)
  const attempt = useSignal(0)
  useEffect(() => {
    let close = (): void => {}
    let isOver = false
    why.value = null
    const begin = async () => {
      const after = await shown.start()
      if (isOver || after === null) return
      close = followScope(scope, {
        after,
        onOpen: () => {
          state.value = 'live'
        },
        onEntry: (entry) => shown.add(entry),
        onLost: () => {
          state.value = 'lost'
        },
        onRefused: (reason) => {
          state.value = 'ended'
          why.value = reason
        },
      })
    }
    void begin()
    return () => {
      isOver = true
      close()
      shown.stop()
    }
  }, [attempt.value])
  return { state: state.value, why: why.value, retry: () => void (attempt.value += 1) }
}
