import { StrictMode, useState } from 'react'
import { createRoot } from 'react-dom/client'
import { useApprovals, useReflexes, useScope } from 'reflex-agents/react'
import { reflex, scope } from './deployment.ts'

function Watch() {
  const { status, error, events, log, streaming, state, send, stop } = useScope(scope)
  const [text, setText] = useState('')
  return (
    <section>
      <h1>{scope.name}</h1>
      <p role="status">
        {status} · {state ? `${state.counters.turns} turns` : '…'}
        {error && ` · ${error.message}`}
      </p>
      <ol aria-label="Events">
        {events.map(({ id, type, status: fate, event }) => (
          <li key={id}>
            {event && 'content' in event ? String(event.content) : type}: {fate}
          </li>
        ))}
      </ol>
      <p aria-label="Answer in progress">{streaming}</p>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          void send({ content: text })
          setText('')
        }}
      >
        <label>
          Message <input value={text} onChange={({ target }) => setText(target.value)} />
        </label>
        <button type="submit">Send</button>
        <button type="button" onClick={() => void stop('stopped on the page')}>
          Stop
        </button>
      </form>
      <ol aria-label="Log">
        {log.map(({ seq, kind }) => (
          <li key={seq} value={seq}>
            {kind}
          </li>
        ))}
      </ol>
    </section>
  )
}

/** The lists are read again so often; 5 s by default. */
const EVERY_MS = 1000

function Waiting() {
  const { items, respond } = useApprovals(reflex, { every_ms: EVERY_MS })
  const { items: reflexes } = useReflexes(reflex, { every_ms: EVERY_MS })
  return (
    <section>
      <h2>Approvals</h2>
      <ul aria-label="Approvals">
        {items.map(({ id, skill_id, why }) => (
          <li key={id}>
            {skill_id}: {why} <button onClick={() => void respond(id, 'approve')}>Approve</button>{' '}
            <button onClick={() => void respond(id, 'reject')}>Reject</button>
          </li>
        ))}
      </ul>
      <h2>Reflexes</h2>
      <ul aria-label="Reflexes">
        {reflexes.map(({ id, version, state }) => (
          <li key={id}>
            {id}@{version}: {state}
          </li>
        ))}
      </ul>
    </section>
  )
}

function App() {
  const [shown, setShown] = useState(true)
  return (
    <>
      <button onClick={() => setShown(!shown)}>{shown ? 'Leave' : 'Return'}</button>
      {shown && <Watch />}
      <Waiting />
    </>
  )
}

createRoot(document.getElementById('root') as HTMLElement).render(
  <StrictMode>
    <App />
  </StrictMode>,
)
